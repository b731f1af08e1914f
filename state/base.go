package state

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// base is what each file of the tree held when Settle was called last. It lets a run read and decide only what may have
// changed since. Nothing depends on it: where it is lost, damaged or of another program, everything is read and decided.
type base struct {
	files    []baseFile
	inputs   []baseInput
	settings uint64        // what they held
	records  uint64        // in the cache
	clocks   []schemas.Ref // objects that are decided again at some time although nothing changes
	dormant  []Dormant     // sorted
	slots    []uint32      // hash tables of files by their paths, and by their looks: 1 + the index; 0: free
	looks    []uint32
	inSlots  []uint32 // of inputs
}

// baseFile is what a file of the tree was.
type baseFile struct {
	path    uint64    // the hash of its path
	content uint64    // of what it held
	look    [2]uint64 // of what the file system said of it, as in a sum
	at      uint64    // of the cache's record of it; 0: not known
	owner   uint64    // 1 + the index of the dormant object that it is of; 0: of none
}

// baseInput is what an input was, which may be a file of the tree, too.
type baseInput struct{ path, content uint64 }

const (
	basePath      = cacheDir + "/base"
	baseVersion   = "reconcile settled tree 2\n"
	baseHeader    = len(baseVersion) + 7*8 // key, hash of the rest, settings, records, numbers of files and inputs, bytes of what follows these
	baseFileSize  = 6 * 8
	baseInputSize = 2 * 8
)

// hashOf is the hash of a path.
func hashOf(p string) uint64 { return xxhash.Sum64String(p) }

// content is a hash of what a file holds: of what was not read, of what the file system says of it.
func (f *file) content() uint64 {
	if f.area != areaOther && f.sum != 0 {
		return f.sum
	}
	var b [36]byte
	for i, n := range []uint64{uint64(f.stat.Size), uint64(f.stat.Mtime), uint64(f.stat.Ctime), f.stat.Ino} {
		binary.LittleEndian.PutUint64(b[8*i:], n)
	}
	binary.LittleEndian.PutUint32(b[32:], f.stat.Mode)
	return xxhash.Sum64(b[:])
}

func (f *inputFile) content() uint64 { return binary.LittleEndian.Uint64(f.digest[:]) }

// table makes a hash table of n hashes.
func table(n int, hash func(i int) uint64) []uint32 {
	size := 16
	for size*3 < n*4 {
		size *= 2
	}
	slots, mask := make([]uint32, size), uint64(size-1)
	for i := range n {
		at := hash(i) & mask
		for slots[at] != 0 {
			at = (at + 1) & mask
		}
		slots[at] = uint32(i + 1)
	}
	return slots
}

// lookUp returns the index of a hash, or -1.
func lookUp(slots []uint32, hash uint64, at func(i int) uint64) int {
	mask := uint64(len(slots) - 1)
	for s := hash & mask; slots[s] != 0; s = (s + 1) & mask {
		if i := int(slots[s] - 1); at(i) == hash {
			return i
		}
	}
	return -1
}

func (b *base) index() {
	b.slots = table(len(b.files), func(i int) uint64 { return b.files[i].path })
	b.looks = table(len(b.files), func(i int) uint64 { return b.files[i].look[0] })
	b.inSlots = table(len(b.inputs), func(i int) uint64 { return b.inputs[i].path })
}

// find returns the index of a file by the hash of its path; -1 if there was none.
func (b *base) find(path uint64) int {
	return lookUp(b.slots, path, func(i int) uint64 { return b.files[i].path })
}

// findLook is find by what the file system says of a file.
func (b *base) findLook(look [2]uint64) int {
	i := lookUp(b.looks, look[0], func(i int) uint64 { return b.files[i].look[0] })
	if i >= 0 && b.files[i].look != look {
		return -1
	}
	return i
}

// file is find by the path; nil if there was none.
func (b *base) file(p string) *baseFile {
	if i := b.find(hashOf(p)); i >= 0 {
		return &b.files[i]
	}
	return nil
}

// input returns what an input held; ok is false for one that did not exist.
func (b *base) input(p string) (content uint64, ok bool) {
	i := lookUp(b.inSlots, hashOf(p), func(i int) uint64 { return b.inputs[i].path })
	if i < 0 {
		return 0, false
	}
	return b.inputs[i].content, true
}

// base is what the model knows; asleep are the objects that become dormant.
func (m *model) base(clocks, asleep []schemas.Ref) *base {
	b := &base{clocks: clocks, settings: m.settings.sum, files: make([]baseFile, 0, len(m.files)+m.dormant.files())}
	owners := b.putDormant(m, asleep)
	var hash summer
	for p, f := range m.files {
		dir, name := splitPath(p)
		e := baseFile{path: hashOf(p), content: f.content(), look: hash.look(dir, []byte(name), &f.stat), at: uint64(f.at)}
		if len(owners) > 0 {
			e.owner = owners[m.refOf(f)]
		}
		b.files = append(b.files, e)
	}
	for p, f := range m.inputs.files {
		b.inputs = append(b.inputs, baseInput{hashOf(p), f.content()})
	}
	return b
}

