// Package memstore stores the memory on disk: what agents learned, in files that people can read, diff and revert, searched
// through a derived index.
//
// # Source of truth and folds
//
// The source of truth is the Observations under specs/, one for each capture, and the records under state/memory/records/,
// one for each later event: removed, verified, recalled, compacted. Each of these files is written once, under a name
// derived from its content. No two writers share a file, so nothing is lost and nothing conflicts.
//
// An issue file, state/memory/issue-<N>.json, is the fold of the source of truth for one issue, and of the changes of
// third-party programs to it. The archive next to it holds what compaction replaced, and state/memory/manifest.json one
// line for each observation that is not archived. Package controllers/memory defines their formats, and the fold.
// [Files.Settle], which the loop calls in each run, rebuilds them after any change.
//
// # Writing
//
// [Files.Capture] writes the Observation durably, then the issue file, then the manifest, the last two under the AgentX
// locks issue-<N>.json.lock and manifest.json.lock: one after the other, never two at once, so that no lock order can be
// wrong. If it is killed or a lock is held, the Observation stays, and the next run folds it.
//
// This is the order of the renames. Contents are written concurrently under temporary names: the issue file's while the
// Observation is synced, so that both syncs overlap, and the manifest's without its lock.
//
// Issue files are synced although they are folds: they also hold the changes of third-party programs, and accepted captures
// whose specs were edited since. Neither is stored elsewhere.
//
// The manifest is not synced. It has up to 17 MB, and a capture changes a few lines of it; syncing it would cost more than
// everything else together, and a sync of any other file would wait for it. A loss after a power failure is detected, since
// the recorded manifest state (.reconcile/memory/step) is trusted only until the next boot, and the manifest is then
// rebuilt.
//
// # Reading
//
// Readers use a view: a table of all observations with a lexical index, built from the issue files. It is cached in
// .reconcile/memory/base, with later changes in delta, and a new process checks only the files' times. Within a process it
// is valid for 30 seconds, and includes the process's own writes at once. Readers take no lock: files are replaced whole.
//
// # The cache
//
// Everything in .reconcile/memory may be deleted at any time:
//
//	base, delta   the tables of views, see table.go
//	step          the last written manifest, and the hashes of its issue files
//	settled       the last folded captures, issue files and archives
//	folded        the records that are in the issue files
//	records       the records, so that many need not be opened individually
//	anchors       digests of the files that observations refer to
//
// All of them are checked when they are read; one that is damaged, or of another version, is rebuilt silently. A file is
// identified by its stat data. A file that changed less than a tick before it was read is compared by content the next
// time, except the manifest of a capture: it gets an older modification time, so that any further change gives it another
// one.
package memstore
