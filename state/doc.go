// Package state is the tree on disk: it loads specs, statuses and records into an immutable [Tree], and writes what
// was decided back, durably.
//
// A [Store] is one process's hold on a directory. Loading never takes a lock: files are replaced by rename, so a
// reader sees the old or the new, whole. Everything that decides and writes does so under [Store.Lock], the lock of
// the whole tree, held for milliseconds; effects run outside it, under a lease per key. Files that programs of other
// makes may write too are changed by [Store.Fold], under the AgentX lock file protocol (package state/lock). Of these, the
// ledgers of clarifications are part of the tree ([Tree.Ledger]): decisions look at what others wrote there.
//
// # Looking
//
// [Store.Load] looks at all files, [Store.Refresh] at some; both lead to the same tree. What does not change is decoded
// once: a file is known by what the file system says of it (size, times, inode, mode), and what it holds is kept in
// memory and, for the next process, in .reconcile/cache. A file that was changed less than a tick of the file system's
// clock before it was read may change again without a sign; it is marked as racy, and its content is compared at the
// next look. What cannot be read, or is no regular file of the tree, is a problem of its own and hides nothing else.
//
// [Store.Settle] leaves a fingerprint of all files that a run depends on, and [Store.Fresh] compares it: a run with
// nothing to do costs one walk with a stat for each file.
//
// # Journals
//
// What is kept under .reconcile/ is local and disposable, with one exception: the journals, which hold results that
// are not yet files under state/runs. Each process has its own, and a lock on it for as long as it lives. They are
// checkpointed into files at the end of a run, and by the next run if this one is killed ([Store.Recover]).
//
// A result moves from a journal to a file in this order: write the file, raise the generation, drop the line. Whoever
// looks does it the other way round: journals, generation, files. So nobody misses a result between the two, which
// would be to run an effect again. The generation is raised with every write by a process of ours; when it is not the
// one that a store knows, Refresh looks at everything.
package state