// sum is the fingerprint of the files of the tree.
func (b *base) sum() (s sum) {
	for i := range b.files {
		s.merge(sum{b.files[i].look[0], b.files[i].look[1], 1})
	}
	return s
}

func (b *base) encode(key uint64) []byte {
	var e encoder
	e.uint(uint64(len(b.clocks)))
	for _, ref := range b.clocks {
		e.str(ref.Kind)
		e.str(ref.Name)
	}
	e.dormant(b.dormant)
	out := make([]byte, 0, baseHeader+baseFileSize*len(b.files)+baseInputSize*len(b.inputs)+len(e.b))
	out = append(out, baseVersion...)
	for _, n := range []uint64{key, 0, b.settings, b.records, uint64(len(b.files)), uint64(len(b.inputs)), uint64(len(e.b))} {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	for i := range b.files {
		f := &b.files[i]
		for _, n := range [...]uint64{f.path, f.content, f.look[0], f.look[1], f.at, f.owner} {
			out = binary.LittleEndian.AppendUint64(out, n)
		}
	}
	for _, f := range b.inputs {
		out = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(out, f.path), f.content)
	}
	out = append(out, e.b...)
	binary.LittleEndian.PutUint64(out[len(baseVersion)+8:], xxhash.Sum64(out[len(baseVersion)+16:]))
	return out
}

// hashOfBase is the hash that stands in an encoded base.
func hashOfBase(data []byte) uint64 { return binary.LittleEndian.Uint64(data[len(baseVersion)+8:]) }

// decodeBase returns nil for what is not the whole base with that hash. It keeps data, which must not change.
func (s *Store) decodeBase(data []byte, key, hash uint64) *base {
	if len(data) < baseHeader || string(data[:len(baseVersion)]) != baseVersion {
		return nil
	}
	rest := data[len(baseVersion):]
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(rest[8*i:]) }
	if number(0) != key || number(1) != hash || xxhash.Sum64(rest[16:]) != hash {
		return nil
	}
	b := &base{settings: number(2), records: number(3), files: make([]baseFile, number(4)), inputs: make([]baseInput, number(5))}
	if uint64(len(data)-baseHeader) != baseFileSize*number(4)+baseInputSize*number(5)+number(6) {
		return nil
	}
	rest = data[baseHeader:]
	for i := range b.files {
		b.files[i] = baseFile{number(0), number(1), [2]uint64{number(2), number(3)}, number(4), number(5)}
		rest = rest[baseFileSize:]
	}
	for i := range b.inputs {
		b.inputs[i] = baseInput{number(0), number(1)}
		rest = rest[baseInputSize:]
	}
	d := newDecoder(s)
	d.b = rest
	for range d.count() {
		b.clocks = append(b.clocks, schemas.Ref{Kind: d.kindName(), Name: d.shared()})
	}
	if b.dormant = d.dormant(); d.bad {
		return nil
	}
	b.index()
	return b
}

// readBase returns what the tree was when it was settled as was tells; nil where that is not known any more, or does not
// bind this process.
func (s *Store) readBase(was settled, m *model) *base {
	if s.opts.NoCache || was.Build != s.opts.Build || s.opts.Now().Before(was.At) ||
		was.Folders.Specs != m.layout.specs || was.Folders.State != m.layout.state {
		return nil
	}
	data, err := regular.Read(s.root, basePath)
	if err != nil {
		return nil
	}
	b := s.decodeBase(data, s.cache.key(), was.Base)
	if b == nil || b.settings != m.settings.sum {
		return nil
	}
	return b
}

// writeBase keeps what is known of the tree, and returns the hash of that; 0 where something cannot be looked at: once it can,
// everything is to be decided.
func (s *Store) writeBase(b *base) (uint64, error) {
	if len(s.model.troubles) > 0 {
		return 0, nil
	}
	b.records = uint64(s.cache.records)
	data := b.encode(s.cache.key())
	return hashOfBase(data), s.replaceLocal(basePath, data)
}

// since finds what differs from the tree that was settled.
type since struct {
	*update
	was   settled
	base  *base
	known map[string]*file // what earlier processes read
	specs map[schemas.Ref]bool
	paths []string // of specs that came or went
}

// changedSince returns the objects that are to be decided again because something differs from the tree that was settled
// last, sorted; ok is false where everything is to be decided.
func (s *Store) changedSince(m *model, known map[string]*file) (refs []schemas.Ref, ok bool) {
	was, ok := s.readSettled()
	if !ok || m.journaled() {
		return nil, false
	}
	b := s.readBase(was, m)
	if b == nil {
		return nil, false
	}
	return s.since(m, was, b, known).refs()
}

