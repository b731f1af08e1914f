package gitrepo

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"reconcile.dev/reconcile/state/regular"
)

// pack is one pack of the repository. go-git decodes its objects; its index is read only at the positions of the
// binary search, because go-git's reader takes time and memory proportional to the whole history.
type pack struct {
	path string // without extension
	idx  *os.File
	fan  [256]uint32 // number of objects whose first byte is at most the position
	data *packfile.Packfile
}

// openPacks opens the indexes of all complete packs of an objects folder. It skips a pack without an index, which a
// killed git may leave.
func openPacks(dir string) ([]*pack, error) {
	names, err := os.ReadDir(filepath.Join(dir, "pack"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var packs []*pack
	for _, n := range names {
		base, ok := strings.CutSuffix(n.Name(), ".idx")
		if !ok || !strings.HasPrefix(base, "pack-") {
			continue
		}
		p, err := openPack(filepath.Join(dir, "pack", base))
		if errors.Is(err, os.ErrNotExist) {
			continue // git gc removed it since
		}
		if err != nil {
			return packs, err
		}
		packs = append(packs, p)
	}
	slices.Reverse(packs)
	return packs, nil
}

func openPack(base string) (*pack, error) {
	idx, _, err := regular.OpenPath(base+".idx", os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	var head [8 + 4*256]byte
	_, err = idx.ReadAt(head[:], 0)
	if err == nil && string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		err = &needsGit{fmt.Sprintf("%s.idx has an old or damaged form", base)}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s.idx: %w", base, err), idx.Close())
	}
	p := &pack{path: base, idx: idx}
	for i := range p.fan {
		p.fan[i] = binary.BigEndian.Uint32(head[8+4*i:])
	}
	return p, nil
}

// close closes the files.
func (p *pack) close() error {
	err := p.idx.Close()
	if p.data != nil {
		err = errors.Join(err, p.data.Close())
	}
	return err
}

// object returns an object, or plumbing.ErrObjectNotFound.
func (p *pack) object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	offset, err := p.FindOffset(hash)
	if err != nil {
		return nil, err
	}
	if p.data == nil {
		f, err := osfs.New(filepath.Dir(p.path)).Open(filepath.Base(p.path) + ".pack")
		if errors.Is(err, os.ErrNotExist) {
			return nil, plumbing.ErrObjectNotFound // git gc removed it since; a newer pack has the object
		}
		if err != nil {
			return nil, err
		}
		p.data = packfile.NewPackfileWithCache(p, nil, f, nil, 0)
	}
	return p.data.GetByOffset(offset)
}

// FindOffset searches the pack's index (gitformat-pack(5), version 2).
func (p *pack) FindOffset(hash plumbing.Hash) (int64, error) {
	var from uint32
	if hash[0] > 0 {
		from = p.fan[hash[0]-1]
	}
	to, all := p.fan[hash[0]], int64(p.fan[255])
	if to < from || int64(to) > all {
		return 0, fmt.Errorf("%s.idx: damaged; look with git fsck", p.path)
	}
	names := make([]byte, 20*int(to-from))
	if _, err := p.idx.ReadAt(names, 1032+20*int64(from)); err != nil {
		return 0, fmt.Errorf("%s.idx: %w", p.path, err)
	}
	i, found := searchNames(names, hash)
	if !found {
		return 0, plumbing.ErrObjectNotFound
	}
	return p.offset(int64(from)+int64(i), all)
}

// searchNames finds a hash in an array of sorted hashes.
func searchNames(names []byte, hash plumbing.Hash) (int, bool) {
	low, high := 0, len(names)/20
	for low < high {
		mid := int(uint(low+high) / 2)
		switch c := bytes.Compare(names[20*mid:20*mid+20], hash[:]); {
		case c == 0:
			return mid, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return 0, false
}

// offset reads the offset of the i-th of all objects: 31 bits, or the place of 64 in the next table.
func (p *pack) offset(i, all int64) (int64, error) {
	var buf [8]byte
	if _, err := p.idx.ReadAt(buf[:4], 1032+24*all+4*i); err != nil {
		return 0, fmt.Errorf("%s.idx: %w", p.path, err)
	}
	short := binary.BigEndian.Uint32(buf[:])
	if short&(1<<31) == 0 {
		return int64(short), nil
	}
	if _, err := p.idx.ReadAt(buf[:], 1032+28*all+8*int64(short&^(1<<31))); err != nil {
		return 0, fmt.Errorf("%s.idx: %w", p.path, err)
	}
	return int64(binary.BigEndian.Uint64(buf[:])), nil
}

// The rest of go-git's index interface. Packfile looks hashes up by offset only for its cache, and it has no cache
// here.

// Contains reports whether the pack has the object.
func (p *pack) Contains(hash plumbing.Hash) (bool, error) {
	_, err := p.FindOffset(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}

// FindHash always returns the zero hash.
func (p *pack) FindHash(int64) (plumbing.Hash, error) { return plumbing.ZeroHash, nil }

// FindCRC32 is not supported.
func (p *pack) FindCRC32(plumbing.Hash) (uint32, error) { return 0, plumbing.ErrObjectNotFound }

// Count returns the number of objects.
func (p *pack) Count() (int64, error) { return int64(p.fan[255]), nil }

// Entries returns io.EOF.
func (p *pack) Entries() (idxfile.EntryIter, error) { return nil, io.EOF }

// EntriesByOffset returns io.EOF.
func (p *pack) EntriesByOffset() (idxfile.EntryIter, error) { return nil, io.EOF }

// encodePack returns a version 2 pack and its index. Duplicate objects are written once.
func encodePack(objects []object) (pack, idx []byte, err error) {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b object) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	objects = slices.CompactFunc(objects, func(a, b object) bool { return a.hash == b.hash })
	var buf bytes.Buffer
	buf.WriteString("PACK")
	binary.Write(&buf, binary.BigEndian, [2]uint32{2, uint32(len(objects))})
	var table idxfile.Writer
	z := new(deflater)
	for _, o := range objects {
		at := buf.Len()
		buf.Write(packHeader(o.kind, len(o.data)))
		z.append(&buf, o.data)
		table.Add(o.hash, uint64(at), crc32.ChecksumIEEE(buf.Bytes()[at:]))
	}
	sum := sha1.Sum(buf.Bytes())
	buf.Write(sum[:])
	if err := table.OnFooter(plumbing.Hash(sum)); err != nil {
		return nil, nil, err
	}
	index, err := table.Index()
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	if _, err := idxfile.NewEncoder(&out).Encode(index); err != nil {
		return nil, nil, err
	}
	return buf.Bytes(), out.Bytes(), nil
}

// packHeader is the entry header of gitformat-pack(5): three bits of type, then the size, seven bits a byte.
func packHeader(kind plumbing.ObjectType, size int) []byte {
	b := []byte{byte(kind)<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		b[len(b)-1] |= 0x80
		b = append(b, byte(size&0x7f))
	}
	return b
}
