package gitrepo

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"

	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// object is one object to write.
type object struct {
	kind plumbing.ObjectType
	hash plumbing.Hash
	data []byte
}

func newObject(kind plumbing.ObjectType, data []byte) object {
	return object{kind: kind, hash: hashObject(kind, data), data: data}
}

// objectStore reads objects, and caches the trees that it reads or creates. It serves one call and must be closed.
type objectStore struct {
	l     layout
	dirs  []string // this repository's objects, then the alternates
	packs []*pack  // nil until the first object that is not loose
	trees map[plumbing.Hash][]treeEntry
}

func newObjectStore(l layout) *objectStore {
	dirs := append([]string{filepath.Join(l.common, "objects")}, alternates(l.common)...)
	return &objectStore{l: l, dirs: dirs, trees: map[plumbing.Hash][]treeEntry{}}
}

// close closes all files. The store reopens them on use.
func (s *objectStore) close() {
	for _, p := range s.packs {
		p.close() // they were only read
	}
	s.packs = nil
}

// alternates lists the object folders that this one borrows from, directly or not.
func alternates(common string) []string {
	var found []string
	seen := map[string]bool{}
	for queue := []string{filepath.Join(common, "objects")}; len(queue) > 0; queue = queue[1:] {
		data, err := regular.ReadPath(filepath.Join(queue[0], "info", "alternates"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			dir := strings.TrimSpace(line)
			if dir == "" || dir[0] == '#' {
				continue
			}
			if dir = worktree.Absolute(queue[0], dir); !seen[dir] {
				seen[dir] = true
				found, queue = append(found, dir), append(queue, dir)
			}
		}
	}
	return found
}

// read returns an object's content, which no one changes. In a partial clone a missing object can only be fetched by git.
func (s *objectStore) read(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	if data, ok := s.l.recent.object(objectName{kind, hash}); ok {
		return data, nil
	}
	obj, err := s.lookup(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		s.close() // git gc may have packed it since
		obj, err = s.lookup(hash)
	}
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, &needsGit{fmt.Sprintf("%s %s is not in the repository", kind, hash)}
	}
	if err == nil && obj.Type() != kind {
		err = fmt.Errorf("it is a %s", obj.Type())
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w; look with git fsck", kind, hash, err)
	}
	data, err := checkoutContent(obj)
	if err == nil {
		s.l.recent.add(objectName{kind, hash}, data)
	}
	return data, err
}