func (s *Store) since(m *model, was settled, b *base, known map[string]*file) *since {
	u := &since{update: s.update(), was: was, base: b, known: known, specs: map[schemas.Ref]bool{}}
	u.model = m
	return u
}

// refs are the objects that are to be decided again, sorted; ok is false where everything is.
func (u *since) refs() (refs []schemas.Ref, ok bool) {
	if !u.files() {
		return nil, false
	}
	u.inputs()
	u.outputs()
	u.readers()
	for _, ref := range u.base.clocks {
		u.touch(ref)
	}
	for ref := range u.touched {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, schemas.Ref.Compare)
	return refs, true
}

// files touches what files are about that came, went, or hold something else. It is false where what that bears on cannot
// be told any more.
func (u *since) files() bool {
	left := len(u.base.files) - u.model.dormant.files()
	for p, f := range u.model.files {
		was := u.base.file(p)
		if was != nil {
			left--
		}
		if was != nil && was.content == f.content() {
			continue
		}
		if !u.readable(f) {
			return false
		}
		if was != nil && f.area == areaSpecs && !u.forget(p, was.content) {
			return false
		}
		u.about(f, was == nil)
	}
	if left == 0 {
		return true
	}
	for p := range u.known {
		if u.model.files[p] != nil {
			continue
		}
		if was := u.base.file(p); was != nil {
			if left--; !u.forget(p, was.content) {
				return false
			}
		}
	}
	return left == 0
}

// readable reports whether it can be told who reads what a file holds. Of statuses and records it cannot, once they say
// something else: a DAG that is broken belongs to the session that its status names, an agent is stuck by a record.
func (*since) readable(f *file) bool { return f.area != areaStatus && f.area != areaRuns }

// forget touches what a file was about that is gone or says something else now, and what it referred to and does not any more.
func (u *since) forget(p string, sum uint64) bool {
	old := u.known[p]
	if old == nil || !u.readable(old) || old.area == areaSpecs && old.sum != sum {
		return false
	}
	now := u.model.files[p]
	u.about(old, now == nil || u.model.refOf(now) != u.model.refOf(old))
	body, ok := old.body.(*specBody)
	if !ok {
		return true
	}
	var still []schemas.Reference
	if now != nil {
		still = now.body.(*specBody).references()
	}
	for _, r := range body.references() {
		if !slices.ContainsFunc(still, func(s schemas.Reference) bool { return s.To == r.To }) {
			u.touch(r.To)
		}
	}
	return true
}

func (u *since) about(f *file, moved bool) {
	ref := u.model.refOf(f)
	u.touch(ref)
	if f.area != areaSpecs {
		return
	}
	u.specs[ref] = true
	if moved {
		u.paths = append(u.paths, f.path)
	}
}

// inputs touches the objects with inputs that differ. Of inputs that are gone nothing is known: then it is all of them.
func (u *since) inputs() {
	in := u.model.inputs
	var changed []string
	left := len(u.base.inputs)
	for p, f := range in.files {
		sum, had := u.base.input(p)
		if had {
			left--
		}
		if !had || sum != f.content() {
			changed = append(changed, p)
		}
	}
	for ref, nodes := range in.nodes {
		for _, globs := range nodes {
			if left != 0 || slices.ContainsFunc(globs, func(g string) bool {
				return slices.ContainsFunc(changed, func(p string) bool { return matchGlob(g, p) })
			}) {
				u.touch(ref)
			}
		}
	}
}

// outputs touches the objects of which a declared output came or went, or is missing: the cache of outputs may have it now.
func (u *since) outputs() {
	gone := map[string]bool{}
	for _, p := range u.was.Missing {
		gone[p] = true
	}
	for p, owners := range u.model.declared.owners {
		if u.model.declared.missing[p] || gone[p] {
			for _, ref := range owners {
				u.touch(ref)
			}
		}
	}
}

// readers touches the objects whose files are judged by what was touched.
func (u *since) readers() {
	for p := range u.model.related {
		if f := u.model.files[p]; u.touchedBy(f.body.(*specBody)) {
			u.touch(u.model.refOf(f))
		}
	}
	if len(u.specs) == 0 {
		return
	}
	low := map[string]bool{}
	for _, p := range u.paths {
		low[strings.ToLower(p)] = true
	}
	for p, f := range u.model.files {
		b, ok := f.body.(*specBody)
		if !ok {
			continue
		}
		if len(low) > 0 && (u.model.missing[p] || low[strings.ToLower(p)]) ||
			slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return u.specs[r.To] }) {
			u.touch(b.ref)
		}
	}
}
