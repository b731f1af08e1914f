package state

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// base is what each file of the tree held when Settle was called last. It lets a run decide only what may have changed
// since. Nothing depends on it: where it is lost, damaged or of another program, everything is decided.
type base struct {
	slots  []uint64 // a hash table of pairs: of a path, and of what the file held
	files  int      // how many of them are files of the tree, the settings among them
	inputs int
	clocks []schemas.Ref // objects that are decided again at some time although nothing changes
}

const (
	basePath    = cacheDir + "/base"
	baseVersion = "reconcile settled tree 1\n"
	baseHeader  = len(baseVersion) + 5*8 // key, hash of the rest, numbers of files and inputs, length of the table in pairs
)

func newBase(files int) *base {
	n := 16
	for n*3 < files*4 {
		n *= 2
	}
	return &base{slots: make([]uint64, 2*n)}
}

// at is where the pair of a path stands, or is to stand.
func (b *base) at(path uint64) int {
	mask := uint64(len(b.slots)/2 - 1)
	for i := path & mask; ; i = (i + 1) & mask {
		if at := 2 * i; b.slots[at] == path || b.slots[at] == 0 {
			return int(at)
		}
	}
}

func (b *base) add(path, content uint64) {
	at := b.at(path)
	b.slots[at], b.slots[at+1] = path, content
}

// find returns what the file held; ok is false for one that did not exist.
func (b *base) find(path uint64) (content uint64, ok bool) {
	at := b.at(path)
	return b.slots[at+1], b.slots[at] != 0
}

// hashOf is the hash of a path, which is never zero: that stands for no file. hashOfInput is that of an input, which may be
// a file of the tree, too.
func hashOf(p string) uint64 { return max(1, xxhash.Sum64String(p)) }

func hashOfInput(p string) uint64 { return hashOf("\x00input\x00" + p) }

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

// base is what the model knows.
func (m *model) base(clocks []schemas.Ref) *base {
	b := newBase(len(m.files) + len(m.inputs.files) + 1)
	b.clocks, b.files, b.inputs = clocks, len(m.files)+1, len(m.inputs.files)
	b.add(hashOf(schemas.SettingsPath), m.settings.sum)
	for p, f := range m.files {
		b.add(hashOf(p), f.content())
	}
	for p, f := range m.inputs.files {
		b.add(hashOfInput(p), f.content())
	}
	return b
}

func (b *base) encode(key uint64) []byte {
	out := make([]byte, 0, baseHeader+8*len(b.slots)+64*len(b.clocks))
	out = append(out, baseVersion...)
	for _, n := range []uint64{key, 0, uint64(b.files), uint64(b.inputs), uint64(len(b.slots) / 2)} {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	for _, n := range b.slots {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	for _, ref := range b.clocks {
		out = append(append(append(append(out, ref.Kind...), '/'), ref.Name...), '\n')
	}
	binary.LittleEndian.PutUint64(out[len(baseVersion)+8:], xxhash.Sum64(out[len(baseVersion)+16:]))
	return out
}

// hashOfBase is the hash that stands in an encoded base.
func hashOfBase(data []byte) uint64 { return binary.LittleEndian.Uint64(data[len(baseVersion)+8:]) }

// decodeBase returns nil for what is not the whole base with that hash.
func decodeBase(data []byte, key, hash uint64) *base {
	if len(data) < baseHeader || string(data[:len(baseVersion)]) != baseVersion {
		return nil
	}
	rest := data[len(baseVersion):]
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(rest[8*i:]) }
	if number(0) != key || number(1) != hash || xxhash.Sum64(rest[16:]) != hash {
		return nil
	}
	b := &base{files: int(number(2)), inputs: int(number(3)), slots: make([]uint64, 2*number(4))}
	rest = rest[40:]
	for i := range b.slots {
		b.slots[i] = number(i)
	}
	for line := range strings.Lines(string(rest[8*len(b.slots):])) {
		kind, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "/")
		b.clocks = append(b.clocks, schemas.Ref{Kind: kind, Name: name})
	}
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
	b := decodeBase(data, s.cache.key(), was.Base)
	if b == nil {
		return nil
	}
	if sum, ok := b.find(hashOf(schemas.SettingsPath)); !ok || sum != m.settings.sum {
		return nil
	}
	return b
}

// writeBase keeps what the model knows, and returns its hash.
func (s *Store) writeBase(clocks []schemas.Ref) (uint64, error) {
	data := s.model.base(clocks).encode(s.cache.key())
	return hashOfBase(data), s.replaceLocal(basePath, data)
}

// since finds what differs from the tree that was settled.
type since struct {
	*update
	base  *base
	known map[string]*file // what earlier processes read
	specs map[schemas.Ref]bool
	paths []string // of specs that came or went
}

// changedSince returns the objects that are to be decided again because something differs from the tree that was settled
// last, sorted; ok is false where everything is to be decided.
func (s *Store) changedSince(m *model, known map[string]*file) (refs []schemas.Ref, ok bool) {
	was, ok := s.readSettled()
	if !ok {
		return nil, false
	}
	for _, v := range m.journals {
		if len(v.owners) > 0 || len(v.problems) > 0 {
			return nil, false
		}
	}
	b := s.readBase(was, m)
	if b == nil {
		return nil, false
	}
	u := &since{update: s.update(), base: b, known: known, specs: map[schemas.Ref]bool{}}
	u.model = m
	if !u.files() {
		return nil, false
	}
	u.inputs()
	u.outputs(was)
	u.readers()
	for _, ref := range b.clocks {
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
	left := u.base.files - 1
	for p, f := range u.model.files {
		sum, had := u.base.find(hashOf(p))
		if had {
			left--
		}
		if had && sum == f.content() {
			continue
		}
		if !u.readable(f) {
			return false
		}
		if had && f.area == areaSpecs && !u.forget(p, sum) {
			return false
		}
		u.about(f, !had)
	}
	if left == 0 {
		return true
	}
	for p := range u.known {
		if u.model.files[p] != nil {
			continue
		}
		if sum, had := u.base.find(hashOf(p)); had {
			if left--; !u.forget(p, sum) {
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
	left := u.base.inputs
	for p, f := range in.files {
		sum, had := u.base.find(hashOfInput(p))
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
func (u *since) outputs(was settled) {
	gone := map[string]bool{}
	for _, p := range was.Missing {
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
