package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"
)

// State is the state of a lock.
type State string

const (
	Free    State = "free"    // no lock
	Live    State = "live"    // held by a live reconcile process
	Foreign State = "foreign" // held by another program, or by reconcile in another container, and younger than Stale
	Corpse  State = "corpse"  // left by a reconcile process that has ended; the next Acquire takes it at once
	Empty   State = "empty"   // a young file without valid content: being written, or left by a crash
	Stale   State = "stale"   // older than Stale; the next Acquire takes it
)

// Info describes a lock.
type Info struct {
	State State
	PID   int           // 0 if unknown
	Agent string        // "" if unknown
	Age   time.Duration // of its timestamp, or of the file if it has none
	// Litter are the paths, below root, of leftover files of killed processes: the next Acquire removes them.
	Litter []string
}

// Inspect returns the Info of the lock of the file at path p: its state, its holder and leftover files. It changes nothing.
// Only [Options.Stale] and Now are used.
func Inspect(root *os.Root, p string, o Options) (Info, error) {
	o = o.withDefaults()
	if _, err := root.Lstat(path.Dir(p)); errors.Is(err, fs.ErrNotExist) {
		return Info{State: Free}, nil
	}
	d, err := openDisk(root, p, o)
	if err != nil {
		return Info{}, fmt.Errorf("inspect the lock of %s: %w", p, err)
	}
	defer d.close()
	info, err := inspect(d, o)
	if err != nil {
		return Info{}, fmt.Errorf("inspect the lock of %s: %w", p, err)
	}
	for _, r := range []role{newFile, reapFile} {
		if _, err := d.dir.Lstat(d.name(r)); err == nil {
			info.Litter = append(info.Litter, path.Join(path.Dir(p), d.name(r)))
		}
	}
	return info, nil
}

func inspect(d disk, o Options) (Info, error) {
	f, err := d.open(lockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{State: Free}, nil
	}
	if err != nil {
		return Info{}, err
	}
	defer f.close()
	b, now := parseBody(f.content()), o.Now()
	info := Info{PID: b.PID, Agent: b.Agent, Age: b.age(now)}
	if b.Timestamp.IsZero() {
		info.Age = max(0, now.Sub(f.modified()))
	}
	switch old := now.Sub(f.modified()) > o.Stale; {
	case d.gone(b.id()):
		info.State = Corpse
	case old && timestampAged(b.Timestamp, now, o.Stale):
		info.State = Stale
	case b == body{}:
		info.State = Empty
	case b.Guard != "" && b.Guard == d.self().Tag:
		info.State = Live
	default:
		info.State = Foreign
	}
	return info, nil
}

// ErrBusy is the cause of an error if another process holds the lock. A later attempt may succeed.
var ErrBusy = errors.New("lock is busy")

// ErrStolen is the cause of an error if another process took the lock, or may have. The caller must not write on the
// basis of its reads, but read and decide again.
var ErrStolen = errors.New("lock was lost")

// BusyError describes the holder of a lock. It wraps [ErrBusy].
type BusyError struct {
	Path  string        // the path of the locked file
	PID   int           // of the holder; 0 if not known
	Agent string        // the name of the holder
	Age   time.Duration // since it was locked or renewed; 0 if not known
	Held  time.Duration // since the holder took it; 0 if not known
	Doing string        // what the holder did last; "" if not known
	Hung  bool          // the holder is a live reconcile process that did not release the lock during the whole wait
}

// Works reports whether the holder is a live reconcile process that has renewed the lock lately, as it does while it goes on: the lock
// becomes free without anybody's help.
func (e *BusyError) Works() bool { return e.Hung && e.PID != 0 && e.Age < defaultStale/2 }

// Holder says who holds the lock, since when, and what it does.
func (e *BusyError) Holder() string {
	text := fmt.Sprintf("process %d (%s), which has held it for %s", e.PID, e.Agent, e.Held.Round(time.Second))
	if e.Doing != "" {
		text += " (" + e.Doing + ")"
	}
	return text
}

func (e *BusyError) Error() string {
	who := "another program"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.Agent != "" {
		who += fmt.Sprintf(" (%s)", e.Agent)
	}
	if e.Age > 0 {
		who += fmt.Sprintf(" for %v", e.Age.Round(time.Millisecond))
	}
	next := "try again; a lock that nobody needs any more is taken after 30 seconds"
	if e.Hung {
		next = "if that process hangs, end it: its lock is free at once"
	}
	return fmt.Sprintf("%v: %s is locked by %s: %s", ErrBusy, e.Path, who, next)
}

func (e *BusyError) Unwrap() error { return ErrBusy }

func wrap(f *os.File) (*osFile, error) {
	fi, err := f.Stat()
	return &osFile{f, fi}, err
}

// busyGuard returns an error that names the holder of the guard: the process in L, if it has written L yet.
func busyGuard(d disk, path string, o Options) error {
	e := &BusyError{Path: path, Hung: true}
	if f, err := d.open(lockFile); err == nil {
		b := parseBody(f.content())
		f.close()
		e.PID, e.Agent, e.Age, e.Doing = b.PID, b.Agent, b.age(o.Now()), b.Doing
		if !b.Since.IsZero() {
			e.Held = max(0, elapsed(b.Since, o.Now()))
		}
	}
	return e
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
