// Package memstore keeps the memory on disk: what agents learned, in files that people can read, diff and revert, found
// again through an index that is derived from them.
//
// # Truth and folds
//
// The truth are the Observations under specs/, one for each capture, and the records under state/memory/records/, one for
// whatever happened to observations since: removed, verified, recalled, compacted. Each file of these is written once,
// under a name that is made of its content. No two writers share one, so that nothing can be lost and nothing conflicts.
//
// An issue file, state/memory/issue-<N>.json, is the fold of the truth for one issue, and of what programs of other makes
// put into it. The archive beside it holds what compaction replaced, and state/memory/manifest.json a line for each
// observation that is not archived. Their forms, and the fold, are those of package controllers/memory; what makes them
// anew whatever happened to them is [Files.Settle], which the loop calls in each run.
//
// # Writing
//
// [Files.Capture] writes the Observation durably, then the issue file, then the manifest, the last two under the AgentX
// locks issue-<N>.json.lock and manifest.json.lock: one after the other, never two at once, so that no order of locks can be
// wrong. Killed anywhere, or held up by a lock, it leaves the Observation, and the next run folds it.
//
// This is the order in which names change. Contents are written beside each other, under other names: the issue file's while
// the Observation reaches the disk, so that the two wait for the disk together, and the manifest's without its lock.
//
// Issue files are synced though they are folds: they also hold what other programs wrote, and how captures were accepted
// whose specs were edited since. Neither is anywhere else.
//
// The manifest is not synced. It has up to 17 MB, of which a capture changes some lines; syncing it would cost more than
// all else together, and a sync of any other file would wait for it. What a loss of power leaves of it is noticed, since
// what is remembered of it (.reconcile/memory/step) is trusted only within one start of the machine, and it is made anew.
//
// # Reading
//
// Reading rests on a view: a table of all observations with a lexical index over their words, made of the issue files. It
// is kept in .reconcile/memory/base, with what changed since in delta, and a new process has to look at the
// files' times only. Within a process it is good for 30 seconds, and has at once what the process writes. Readers take no
// lock: files are replaced whole.
//
// # The cache
//
// Everything in .reconcile/memory can go at any time:
//
//	base, delta   the tables of views, see table.go
//	step          which manifest was written, of which contents of the issue files
//	settled       what was folded last: captures, issue files, archives
//	folded        which records are in the issue files
//	records       the records, so that many need not be opened one by one
//	anchors       digests of the files that observations are about
//
// All of them are checked when they are read; one that is damaged, or of another version, is made anew without a word.
// A file is known by what the file system says of it. One that was changed less than a tick before it was looked at is
// compared by its content the next time; but for the manifest of a capture, which gets a modification time of before, so
// that any further change gives it another one.
package memstore