func (s *objectStore) lookup(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, dir := range s.dirs {
		obj, err := readLoose(dir, hash)
		if !errors.Is(err, os.ErrNotExist) {
			return obj, err
		}
	}
	if s.packs == nil {
		for _, dir := range s.dirs {
			packs, err := openPacks(dir)
			s.packs = append(s.packs, packs...)
			if err != nil {
				return nil, err
			}
		}
	}
	for _, p := range s.packs {
		obj, err := p.object(hash)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return obj, err
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

// readLoose reads an object that is a file of its own.
func readLoose(dir string, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	obj := new(plumbing.MemoryObject)
	err := withLoose(dir, hash.String(), func(kind plumbing.ObjectType, size int64, r io.Reader) error {
		obj.SetType(kind)
		if n, err := io.Copy(obj, r); err != nil || n != size {
			return fmt.Errorf("object %s in %s: %d of %d bytes: %w", hash, dir, n, size, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// withLoose calls do with the type, the size and the content of an object that is a file of its own.
func withLoose(dir, hash string, do func(plumbing.ObjectType, int64, io.Reader) error) (err error) {
	f, _, err := regular.OpenPath(filepath.Join(dir, hash[:2], hash[2:]), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := objfile.NewReader(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	kind, size, err := r.Header()
	if err != nil {
		return err
	}
	return do(kind, size, r)
}

// treeOf returns the tree of a commit; "" gives the zero hash, which is the empty tree.
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

// commit reads a commit.
func (s *objectStore) commit(hash string) (commitText, error) {
	data, err := s.read(plumbing.CommitObject, plumbing.NewHash(hash))
	if err != nil {
		return commitText{}, err
	}
	c := parseCommit(string(data))
	c.Hash = hash
	if c.Tree == "" {
		return c, fmt.Errorf("commit %s: damaged; look with git fsck", hash)
	}
	return c, nil
}

func parseHash(s string) (string, bool) {
	if len(s) != 40 {
		return "", false
	}
	_, err := hex.DecodeString(s)
	return s, err == nil && s == strings.ToLower(s)
}

// looseText reads a small blob from a loose object, the form that a fetch of a few objects creates. It returns nil
// for other objects.
func (s *objectStore) looseText(hash string) (text []byte, err error) {
	err = withLoose(s.dirs[0], hash, func(kind plumbing.ObjectType, size int64, r io.Reader) error {
		if kind != plumbing.BlobObject || size > textLimit {
			return nil
		}
		text = make([]byte, size)
		_, err := io.ReadFull(r, text)
		return err
	})
	return text, err
}

// peel follows annotated tags to the commit.
func (s *objectStore) peel(hash string) (commitText, error) {
	for range 5 {
		data, err := s.read(plumbing.TagObject, plumbing.NewHash(hash))
		if err != nil {
			break
		}
		line, _, _ := strings.Cut(string(data), "\n")
		hash = strings.TrimPrefix(line, "object ")
	}
	return s.commit(hash)
}

// looseLimit is the maximum number of objects that are written as loose files. More go into one pack: a pack costs
// three syncs regardless of its size, and a loose object one or two.
const looseLimit = 64

// write makes objects durable. Existing objects are written again: git may not have synced them yet.
func (w *scratchDir) write(l layout, objects []object) error {
	dir := filepath.Join(l.common, "objects")
	switch {
	case len(objects) == 0:
		return nil // as after a landing, which has written its commit before
	case len(objects) > looseLimit:
		return w.writePack(dir, objects)
	}
	return w.writeLoose(dir, objects)
}

// writeLoose writes one file per object, several concurrently, so that the file system can sync them together.
func (w *scratchDir) writeLoose(dir string, objects []object) error {
	temps, contents, z := make([]*os.File, len(objects)), make([]bytes.Buffer, len(objects)), new(deflater)
	for i, o := range objects {
		head := fmt.Appendf(nil, "%s %d\x00", o.kind, len(o.data))
		if len(o.data) <= smallObject {
			contents[i].Write(stored(append(head, o.data...)))
		} else {
			z.append(&contents[i], head, o.data)
		}
		f, err := w.temp("object")
		if err != nil {
			return errors.Join(err, discardStaged(temps))
		}
		temps[i] = f
	}
	err := parallel(len(objects), func(i int) error { return finishScratch(temps[i], contents[i].Bytes(), 0o444) })
	if err != nil {
		return errors.Join(err, discardStaged(temps))
	}
	dirs := []string{dir}
	for i, o := range objects {
		name := o.hash.String()
		fan := filepath.Join(dir, name[:2])
		if err := mkdirLike(dir, fan); err != nil {
			return errors.Join(err, discardStaged(temps[i:]))
		}
		if err := os.Rename(temps[i].Name(), filepath.Join(fan, name[2:])); err != nil {
			return errors.Join(err, discardStaged(temps[i:]))
		}
		dirs = append(dirs, fan)
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	return parallel(len(dirs), func(i int) error { return syncDir(dirs[i]) })
}

// deflater compresses for speed, not size: git repack recompresses later.
type deflater struct{ z *zlib.Writer }

// append appends the compressed parts. A deflater is reused, because a compressor costs a megabyte.
func (d *deflater) append(buf *bytes.Buffer, parts ...[]byte) {
	if d.z == nil {
		d.z, _ = zlib.NewWriterLevel(nil, zlib.BestSpeed) // fails for levels that do not exist
	}
	d.z.Reset(buf)
	for _, p := range parts {
		d.z.Write(p) // a bytes.Buffer does not fail
	}
	d.z.Close()
}

// smallObject is the number of bytes up to which a loose object is not compressed: its file takes one block of the disk in any case.
const smallObject = 2 << 10

// stored is the zlib form (RFC 1950) of less than 64 KiB, without compression: a header, one final stored block with its length and
// that length inverted, and a checksum.
func stored(data []byte) []byte {
	out := binary.LittleEndian.AppendUint16([]byte{0x78, 0x01, 1}, uint16(len(data)))
	out = append(binary.LittleEndian.AppendUint16(out, ^uint16(len(data))), data...)
	return binary.BigEndian.AppendUint32(out, adler32.Checksum(data))
}

// writePack writes all objects as one pack, without deltas, and its index. The pack becomes visible with its index.
func (w *scratchDir) writePack(dir string, objects []object) error {
	pack, idx, err := encodePack(objects)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("pack-%x", pack[len(pack)-sha1.Size:])
	dir = filepath.Join(dir, "pack")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	p, err := w.temp("pack")
	if err != nil {
		return err
	}
	// This name lets sweep find a pack without an index.
	i, err := os.OpenFile(filepath.Join(w.dir, name+".idx.tmp"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return errors.Join(err, discardStaged([]*os.File{p}))
	}
	files, contents := []*os.File{p, i}, [][]byte{pack, idx}
	err = parallel(2, func(k int) error { return finishScratch(files[k], contents[k], 0o444) })
	if err == nil {
		err = os.Rename(p.Name(), filepath.Join(dir, name+".pack"))
	}
	if err == nil {
		err = os.Rename(i.Name(), filepath.Join(dir, name+".idx"))
	}
	if err != nil {
		// The index's temporary file is removed last: its name tells the next sweep about the pack.
		return errors.Join(err, sweepPack(dir, filepath.Base(i.Name())), discardStaged(files))
	}
	return syncDir(dir)
}

// hashObject computes an object's name. It skips collision detection, which makes git's SHA-1 slow, because the
// content is our own.
func hashObject(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	return plumbing.Hash(h.Sum(nil))
}

// HasCommit reports whether a commit is in the repository.
func (r *Repo) HasCommit(ctx context.Context, commit string) (has bool, err error) {
	err = r.either(func(_ *native, s *objectStore) error {
		s.l.recent = nil // it may be gone by now
		_, err := s.commit(commit)
		has = err == nil
		return err
	}, func(k *command) error {
		out, err := k.run(ctx, call{stdin: []byte(commit + "\n")}, "cat-file", "--batch-check")
		has = strings.HasPrefix(string(out), commit+" commit ")
		return err
	})
	return has, err
}

// Blob returns the content of a file of a commit.
func (r *Repo) Blob(ctx context.Context, commit, path string) (data []byte, err error) {
	err = r.either(func(_ *native, s *objectStore) error {
		data, err = s.content(commit, path)
		return err
	}, func(k *command) error {
		data, err = k.run(ctx, call{}, "cat-file", "blob", commit+":"+path)
		return err
	})
	return data, err
}
