package state

import (
	"encoding/binary"
	"iter"
	"maps"
	"os"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
)

const (
	frozenPath       = cacheDir + "/dormant"
	frozenVersion    = "reconcile dormant objects 4\n"
	frozenHeader     = len(frozenVersion) + 7*8 // key, hash of the rest; numbers of files, objects and referents; bytes of the objects and referents
	frozenRecordSize = 2 * 8
	referentSize     = 2 * 4 // where its name begins, and the list of the objects that refer to it
	baseFileSize     = 6 * 8

	// unreadyMark is set in the number of files in an object's record if the object waits, as it should.
	unreadyMark = 1 << 31
)

// frozenObjects are the objects and files to freeze.
type frozenObjects struct {
	list   []*Dormant               // sorted
	refers map[schemas.Ref][]uint32 // to each of these refer the objects with these indices in list
	files  []baseFile               // the owner is 1 + the index in list
}

func (o *frozenObjects) encode(key uint64) []byte {
	out := make([]byte, frozenHeader, frozenHeader+len(o.files)*(baseFileSize+12)+len(o.list)*(frozenRecordSize+128))
	counts := make([]uint32, len(o.list))
	for _, f := range o.files {
		out = f.append(out)
		counts[f.owner-1]++
	}
	for _, table := range [][]uint32{
		hashTable(len(o.files), func(i int) uint64 { return o.files[i].path }),
		hashTable(len(o.files), func(i int) uint64 { return o.files[i].statHash[0] }),
	} {
		for _, n := range table {
			out = binary.LittleEndian.AppendUint32(out, n)
		}
	}
	records := len(out)
	e := encoder{Encoder: sections.Encoder{B: append(out, make([]byte, frozenRecordSize*len(o.list))...)}}
	start := len(e.B)
	for i, d := range o.list {
		r := e.B[records+frozenRecordSize*i:]
		binary.LittleEndian.PutUint64(r, d.path)
		binary.LittleEndian.PutUint32(r[8:], uint32(len(e.B)-start))
		if d.Unready() {
			counts[i] |= unreadyMark
		}
		binary.LittleEndian.PutUint32(r[12:], counts[i])
		e.dormant(d)
	}
	size := len(e.B) - start
	referents := slices.SortedFunc(maps.Keys(o.refers), schemas.Ref.Compare)
	var names encoder
	from := 0
	for _, ref := range referents {
		e.B = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(e.B, uint32(len(names.B))), uint32(from))
		names.String(ref.Kind)
		names.String(ref.Name)
		from += len(o.refers[ref])
	}
	e.B = append(e.B, names.B...)
	for _, ref := range referents {
		for _, i := range o.refers[ref] {
			e.B = binary.LittleEndian.AppendUint32(e.B, i)
		}
	}
	copy(e.B, frozenVersion)
	for i, n := range []uint64{key, 0, uint64(len(o.files)), uint64(len(o.list)), uint64(len(referents)), uint64(size), uint64(len(names.B))} {
		binary.LittleEndian.PutUint64(e.B[len(frozenVersion)+8*i:], n)
	}
	binary.LittleEndian.PutUint64(e.B[len(frozenVersion)+8:], xxhash.Sum64(e.B[len(frozenVersion)+16:]))
	return e.B
}

// readFrozen maps the file of frozen objects with that hash; nil if it is another one, or damaged. The mapping stays until
// the process ends: names of objects point into it.
func (s *Store) readFrozen(hash uint64) *frozen {
	if hash == 0 {
		return &frozen{slots: make([]byte, 4), looks: make([]byte, 4), decoder: *newDecoder(s)}
	}
	f, fi, err := regular.Open(s.root, frozenPath)
	if err != nil {
		return nil
	}
	defer f.Close()
	if fi.Size() < int64(frozenHeader) {
		return nil
	}
	return s.mapFrozen(f, int(fi.Size()), hash)
}

func (s *Store) mapFrozen(f *os.File, size int, hash uint64) *frozen {
	data, release, err := disk.Map(f, size)
	if err != nil {
		return nil
	}
	z := s.decodeFrozen(data, s.cache.key(), hash)
	if z == nil {
		release()
	}
	return z
}

