package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"
)

// State says what [Inspect] found.
type State string

const (
	Free    State = "free"    // there is no lock
	Live    State = "live"    // held by one of us that is alive
	Foreign State = "foreign" // held by another program, or one of us in another container, and younger than Stale
	Corpse  State = "corpse"  // left by one of us that has ended; the next Acquire takes it at once
	Empty   State = "empty"   // a young file with nothing that can be read: being written, or left so by a crash
	Stale   State = "stale"   // older than Stale; the next Acquire takes it
)

// Info is what can be told about a lock without touching it.
type Info struct {
	State State
	PID   int           // 0 if unknown
	Agent string        // "" if unknown
	Age   time.Duration // of its timestamp, or of the file if there is none
	// Litter are the names, below root, of leftovers of processes that were killed: the next Acquire removes them.
	Litter []string
}

// Inspect looks at the lock of the file at path and changes nothing. Only [Options.Stale] and Now matter.
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
