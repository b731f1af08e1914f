package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/regular"
)

// ErrBusy is the error of Lock and Fold when somebody else holds the lock for too long: trying again later may help.
var ErrBusy = lock.ErrBusy

// ErrStolen is the error of Write and Release when the lock was lost: what was decided under it must be decided again.
var ErrStolen = lock.ErrStolen

// Lock is the lock of the whole tree.
type Lock struct {
	*lock.Lock
	store *Store
}

// Lock takes the lock of the whole tree, under which all decisions are made and written. It is held for
// milliseconds, in a large tree for longer, and says so with Working.
// The error wraps ErrBusy when it cannot be had in time.
func (s *Store) Lock(ctx context.Context) (*Lock, error) {
	if err := s.ensureLocal(localDir); err != nil {
		return nil, err
	}
	l, err := lock.Acquire(ctx, s.root, treeLockPath, s.lockOptions())
	if err != nil {
		return nil, fmt.Errorf("lock the tree %s: %w", s.dir, err)
	}
	held := &Lock{l, s}
	s.held.Store(held)
	return held, nil
}

// acquire takes the lock of a file under state/, which lies beside it, and has git ignore such locks.
func (s *Store) acquire(ctx context.Context, p string, o lock.Options) (*lock.Lock, error) {
	s.ignoreLock(p)
	return lock.Acquire(ctx, s.root, p, o)
}

// ignoreLock has git ignore the lock of a file under state/.
func (s *Store) ignoreLock(p string) {
	if folder := s.layout().state; within(folder, p) {
		_, _ = s.Ignore(folder, "*.lock") // where nothing can be written, the lock says so
	}
}

// lockOptions are those of all locks that this store takes.
func (s *Store) lockOptions() lock.Options {
	o := s.locks
	o.Agent, o.Log = s.opts.Agent, s.opts.Log
	return o
}

// Release gives the lock up. ErrStolen says that it had been lost.
func (l *Lock) Release() error {
	l.store.held.CompareAndSwap(l, nil)
	return l.Lock.Release()
}

// Change is a file to be written or removed.
type Change struct {
	Path string // slash path below the root
	Data []byte // nil removes the file
	// Status is what Data encodes, for a status file: it need not be decoded again.
	Status schemas.Status
}

var errNotLocked = errors.New("the tree is not locked")

// Write makes changes durable, in their order, and counts them; files that are as they should be are left alone. The
// tree must be locked by this store. A file that could not be read is moved aside before another takes its place. With
// the record of a run its log goes, afterwards.
func (s *Store) Write(ctx context.Context, changes []Change) (int, error) {
	if err := s.SyncJournal(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes = slices.DeleteFunc(slices.Clone(changes), s.upToDate)
	if len(changes) == 0 {
		return 0, nil
	}
	if err := s.mayWrite(ctx); err != nil {
		return 0, err
	}
	ops := make([]durable.Op, len(changes))
	for i, c := range changes {
		if err := s.clear(c.Path); err != nil {
			return 0, err
		}
		ops[i] = durable.Op{Path: c.Path, Data: c.Data, Stop: s.layout().state}
	}
	if err := s.bump(); err != nil {
		return 0, err
	}
	err := s.apply(ops)
	look := nearby{root: s.root}
	defer look.close()
	for _, c := range changes {
		if err != nil {
			s.unknown(c.Path)
		} else {
			s.wrote(&look, c.Path, c.Data, body(c))
		}
	}
	if err := errors.Join(err, s.bump()); err != nil {
		return 0, fmt.Errorf("write to the tree %s: %w", s.dir, err)
	}
	s.dropLogs(changes)
	return len(changes), nil
}

// Batch is how many files Write makes durable at once.
const Batch = 2000

// apply writes files in their order, each batch while the lock is ours.
func (s *Store) apply(ops []durable.Op) error {
	for part := range slices.Chunk(ops, Batch) {
		held := s.held.Load()
		if held == nil {
			return errNotLocked
		}
		if err := held.Check(); err != nil {
			return err
		}
		if err := durable.Apply(s.root, tmpDir, part); err != nil {
			return err
		}
		held.Working()
	}
	return nil
}

// Working is a sign for the lock of the tree, if this store holds it, that work under it goes on; see [lock.Lock.Working].
func (s *Store) Working() {
	if held := s.held.Load(); held != nil {
		held.Working()
	}
}

func (s *Store) mayWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	held := s.held.Load()
	if held == nil {
		return fmt.Errorf("write to the tree %s: %w", s.dir, errNotLocked)
	}
	if err := held.Check(); err != nil {
		return fmt.Errorf("write to the tree %s: %w", s.dir, err)
	}
	return s.ensureLocal(tmpDir)
}

// upToDate reports whether a file holds already what it should.
func (s *Store) upToDate(c Change) bool {
	st, err := lstat(s.root, c.Path)
	if c.Data == nil || err != nil {
		return c.Data == nil && errors.Is(err, fs.ErrNotExist)
	}
	if st.Size != int64(len(c.Data)) || st.form() != formFile {
		return false
	}
	old, err := regular.Read(s.root, c.Path)
	return err == nil && bytes.Equal(old, c.Data)
}

