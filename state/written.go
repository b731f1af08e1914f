package state

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
)

// noteWritten updates the model for a file that this process wrote or removed. A status file is decoded again only if its
// entry is made again, which is rare: its writer has the decoded status.
func (s *Store) noteWritten(look *folderCache, p string, data []byte, body any) {
	a, _ := s.layout().classify(p)
	if a == areaLedgers && data != nil {
		body = s.noteLedgerWritten(p, data)
	}
	if a == areaCheckpoints && data != nil {
		body = s.layout().decodeCheckpoint(p, data)
	}
	if s.model == nil {
		return
	}
	if _, asleep := s.model.dormant.owns(p); asleep {
		s.needsFullLoad.Store(true)
		return
	}
	st, err := look.lstat(p)
	if data == nil || a == areaNone || err != nil || st.Size != int64(len(data)) {
		s.model.drop(p)
		return
	}
	s.model.put(&file{path: p, area: a, racy: true, stat: st, sum: xxhash.Sum64(data), body: body})
}

// folderCache reads stats of files that are mostly in the same folder, which it keeps open.
type folderCache struct {
	root *os.Root
	path string
	dir  *disk.Dir
}

func (n *folderCache) lstat(p string) (disk.Stat, error) {
	parent, name := path.Dir(p), path.Base(p)
	if n.dir == nil || n.path != parent {
		n.close()
		d, err := disk.OpenDir(n.root, parent)
		if err != nil {
			return disk.Stat{}, err
		}
		n.path, n.dir = parent, d
	}
	var st disk.Stat
	err := n.dir.Stat([]byte(name + "\x00")[:len(name)], &st)
	return st, err
}

func (n *folderCache) close() {
	if n.dir != nil {
		n.dir.Close()
		n.dir = nil
	}
}

// forgetFile makes the next scan read a file again.
func (s *Store) forgetFile(p string) {
	if s.model == nil || s.model.files[p] == nil {
		return
	}
	again := *s.model.files[p]
	again.racy = true
	s.model.put(&again)
}

// generation returns a number that grows with each write to the tree by a reconcile process.
func (s *Store) generation() int64 {
	fi, err := s.root.Lstat(generationPath)
	if err != nil {
		return 0
	}
	return fi.Size()
}

// bumpGeneration notifies other processes that the tree changed: it appends a byte, so that no notification is lost. This
// process knows its own writes.
func (s *Store) bumpGeneration() error {
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

// runBody returns the body of a change that is known without decoding it.
func runBody(c Change) any {
	if c.Status == nil {
		return nil
	}
	return newLazyStatus(c.Status)
}
