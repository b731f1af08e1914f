package runner

import (
	"bytes"
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

// leaseFile is the single file of all leases. It stays empty: a lease is a lock on two of its bytes, at a position derived
// from a digest of the key. So a lease creates and removes no file.
const leaseFile = ".reconcile/leases"

// leases are the locks of one runner.
type leases struct {
	root *os.Root
	once sync.Once
	base *os.File // our own open file: no command shares its locks
	err  error
}

// lease is a hold on one key. The first byte is locked through file, an open file that the processes of the run share: it
// is free when the last of them is gone. The second is locked through leases.base: it is free when the runner is gone.
type lease struct {
	all  *leases
	at   int64
	file *os.File // nil after the release
}

func (l *leases) open() error {
	l.once.Do(func() {
		l.base, _, l.err = regular.OpenFile(l.root, leaseFile, os.O_RDWR|os.O_CREATE, 0o644)
		if errors.Is(l.err, fs.ErrNotExist) {
			if l.err = l.root.MkdirAll(path.Dir(leaseFile), 0o755); l.err == nil {
				l.base, _, l.err = regular.OpenFile(l.root, leaseFile, os.O_RDWR|os.O_CREATE, 0o644)
			}
		}
	})
	if l.err != nil {
		return fmt.Errorf("open leases: %w", l.err)
	}
	return nil
}

func (l *leases) close() error {
	l.once.Do(func() { l.err = fs.ErrClosed })
	if l.base == nil {
		return nil
	}
	return l.base.Close()
}

// of returns the lease of key, not taken.
func (l *leases) of(key string) *lease {
	sum := sha256.Sum256([]byte(key))
	return &lease{all: l, at: int64(binary.BigEndian.Uint64(sum[:8])>>2) * 2}
}

// take locks the lease of key without waiting; errLeaseTaken if another process holds it.
func (l *leases) take(key string) (*lease, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	f, err := openBlocking("/proc/self/fd/"+strconv.Itoa(int(l.base.Fd())), unix.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("open lease: %w", err)
	}
	k := l.of(key)
	if err = lockByte(l.base, k.at+1, unix.F_WRLCK); err == nil {
		if err = lockByte(f, k.at, unix.F_WRLCK); err != nil {
			err = errors.Join(err, lockByte(l.base, k.at+1, unix.F_UNLCK))
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

// discard ends the runner's hold if no process of the run has one any more; else errLeaseTaken.
func (k *lease) discard() error {
	if err := k.all.open(); err != nil {
		return err
	}
	taken, err := locked(k.all.base, k.at)
	switch {
	case err != nil:
		return err
	case taken:
		return errLeaseTaken
	}
	return lockByte(k.all.base, k.at+1, unix.F_UNLCK)
}

// runs reports whether another live runner holds the lease.
func (k *lease) runs() bool {
	if k.all.open() != nil {
		return false
	}
	taken, err := locked(k.all.base, k.at+1)
	return err == nil && taken
}

func lockByte(f *os.File, at int64, how int16) error {
	l := unix.Flock_t{Type: how, Start: at, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return errLeaseTaken
	case err != nil:
		return fmt.Errorf("lock %s: %w", leaseFile, err)
	}
	return nil
}

// locked reports whether another open file than f holds the byte.
func locked(f *os.File, at int64) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return false, fmt.Errorf("look at lock of %s: %w", leaseFile, err)
	}
	return l.Type != unix.F_UNLCK, nil
}

// shownIn reports whether a descriptor's info, which lists the locks of its open file, shows this lease:
//
//	lock:	1: OFDLCK  ADVISORY  WRITE -1 fe:00:1234 <first byte> <last byte>
func (k *lease) shownIn(info []byte) bool {
	var st unix.Stat_t
	if k.all.open() != nil || unix.Fstat(int(k.all.base.Fd()), &st) != nil {
		return false
	}
	at := strconv.FormatInt(k.at, 10)
	want := fmt.Sprintf("%02x:%02x:%d %s %s", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino, at, at)
	return bytes.Contains(info, []byte(want))
}
