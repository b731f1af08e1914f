// Package lock gives one process at a time the right to change a file that programs of several makes change.
//
// # The protocol
//
// Everybody agrees on one thing: while F.lock exists, F belongs to who made it, and a lock older than 30 seconds is
// abandoned. Written the obvious way, that rule loses updates: two waiters both remove a stale lock and one of them
// removes the other's fresh one; a paused owner wakes up and overwrites; a killed one blocks everybody for the whole
// 30 seconds. So this package adds a layer that other programs need not know of, for the file F:
//
//	G  .reconcile/locks/F.guard   an advisory lock of the kernel (flock), freed by the death of its holder; never deleted
//	L  F.lock                     the agreed lock, with {pid, timestamp, agent} and {nonce, guard, start} of our own
//	N  F.new.lock                 L before it appears, so that nobody sees an empty one
//	R  F.reap.lock                a lock on its way out
//
// Acquire:
//
//  1. Lock G, waiting no longer than all tries together.
//  2. Write N. If R exists, its maker died while removing it: judge it like L, put it back if it is alive.
//  3. Link N to L, which fails if L exists, and remove N. The descriptor stays open: it pins the inode, so that nobody
//     else's L can be mistaken for ours.
//  4. If L exists: it is stale when both its timestamp and its modification time are older than 30 seconds (only the
//     latter if the timestamp cannot be read or lies in the future), and it is a corpse when its guard tag is ours and
//     its process is gone: that process held G, and now we do. Both are removed by renaming L to R and looking whether
//     R is what was judged; if not, R is linked back. Otherwise wait 200 ms, doubling to 5 s, ±25 %, and try again, five
//     times in all; then [ErrBusy].
//  5. After taking a stale lock, wait a moment and look whether L is still ours: a program that judged it before us may
//     have removed ours. For the same reason Release waits a moment, with G locked, after removing a lock that had become
//     old in our hands.
//
// Check, before anything is written: L is ours, it is younger than 15 seconds, and F is what [Lock.Read] saw.
// While a lock is held and its holder gets on, L gets a new timestamp every five seconds, through the descriptor that made
// it. That ends a minute after the holder's last sign, so a holder that hangs does not keep others out for ever.
// Release: rename L to R, look whether it is ours, remove it. Whenever L is not ours, the answer is [ErrStolen], and
// the caller decides again from the file as it is now. [Update] does all of it.
//
// A process that hangs while it holds G keeps our processes out until it ends: they report it and do not steal. What
// cannot be had: exclusion against other programs that pause for longer than 30 seconds and then write without
// looking. So files under this protocol are folds of records that are files of their own.
//
// Ages are told by two clocks: timestamps by that of the process, modification times by that of the file system. A
// modification time in the future proves nothing, so G remembers when such a lock was first seen.
package lock
