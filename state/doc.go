// Package state is the tree on disk: it loads specs, statuses and records into an immutable [Tree], and writes
// decisions back, durably.
//
// A [Store] is the handle of one process on a directory. Loading never takes a lock: files are replaced by rename, so
// a reader sees the old or the new content, never a mixture. All decisions and writes happen under [Store.Lock], the
// lock of the whole tree, which is held for milliseconds; effects run outside it, under a lease per key. Files that
// third-party programs also write are changed by [Store.Fold], under the AgentX lock file protocol (package
// state/lock). Of these, the ledgers of clarifications are part of the tree ([Tree.Ledger]): decisions read the records
// of other programs there.
//
// # Loading
//
// [Store.Load] scans all files, [Store.Refresh] some; both lead to the same tree. An unchanged file is decoded only
// once: it is recognized by its stat (size, times, inode, mode), and its decoded content is kept in memory and, for the
// next process, in .reconcile/cache. A file that was changed less than a tick of the file system's clock before it was
// read may change again with the same stat; it is marked as racy, and the next load compares its content. A file that
// cannot be read, or is not a regular file of the tree, is a separate problem and hides no other file.
//
// [Store.Settle] records a fingerprint of all files that a run depends on, and [Store.Fresh] compares it: a run with
// nothing to do costs one walk with a stat for each file.
//
// # Journals
//
// The files under .reconcile/ are local and disposable, with one exception: the journals, which hold results that
// are not yet files under state/runs. Each process has its own, and holds a lock on it during its lifetime. The results
// are checkpointed into files at the end of a run; after a kill the next run does that ([Store.Recover]).
//
// A result moves from a journal to a file in this order: write the file, raise the generation, drop the line. A reader
// uses the reverse order: journals, generation, files. So no reader misses a result in between, which would run an
// effect again. Each write by a reconcile process raises the generation; if it is not the one that a store knows,
// Refresh scans everything.
package state
