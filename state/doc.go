// Package state is the tree on disk: it loads specs, statuses and records into an immutable [Tree], and writes what
// was decided back, durably.
//
// A [Store] is one process's hold on a directory. Loading never takes a lock: files are replaced by rename, so a
// reader sees the old or the new, whole. Everything that decides and writes does so under [Store.Lock], the lock of
// the whole tree, held for milliseconds; effects run outside it, under a lease per key. Files that programs of other
// makes may write too are changed by [Store.Fold], under the AgentX lock file protocol (package state/lock).
//
// What is kept under .reconcile/ is local and disposable, with one exception: the journals, which hold results that
// are not yet files under state/runs. They are checkpointed into files at the end of a run, and by the next run if
// this one is killed.
package state
