package gitrepo

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// object is one object to be written.
type object struct {
	kind plumbing.ObjectType
	hash plumbing.Hash
	data []byte
}

func newObject(kind plumbing.ObjectType, data []byte) object {
	return object{kind: kind, hash: hashObject(kind, data), data: data}
}

// hashObject names an object. Our own bytes need no collision detection, which is what makes git's SHA-1 slow.
func hashObject(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	return plumbing.Hash(h.Sum(nil))
}

// objectStore reads objects through go-git, and remembers the trees that it read or was taught. It serves one call;
// nothing in it outlives that.
type objectStore struct {
	l      layout
	stores []*filesystem.ObjectStorage // our own objects, then the alternates
	trees  map[plumbing.Hash][]treeEntry
}

func newObjectStore(l layout) *objectStore {
	s := &objectStore{l: l, trees: map[plumbing.Hash][]treeEntry{}}
	s.open()
	return s
}

// open (re)reads which packs there are.
func (s *objectStore) open() {
	s.stores = nil
	for _, dir := range append([]string{filepath.Join(s.l.common, "objects")}, alternates(s.l.common)...) {
		lru := cache.NewObjectLRU(16 * cache.MiByte)
		s.stores = append(s.stores, &filesystem.NewStorage(osfs.New(filepath.Dir(dir), osfs.WithBoundOS()), lru).ObjectStorage)
	}
}

// alternates lists the object folders that this one borrows from, directly or not.
func alternates(common string) []string {
	var found []string
	seen := map[string]bool{}
	for queue := []string{filepath.Join(common, "objects")}; len(queue) > 0; queue = queue[1:] {
		data, err := os.ReadFile(filepath.Join(queue[0], "info", "alternates"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			dir := strings.TrimSpace(line)
			if dir == "" || dir[0] == '#' {
				continue
			}
			if dir = absolute(queue[0], dir); !seen[dir] {
				seen[dir] = true
				found, queue = append(found, dir), append(queue, dir)
			}
		}
	}
	return found
}

// read returns an object's content. A missing object may be a promise of a partial clone, which only git can fetch.
func (s *objectStore) read(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	data, err := s.lookup(kind, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		s.open() // git gc may have packed it since
		data, err = s.lookup(kind, hash)
	}
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, &needsGit{fmt.Sprintf("%s %s is not in the repository", kind, hash)}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w; look with git fsck", kind, hash, err)
	}
	return data, nil
}

func (s *objectStore) lookup(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	for _, store := range s.stores {
		obj, err := store.EncodedObject(kind, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return content(obj)
	}
	return nil, plumbing.ErrObjectNotFound
}

func content(obj plumbing.EncodedObject) (data []byte, err error) {
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data = make([]byte, obj.Size())
	_, err = io.ReadFull(r, data)
	return data, err
}

// treeOf returns the tree of a commit; the zero hash stands for no commit and the empty tree.
func (s *objectStore) treeOf(commit string) (plumbing.Hash, error) {
	if commit == "" {
		return plumbing.ZeroHash, nil
	}
	data, err := s.read(plumbing.CommitObject, plumbing.NewHash(commit))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	rest, ok := strings.CutPrefix(string(data[:min(len(data), 46)]), "tree ")
	if !ok || len(rest) < 40 {
		return plumbing.ZeroHash, fmt.Errorf("commit %s: damaged; look with git fsck", commit)
	}
	return plumbing.NewHash(rest[:40]), nil
}
