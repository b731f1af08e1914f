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

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/proc"
)

// role names one of the files of the protocol, all next to F. See the package comment.
type role int

const (
	lockFile role = iota // L
	newFile              // N
	reapFile             // R
)

// disk has the file operations of the protocol, so that a test can run it on a model of a disk, step by step. Errors are
// those of package fs.
type disk interface {
	// lockGuard locks G. The error is ErrBusy if that takes longer than budget.
	lockGuard(ctx context.Context, budget time.Duration) (guard, error)
	create(r role, data []byte) (file, error) // a new file; it must not exist
	open(r role) (file, error)
	link(from, to role) error // to must not exist
	rename(from, to role) error
	remove(r role) error
	same(f file, r role) (bool, error) // whether f has that name; false if no file has
	self() proc.ID
	gone(proc.ID) bool                 // see proc.ID.Gone
	read() ([]byte, error)             // F; nil if it does not exist
	stage(data []byte) (staged, error) // new content of F, on disk but not in place
	close()
}

// guard is the lock on G. Its note is a small text that outlives the holder, unless the machine crashes.
type guard interface {
	note() string
	setNote(string)
	unlock()
}

// file is an open lock file. While it is open, no other file has the same identity.
type file interface {
	content() []byte // at most maxBody bytes; nil if not readable
	modified() time.Time
	writeAt(data []byte, offset int64) error
	close()
}

type staged interface {
	Commit() error
	Discard()
}

// lockAttempt is one Acquire that holds the guard.
type lockAttempt struct {
	disk
	guard guard
	o     Options
	path  string
	clock time.Time // of the file system, when the latest N was made
	aged  bool      // a lock was removed that other processes may have judged as abandoned, and be about to remove
	inWay body      // the lock of another holder
}

func (a *lockAttempt) run(ctx context.Context) (*Lock, error) {
	for try := range a.o.Tries {
		if try > 0 {
			if err := a.o.Sleep(ctx, a.o.jittered(try-1)); err != nil {
				return nil, err
			}
		}
		if l, err := a.try(ctx); l != nil || err != nil {
			return l, err
		}
	}
	return nil, &BusyError{Path: a.path, PID: a.inWay.PID, Agent: a.inWay.Agent, Age: a.inWay.age(a.o.Now())}
}

// try returns no lock and no error if another process has it.
func (a *lockAttempt) try(ctx context.Context) (*Lock, error) {
	for range 10 { // each round except the last removes an obstacle; more than a few rounds mean high contention
		l, err := a.make()
		if err != nil {
			return nil, err
		}
		if l != nil {
			if ok, err := a.settle(ctx, l); ok || err != nil {
				return l, err
			}
			continue
		}
		if gone, err := a.clear(); !gone || err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// make tries to create L with its content. It returns nil if L exists.
func (a *lockAttempt) make() (*Lock, error) {
	now := a.o.Now()
	data := newBody(a.self(), a.o.Agent, now).encode()
	if err := a.drop(newFile); err != nil { // left by a killed reconcile process: we hold the guard
		return nil, err
	}
	own, err := a.create(newFile, data)
	if err != nil {
		return nil, err
	}
	a.clock = own.modified()
	if err = a.finishReap(); err == nil {
		own, err = a.publish(own, data)
	}
	if err != nil || own == nil {
		return nil, err
	}
	return &Lock{disk: a.disk, guard: a.guard, own: own, path: a.path, o: a.o, since: now, body: data}, nil
}

// publish gives N the name L and returns L, or nil if L exists. It owns own.
func (a *lockAttempt) publish(own file, data []byte) (_ file, err error) {
	err = a.link(newFile, lockFile)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, noLinks) {
		own.close()
		own, err = a.create(lockFile, data) // other programs may see L empty for an instant
	}
	if derr := a.drop(newFile); err == nil {
		err = derr
	}
	if err == nil {
		// If the guard does not exclude, N may have been another process's; then so is L.
		var ok bool
		if ok, err = a.same(own, lockFile); ok {
			return own, nil
		}
	}
	if own != nil {
		own.close()
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return nil, err
}

// settle reports whether a new lock can be trusted. After an aged lock was taken, a process that judged that one before
// may remove ours: wait for longer than a program needs between judging and removing.
func (a *lockAttempt) settle(ctx context.Context, l *Lock) (bool, error) {
	if !a.aged {
		return true, nil
	}
	err := a.o.Sleep(ctx, a.o.settle())
	if err == nil {
		err = l.mine()
	}
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, ErrStolen) {
		_, rerr := reap(a.disk, l.own)
		l.own.close()
		return false, errors.Join(err, rerr)
	}
	l.own.close()
	return false, nil
}

// clear removes the existing L if it is abandoned, and reports whether another attempt may succeed.
func (a *lockAttempt) clear() (bool, error) {
	f, err := a.open(lockFile)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), ignore(err, fs.ErrNotExist)
	}
	defer f.close()
	b, free := a.judge(f)
	if !free {
		a.inWay = b
		return false, nil
	}
	_, err = reap(a.disk, f)
	a.noteRemoved(b)
	return err == nil, err
}