// decodeFrozen returns nil if data is not a complete file of frozen objects with that hash. It keeps data.
func (s *Store) decodeFrozen(data []byte, key, hash uint64) *frozen {
	if len(data) < frozenHeader || string(data[:len(frozenVersion)]) != frozenVersion {
		return nil
	}
	rest := data[len(frozenVersion):]
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(rest[8*i:]) }
	if number(0) != key || number(1) != hash || xxhash.Sum64(rest[16:]) != hash {
		return nil
	}
	n, objects, referents, coded, names := number(2), number(3), number(4), number(5), number(6)
	rest = data[frozenHeader:]
	take := func(size uint64) []byte {
		part := rest[:min(size, uint64(len(rest)))]
		rest = rest[len(part):]
		return part
	}
	z := &frozen{hash: hash, files: take(baseFileSize * n)}
	table := 4 * uint64(tableSize(int(n)))
	z.slots, z.looks, z.records, z.coded = take(table), take(table), take(frozenRecordSize*objects), take(coded)
	z.referents, z.names = take(referentSize*referents), take(names)
	z.decoder, z.referrers, z.kinds = *newDecoder(s), rest, map[string][2]int{}
	if len(z.coded) != int(coded) || len(z.referents) != int(referentSize*referents) || len(z.names) != int(names) || len(rest)%4 != 0 {
		return nil
	}
	for i := 0; i < z.objects(); {
		kind := z.ref(i).Kind
		end := i + sort.Search(z.objects()-i, func(n int) bool { return z.ref(i+n).Kind > kind })
		z.kinds[kind] = [2]int{i, end}
		i = end
	}
	return z
}

// referrersOf yields the indices of the objects that refer to ref, in their order.
func (z *frozen) referrersOf(ref schemas.Ref) iter.Seq[int] {
	return func(yield func(int) bool) {
		at, ok := sort.Find(len(z.referents)/referentSize, func(i int) int {
			d := z.decoder
			d.B = z.names[binary.LittleEndian.Uint32(z.referents[referentSize*i:]):]
			return ref.Compare(schemas.Ref{Kind: d.kindName(), Name: d.Shared()})
		})
		if !ok {
			return
		}
		for i := z.firstReferrer(at); i < z.firstReferrer(at+1); i++ {
			if !yield(int(binary.LittleEndian.Uint32(z.referrers[4*i:]))) {
				return
			}
		}
	}
}

// firstReferrer returns where the list of the objects that refer to a referent begins.
func (z *frozen) firstReferrer(referent int) int {
	if referentSize*referent == len(z.referents) {
		return len(z.referrers) / 4
	}
	return int(binary.LittleEndian.Uint32(z.referents[referentSize*referent+4:]))
}

// len is the number of files, and objects that of objects.
func (z *frozen) len() int     { return len(z.files) / baseFileSize }
func (z *frozen) objects() int { return len(z.records) / frozenRecordSize }

func (z *frozen) file(i int) baseFile { return readBaseFile(z.files[baseFileSize*i:]) }

// owner returns 1 + the index of the object that owns a file.
func (z *frozen) owner(i int) int {
	return int(binary.LittleEndian.Uint64(z.files[baseFileSize*i+baseFileSize-8:]))
}

// hasStat reports whether the file has that hash of its stat.
func (z *frozen) hasStat(i int, look [2]uint64) bool {
	f := z.files[baseFileSize*i+16:]
	return binary.LittleEndian.Uint64(f) == look[0] && binary.LittleEndian.Uint64(f[8:]) == look[1]
}

// find returns the index of the file with that hash of its path; -1 without one.
func (z *frozen) find(path uint64) int {
	return lookUpBytes(z.slots, path, func(i int) uint64 { return binary.LittleEndian.Uint64(z.files[baseFileSize*i:]) })
}

// findByStat returns the index of the file with that hash of its stat; -1 without one.
func (z *frozen) findByStat(look [2]uint64) int {
	i := lookUpBytes(z.looks, look[0], func(i int) uint64 { return binary.LittleEndian.Uint64(z.files[baseFileSize*i+16:]) })
	if i >= 0 && !z.hasStat(i, look) {
		return -1
	}
	return i
}

// lookUpBytes is lookUpHash in an encoded table.
func lookUpBytes(slots []byte, hash uint64, at func(i int) uint64) int {
	mask := uint64(len(slots)/4 - 1)
	for s := hash & mask; ; s = (s + 1) & mask {
		n := binary.LittleEndian.Uint32(slots[4*s:])
		if n == 0 {
			return -1
		}
		if i := int(n - 1); at(i) == hash {
			return i
		}
	}
}

// record returns what an object's record has.
func (z *frozen) record(i int) (path uint64, offset, files int) {
	r := z.records[frozenRecordSize*i:]
	return binary.LittleEndian.Uint64(r), int(binary.LittleEndian.Uint32(r[8:])), int(binary.LittleEndian.Uint32(r[12:]) &^ unreadyMark)
}

