package gitrepo

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// looseLimit is the maximum number of objects that are written as loose files. More go into one pack: a pack costs
// three syncs regardless of its size, and a loose object one or two.
const looseLimit = 64

// write makes objects durable. Existing objects are written again: git may not have synced them yet.
func (w *scratchDir) write(l layout, objects []object) error {
	dir := filepath.Join(l.common, "objects")
	if len(objects) > looseLimit {
		return w.writePack(dir, objects)
	}
	return w.writeLoose(dir, objects)
}

// writeLoose writes one file per object, several concurrently, so that the file system can sync them together.
func (w *scratchDir) writeLoose(dir string, objects []object) error {
	temps := make([]*os.File, len(objects))
	for i := range objects {
		f, err := w.temp("object")
		if err != nil {
			return errors.Join(err, discardStaged(temps))
		}
		temps[i] = f
	}
	err := parallel(len(objects), func(i int) error {
		var buf bytes.Buffer
		newDeflater().append(&buf, fmt.Appendf(nil, "%s %d\x00", objects[i].kind, len(objects[i].data)), objects[i].data)
		return finishScratch(temps[i], buf.Bytes(), 0o444)
	})
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

func newDeflater() deflater {
	z, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed) // fails for levels that do not exist
	return deflater{z}
}

// append appends the compressed parts. A deflater is reused, because a new one costs a megabyte.
func (d deflater) append(buf *bytes.Buffer, parts ...[]byte) {
	d.z.Reset(buf)
	for _, p := range parts {
		d.z.Write(p) // a bytes.Buffer does not fail
	}
	d.z.Close()
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

// encodePack returns a version 2 pack and its index. Duplicate objects are written once.
func encodePack(objects []object) (pack, idx []byte, err error) {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b object) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	objects = slices.CompactFunc(objects, func(a, b object) bool { return a.hash == b.hash })
	var buf bytes.Buffer
	buf.WriteString("PACK")
	binary.Write(&buf, binary.BigEndian, [2]uint32{2, uint32(len(objects))})
	var table idxfile.Writer
	z := newDeflater()
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

// hashObject computes an object's name. It skips collision detection, which makes git's SHA-1 slow, because the
// content is our own.
func hashObject(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	return plumbing.Hash(h.Sum(nil))
}
