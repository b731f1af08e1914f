package runner

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/state/regular"
)

// leaseDir has the files of leases, which stay empty: a lease is a lock on two bytes of one of them. File and position are derived
// from a digest of the key. So a lease removes no file, and rarely creates one. There are several, because the kernel goes through
// all locks of a file whenever a process locks a part of it or closes it, and a new process closes those of all its siblings.
const (
	leaseDir   = ".reconcile/leased"
	leaseFiles = 8
)

// formerLeases is the single file in which earlier versions have all leases. Commands that they started may hold some.
const formerLeases = ".reconcile/leases"

// leases are the locks of one runner.
type leases struct {
	root   *os.Root
	mu     sync.Mutex // guards the fields below
	closed bool
	files  [leaseFiles]*os.File // our own open files: no command shares their locks
	former *os.File             // nil if it did not exist when the first lease was used
	looked bool                 // for former
}

// lease is a hold on one key. The first byte is locked through file, an open file that the processes of the run share: it
// is free when the last of them is gone. The second is locked through the runner's own open file: it is free when the runner is gone.
type lease struct {
	all   *leases
	in    int // the index of its file
	at    int64
	file  *os.File // nil after the release
	freed bool     // whether it was asked to be free
}

// open returns the runner's own open file that has the lease, and former, which may be nil.
func (k *lease) open() (base, former *os.File, err error) {
	l := k.all
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, fmt.Errorf("open leases: %w", fs.ErrClosed)
	}
	if l.files[k.in] == nil {
		if l.files[k.in], err = openLeases(l.root, leaseName(k.in)); err != nil {
			return nil, nil, fmt.Errorf("open leases: %w", err)
		}
	}
	if !l.looked {
		l.former, _, err = regular.OpenFile(l.root, formerLeases, os.O_RDWR, 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, regular.ErrNot) {
			return nil, nil, fmt.Errorf("open leases: %w", err)
		}
		l.looked = true
	}
	return l.files[k.in], l.former, nil
}

func leaseName(i int) string { return path.Join(leaseDir, fmt.Sprintf("%02d", i)) }

func openLeases(root *os.Root, name string) (*os.File, error) {
	f, _, err := regular.OpenFile(root, name, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		if err = root.MkdirAll(leaseDir, 0o755); err == nil {
			f, _, err = regular.OpenFile(root, name, os.O_RDWR|os.O_CREATE, 0o644)
		}
	}
	return f, err
}

func (l *leases) close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, f := range append(l.files[:], l.former) {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	l.files, l.former = [leaseFiles]*os.File{}, nil
	return err
}

// of returns the lease of key, not taken.
func (l *leases) of(key string) *lease {
	sum := sha256.Sum256([]byte(key))
	return &lease{all: l, in: int(sum[8]) % leaseFiles, at: int64(binary.BigEndian.Uint64(sum[:8])>>2) * 2}
}

// take locks the lease of key without waiting; errLeaseTaken if another process holds it.
func (l *leases) take(key string) (*lease, error) {
	k := l.of(key)
	base, former, err := k.open()
	if err != nil {
		return nil, err
	}
	for at := k.at; at <= k.at+1; at++ {
		if taken, err := locked(former, at); taken || err != nil {
			return nil, cmp.Or(err, errLeaseTaken)
		}
	}
	f, err := openBlocking("/proc/self/fd/"+strconv.Itoa(int(base.Fd())), unix.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("open lease: %w", err)
	}
	if err = lockByte(base, k.at+1, unix.F_WRLCK); err == nil {
		if err = lockByte(f, k.at, unix.F_WRLCK); err != nil {
			err = errors.Join(err, lockByte(base, k.at+1, unix.F_UNLCK))
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	k.file = f
	return k, nil
}

// release releases our share in the run's hold; its processes keep theirs.
func (k *lease) release() {
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
}

// handOver leaves the first byte to the process of the run that was started. Programs that start from now on do not share it, not even
// between fork and exec: so it is free as soon as the run has ended.
func (k *lease) handOver() { k.release() }

// discard ends the runner's hold if no process of the run has one any more; else errLeaseTaken.
func (k *lease) discard() error {
	base, former, err := k.open()
	if err != nil {
		return err
	}
	for _, f := range []*os.File{base, former} {
		if taken, err := locked(f, k.at); taken || err != nil {
			return cmp.Or(err, errLeaseTaken)
		}
	}
	return lockByte(base, k.at+1, unix.F_UNLCK)
}

// runs reports whether another live runner holds the lease.
func (k *lease) runs() bool {
	base, former, err := k.open()
	if err != nil {
		return false
	}
	for _, f := range []*os.File{base, former} {
		if taken, err := locked(f, k.at+1); taken && err == nil {
			return true
		}
	}
	return false
}

func lockByte(f *os.File, at int64, how int16) error {
	l := unix.Flock_t{Type: how, Start: at, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return errLeaseTaken
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// locked reports whether another open file than f holds the byte. It is false for nil.
func locked(f *os.File, at int64) (bool, error) {
	if f == nil {
		return false, nil
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return false, fmt.Errorf("look at lock of %s: %w", f.Name(), err)
	}
	return l.Type != unix.F_UNLCK, nil
}

// shownIn reports whether a descriptor's info, which lists the locks of its open file, shows this lease:
//
//	lock:	1: OFDLCK  ADVISORY  WRITE -1 fe:00:1234 <first byte> <last byte>
func (k *lease) shownIn(info []byte) bool {
	base, former, err := k.open()
	if err != nil {
		return false
	}
	at := strconv.FormatInt(k.at, 10)
	for _, f := range []*os.File{base, former} {
		var st unix.Stat_t
		if f == nil || unix.Fstat(int(f.Fd()), &st) != nil {
			continue
		}
		if bytes.Contains(info, fmt.Appendf(nil, "%02x:%02x:%d %s %s", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino, at, at)) {
			return true
		}
	}
	return false
}
