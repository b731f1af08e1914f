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