// countUnready counts the objects of a kind that wait, as they should, without those that are thawed.
func (z *frozen) countUnready(kind string, thawed []bool) (n int) {
	from, to := z.ofKind(kind)
	for i := from; i < to; i++ {
		if !thawed[i] && binary.LittleEndian.Uint32(z.records[frozenRecordSize*i+12:])&unreadyMark != 0 {
			n++
		}
	}
	return n
}

// read decodes an object into o, whose list of references it overwrites.
func (z *frozen) read(i int, o *Dormant) {
	_, at, _ := z.record(i)
	d := z.decoder
	d.B, d.kind = z.coded[at:], o.Kind
	d.dormant(o)
}

func (z *frozen) ref(i int) schemas.Ref {
	_, at, _ := z.record(i)
	d := z.decoder
	d.B = z.coded[at:]
	return schemas.Ref{Kind: d.kindName(), Name: d.Shared()}
}

// search returns the index of an object, or where it would be.
func (z *frozen) search(ref schemas.Ref) (int, bool) {
	n := z.objects()
	i := sort.Search(n, func(i int) bool { return z.ref(i).Compare(ref) >= 0 })
	return i, i < n && z.ref(i) == ref
}

// ofKind returns the range of the objects of a kind; of all for "".
func (z *frozen) ofKind(kind string) (from, to int) {
	if kind == "" {
		return 0, z.objects()
	}
	return z.kinds[kind][0], z.kinds[kind][1]
}

func (f *baseFile) append(to []byte) []byte {
	for _, n := range [...]uint64{f.path, f.content, f.statHash[0], f.statHash[1], f.at, f.owner} {
		to = binary.LittleEndian.AppendUint64(to, n)
	}
	return to
}

func readBaseFile(b []byte) baseFile {
	v := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return baseFile{v(0), v(1), [2]uint64{v(2), v(3)}, v(4), v(5)}
}

// tableSize is the number of slots of a hash table of n hashes.
func tableSize(n int) int {
	size := 16
	for size*3 < n*4 {
		size *= 2
	}
	return size
}

// hashTable makes a hash table of n hashes.
func hashTable(n int, hash func(i int) uint64) []uint32 {
	slots := make([]uint32, tableSize(n))
	mask := uint64(len(slots) - 1)
	for i := range n {
		at := hash(i) & mask
		for slots[at] != 0 {
			at = (at + 1) & mask
		}
		slots[at] = uint32(i + 1)
	}
	return slots
}

// hashOf is the hash of a path.
func hashOf(p string) uint64 { return xxhash.Sum64String(p) }

// lookUpHash returns the index of a hash, or -1.
func lookUpHash(slots []uint32, hash uint64, at func(i int) uint64) int {
	mask := uint64(len(slots) - 1)
	for s := hash & mask; slots[s] != 0; s = (s + 1) & mask {
		if i := int(slots[s] - 1); at(i) == hash {
			return i
		}
	}
	return -1
}

// len is the number of files: first those of frozen objects, some of which may be thawed, then the others.
func (b *base) len() int { return b.frozen.len() + len(b.files) }

func (b *base) file(i int) baseFile {
	if n := b.frozen.len(); i >= n {
		return b.files[i-n]
	}
	return b.frozen.file(i)
}

// owner returns 1 + the index of the dormant object that owns the file; 0: none.
func (b *base) owner(i int) int {
	if n := b.frozen.len(); i >= n {
		return int(b.files[i-n].owner)
	}
	return b.frozen.owner(i)
}

// thawedFile reports whether the file is one of frozen objects, and its object is not dormant any more: another entry describes the
// file, or none.
func (b *base) thawedFile(i int) bool {
	return i < b.frozen.len() && len(b.thawedList) > 0 && b.thawed[b.frozen.owner(i)-1]
}

// find returns the index of a file by the hash of its path; -1 if it did not exist.
func (b *base) find(path uint64) int {
	if i := b.frozen.find(path); i >= 0 && !b.thawedFile(i) {
		return i
	}
	if i := lookUpHash(b.slots, path, func(i int) uint64 { return b.files[i].path }); i >= 0 {
		return b.frozen.len() + i
	}
	return -1
}

// named returns what the base has about the file at a path; ok is false if the file did not exist.
func (b *base) named(p string) (f baseFile, ok bool) {
	i := b.find(hashOf(p))
	if i < 0 {
		return f, false
	}
	return b.file(i), true
}
