// Package lock gives one process at a time the right to change a file that several programs, including third-party
// ones, change.
//
// # The protocol
//
// All programs agree on one rule: while F.lock exists, F belongs to its creator, and a lock older than 30 seconds is
// abandoned. A direct implementation of that rule loses updates: two waiters both remove a stale lock and one of them
// removes the other's fresh one; a paused owner wakes up and overwrites; a killed one blocks all others for the whole
// 30 seconds. So this package adds a layer that other programs need not know, for the file F:
//
//	G  .reconcile/locks/F.guard   an advisory lock of the kernel (flock), freed by the death of its holder; never deleted
//	L  F.lock                     the agreed lock, with {pid, timestamp, agent} and reconcile's {nonce, guard, start}
//	N  F.new.lock                 L before it appears, so that no program sees an empty one
//	R  F.reap.lock                a lock that is being removed
//
// Acquire:
//
//  1. Lock G, waiting no longer than all tries together.
//  2. Write N. If R exists, its creator died while removing it: judge it like L, put it back if it is alive.
//  3. Link N to L, which fails if L exists, and remove N. The descriptor stays open: it pins the inode, so that another
//     program's L cannot be mistaken for ours.
//  4. If L exists: it is stale if both its timestamp and its modification time are older than 30 seconds (only the
//     latter if the timestamp is invalid or in the future), and it is a corpse if its guard tag is ours and its process
//     has ended: that process held G, and now we do. Both are removed by renaming L to R and checking whether R is the
//     judged file; if not, R is linked back. Otherwise wait 200 ms, doubling to 5 s, ±25 %, and try again, five times in
//     all; then [ErrBusy].
//  5. After taking a stale lock, wait a moment and check that L is still ours: a program that judged the old one before
//     may have removed ours. For the same reason Release waits a moment, with G locked, after removing a lock that had
//     become old while we held it.
//
// Check, before anything is written: L is ours, it is younger than 15 seconds, and F is as [Lock.Read] saw it.
// While a lock is held and its holder makes progress, L gets a new timestamp every five seconds, through the descriptor
// that created it. That ends a minute after the holder's last [Lock.Working], so a holder that hangs does not block
// other programs for ever. Release: rename L to R, check that it is ours, remove it. Whenever L is not ours, the result
// is [ErrStolen], and the caller decides again from the current file. [Update] does all of it.
//
// A process that hangs while it holds G blocks other reconcile processes until it ends: they report it and do not steal
// the lock. The package cannot exclude third-party programs that pause for longer than 30 seconds and then write without
// checking their lock. So files under this protocol are folds of records in separate files.
//
// Ages use two clocks: timestamps that of the process, modification times that of the file system. A modification time
// in the future proves nothing, so G records when such a lock was first seen.
package lock