// wrote tells the model of a file that this process wrote or removed. What a status file holds is decoded when an
// entry of it is made, which is seldom: who wrote it has it already.
func (s *Store) wrote(look *nearby, p string, data []byte, body any) {
	a, _ := s.layout().classify(p)
	if a == areaLedgers && data != nil {
		body = s.wroteLedger(p, data)
	}
	if s.model == nil {
		return
	}
	if _, asleep := s.model.dormant.owns(p); asleep {
		s.roused.Store(true)
		return
	}
	st, err := look.lstat(p)
	if data == nil || a == areaNone || err != nil || st.Size != int64(len(data)) {
		s.model.drop(p)
		return
	}
	s.model.put(&file{path: p, area: a, racy: true, stat: st, sum: xxhash.Sum64(data), body: body})
}

// body is what is known of a change's content without decoding it.
func body(c Change) any {
	if c.Status == nil {
		return nil
	}
	return holdStatus(c.Status)
}

// nearby looks at files one after the other that mostly lie in the same folder, which it keeps open.
type nearby struct {
	root *os.Root
	path string
	dir  *folder
}

func (n *nearby) lstat(p string) (stat, error) {
	parent, name := path.Dir(p), path.Base(p)
	if n.dir == nil || n.path != parent {
		n.close()
		d, err := openFolder(n.root, parent)
		if err != nil {
			return stat{}, err
		}
		n.path, n.dir = parent, d
	}
	var st stat
	err := n.dir.stat([]byte(name + "\x00")[:len(name)], &st)
	return st, err
}

func (n *nearby) close() {
	if n.dir != nil {
		n.dir.close()
		n.dir = nil
	}
}

// unknown makes the next look read a file again.
func (s *Store) unknown(p string) {
	if s.model == nil || s.model.files[p] == nil {
		return
	}
	again := *s.model.files[p]
	again.racy = true
	s.model.put(&again)
}

// Fold changes a file that programs of other makes may write too, under the AgentX lock protocol. fold makes the new
// content of the old (nil: no file); it may be called several times and must depend on nothing but old. When there is
// nothing to change, nothing is locked. What is no JSON is read again under the lock: another program may be writing it.
func (s *Store) Fold(ctx context.Context, p string, fold func(old []byte) ([]byte, error)) error {
	old, err := s.readOrNil(p)
	switch {
	case errors.Is(err, errNotFile):
		return fmt.Errorf("read %s: %w; move it away: no link is followed here, and nothing is written over one", p, err)
	case err != nil:
		return fmt.Errorf("read %s: %w", p, err)
	}
	next, err := fold(old)
	torn := err != nil && old != nil && !json.Valid(old)
	if err != nil && !torn {
		return fmt.Errorf("fold %s: %w", p, err)
	}
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	if !torn && same(withLF(old), next) {
		return s.sweepLock(ctx, p)
	}
	if err := s.SyncJournal(); err != nil {
		return err
	}
	last := next
	s.ignoreLock(p)
	err = lock.Update(ctx, s.root, p, s.lockOptions(), func(now []byte) ([]byte, error) {
		if last = next; !torn && same(now, old) {
			return last, nil // nobody came between
		}
		last, err = fold(now)
		return last, err
	})
	if err != nil {
		return fmt.Errorf("fold %s: %w", p, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	look := nearby{root: s.root}
	defer look.close()
	s.wrote(&look, p, last, nil)
	return s.bump()
}

// withLF is a content as this program writes it: a checkout may have given it CRLF, which is no reason to write it again.
func withLF(data []byte) []byte {
	if !bytes.Contains(data, []byte("\r\n")) {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}

// same reports whether two contents are the same; nil is that of no file.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// sweepLock takes what a killed process left of the lock of p out of the way, by taking the lock. One that is held is
// left alone.
func (s *Store) sweepLock(ctx context.Context, p string) error {
	if left, err := fs.Glob(regular.FS(s.root), p+".*"); err != nil || len(left) == 0 {
		return err
	}
	o := s.lockOptions()
	o.Tries = 1
	l, err := s.acquire(ctx, p, o)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tidy up the lock of %s: %w", p, err)
	}
	return l.Release()
}

// readOrNil reads a regular file; nil when there is none.
func (s *Store) readOrNil(p string) ([]byte, error) {
	d, err := openFolder(s.root, path.Dir(p))
	if err == nil {
		defer d.close()
		var data []byte
		if data, _, err = d.read(path.Base(p), stateLimit); err == nil {
			return data, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

// Announce tells the processes that work on the tree that this one wrote files beside Write, specs for example: each looks
// at all files at its next turn, whatever it was hinted at. It needs no lock.
func (s *Store) Announce() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.ensureLocal(tmpDir), s.bump()); err != nil {
		return fmt.Errorf("tell of what was written to the tree %s: %w", s.dir, err)
	}
	return nil
}

// generation is a number that grows whenever a process of ours wrote to the tree.
func (s *Store) generation() int64 {
	fi, err := s.root.Lstat(generationPath)
	if err != nil {
		return 0
	}
	return fi.Size()
}

// bump tells other processes that the tree was changed: it appends a byte, so that no bump is lost. This process knows
// what it wrote itself.
func (s *Store) bump() error {
	f, _, err := regular.OpenFile(s.root, generationPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("count a change: %w", err)
	}
	_, err = f.Write([]byte{'.'})
	s.seenGen++
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("count a change: %w", err)
	}
	return nil
}