// finishReap completes the work of a killed process: R is a lock that was being removed, or one that was to be put back.
func (a *lockAttempt) finishReap() error {
	f, err := a.open(reapFile)
	if err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	defer f.close()
	b, free := a.judge(f)
	if !free {
		return putBack(a.disk)
	}
	err = a.drop(reapFile)
	a.noteRemoved(b)
	return err
}

func (a *lockAttempt) drop(r role) error { return ignore(a.remove(r), fs.ErrNotExist) }

// reap removes L if it is f, and reports whether it was. A check followed by a removal could remove a newer file of that
// name; a file under a name that no other process uses can be checked safely.
func reap(d disk, f file) (bool, error) {
	if err := d.rename(lockFile, reapFile); err != nil {
		return false, ignore(err, fs.ErrNotExist)
	}
	ok, err := d.same(f, reapFile)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, putBack(d)
	}
	return true, ignore(d.remove(reapFile), fs.ErrNotExist)
}

// putBack makes R the lock again, unless there is a newer one.
func putBack(d disk) error {
	err := d.link(reapFile, lockFile)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return ignore(d.remove(reapFile), fs.ErrNotExist)
	}
	f, err := d.open(lockFile) // links are not supported: check, then rename
	if errors.Is(err, fs.ErrNotExist) {
		return ignore(d.rename(reapFile, lockFile), fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	f.close()
	return ignore(d.remove(reapFile), fs.ErrNotExist)
}

func step(at *os.Root, name string) (*os.Root, error) {
	fi, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := at.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		fi, err = at.Lstat(name)
	}
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a folder", fs.ErrInvalid, name)
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(fi, now) {
		_ = next.Close()
		return nil, errors.Join(fmt.Errorf("%w: %s was replaced just now", fs.ErrInvalid, name), err)
	}
	return next, nil
}

// noteRemoved records whether other processes may have judged the lock as abandoned before its removal just now.
func (a *lockAttempt) noteRemoved(b body) {
	a.aged = a.aged || timestampAged(b.Timestamp, a.o.Now(), a.o.hold())
}

// judge reports whether a holder of the guard may remove L or R: its owner held the guard and is dead, or it is older
// than a lock may be.
func (a *lockAttempt) judge(f file) (b body, free bool) {
	b = parseBody(f.content())
	return b, a.gone(b.id()) || timestampAged(b.Timestamp, a.o.Now(), a.o.Stale) && a.fileAged(f)
}

// timestampAged reports whether a timestamp is older than stale, or is not usable because it is missing or in the future
// by more than the difference of clocks.
func timestampAged(t, now time.Time, stale time.Duration) bool {
	age := now.Sub(t)
	return t.IsZero() || age > stale || age < -stale
}

// fileAged reports whether f was not written for longer than stale, by the clock of the file system. If the modification
// time is in the future, the clock was set back, and the time since f was first noticed counts.
func (a *lockAttempt) fileAged(f file) bool {
	age := a.clock.Sub(f.modified())
	if age >= -a.o.Stale {
		return age > a.o.Stale
	}
	return a.known(f) > a.o.Stale
}

// known returns how long f has been noticed unchanged by the processes that judged it. The first one records it in the
// guard.
func (a *lockAttempt) known(f file) time.Duration {
	now := a.o.Now().Round(0)
	key := fmt.Sprintf("%x-%d", sha256.Sum256(f.content()), f.modified().UnixNano())
	if noted, since, ok := strings.Cut(strings.TrimSpace(a.guard.note()), " "); ok && noted == key {
		ns, err := strconv.ParseInt(since, 10, 64)
		if known := now.Sub(time.Unix(0, ns)); err == nil && known >= 0 {
			return known
		}
	}
	a.guard.setNote(fmt.Sprintf("%s %d\n", key, now.UnixNano()))
	return 0
}
