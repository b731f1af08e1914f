package state

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	quick "github.com/segmentio/encoding/json"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

const (
	basePath      = cacheDir + "/base"
	baseVersion   = "reconcile settled tree 2\n"
	baseHeader    = len(baseVersion) + 7*8 // key, hash of the rest, settings, records, numbers of files and inputs, bytes of what follows these
	baseFileSize  = 6 * 8
	baseInputSize = 2 * 8
)

// content returns a hash of the file's content; of an unread file, a hash of its stat.
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

// file is find by the path; nil if the file did not exist.
func (b *base) file(p string) *baseFile {
	if i := b.find(hashOf(p)); i >= 0 {
		return &b.files[i]
	}
	return nil
}

// find returns the index of a file by the hash of its path; -1 if it did not exist.
func (b *base) find(path uint64) int {
	return lookUpHash(b.slots, path, func(i int) uint64 { return b.files[i].path })
}

func (f *inputFile) content() uint64 { return binary.LittleEndian.Uint64(f.digest[:]) }

// hashTable makes a hash table of n hashes.
func hashTable(n int, hash func(i int) uint64) []uint32 {
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

func (b *base) index() {
	b.slots = hashTable(len(b.files), func(i int) uint64 { return b.files[i].path })
	b.looks = hashTable(len(b.files), func(i int) uint64 { return b.files[i].statHash[0] })
	b.inputSlots = hashTable(len(b.inputs), func(i int) uint64 { return b.inputs[i].path })
}

// findByStat is find by the hash of a file's stat.
func (b *base) findByStat(look [2]uint64) int {
	i := lookUpHash(b.looks, look[0], func(i int) uint64 { return b.files[i].statHash[0] })
	if i >= 0 && b.files[i].statHash != look {
		return -1
	}
	return i
}

// input returns the hash of an input's content; ok is false if it did not exist.
func (b *base) input(p string) (content uint64, ok bool) {
	i := lookUpHash(b.inputSlots, hashOf(p), func(i int) uint64 { return b.inputs[i].path })
	if i < 0 {
		return 0, false
	}
	return b.inputs[i].content, true
}

// encodeBase encodes the base of the model, and returns the fingerprint of the files of the tree with it. asleep are the
// objects that become dormant.
func (m *model) encodeBase(key, records uint64, clocks, asleep []schemas.Ref) ([]byte, fingerprint) {
	dormant := m.nextDormants(asleep)
	out := make([]byte, baseHeader, baseHeader+baseFileSize*(len(m.files)+m.dormant.files())+baseInputSize*len(m.inputs.files)+dormant.room())
	var sum fingerprint
	add := func(f baseFile) {
		for _, n := range [...]uint64{f.path, f.content, f.statHash[0], f.statHash[1], f.at, f.owner} {
			out = binary.LittleEndian.AppendUint64(out, n)
		}
		sum.merge(fingerprint{f.statHash[0], f.statHash[1], 1})
	}
	dormant.files(add)
	var hash fingerprinter
	for p, f := range m.files {
		dir, name := splitPath(p)
		e := baseFile{path: hashOf(p), content: f.content(), statHash: hash.statHash(dir, []byte(name), &f.stat), at: uint64(f.at)}
		if len(dormant.owners) > 0 {
			e.owner = dormant.owners[m.refOf(f)]
		}
		add(e)
	}
	for p, f := range m.inputs.files {
		out = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(out, hashOf(p)), f.content())
	}
	listed := len(out)
	e := encoder{b: out}
	e.uint(uint64(len(clocks)))
	for _, ref := range clocks {
		e.str(ref.Kind)
		e.str(ref.Name)
	}
	e.dormant(dormant.list)
	copy(e.b, baseVersion)
	for i, n := range []uint64{key, 0, m.settings.sum, records, uint64(sum.Files), uint64(len(m.inputs.files)), uint64(len(e.b) - listed)} {
		binary.LittleEndian.PutUint64(e.b[len(baseVersion)+8*i:], n)
	}
	binary.LittleEndian.PutUint64(e.b[len(baseVersion)+8:], xxhash.Sum64(e.b[len(baseVersion)+16:]))
	return e.b, sum
}

// hashOfBase returns the hash in an encoded base.
func hashOfBase(data []byte) uint64 { return binary.LittleEndian.Uint64(data[len(baseVersion)+8:]) }

// decodeBase returns nil if data is not a complete base with that hash. It keeps data, which must not change.
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

// readBase returns the base that belongs to was; nil if it is missing or does not apply to this process.
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

// writeBase writes the base, and returns its hash and the fingerprint of the tree's files; the hash is 0 if a file could not
// be read: once it can, everything is decided again.
func (s *Store) writeBase(clocks, asleep []schemas.Ref) (uint64, fingerprint, error) {
	data, sum := s.model.encodeBase(s.cache.key(), uint64(s.cache.records), clocks, asleep)
	if len(s.model.scanErrors) > 0 {
		return 0, sum, nil
	}
	return hashOfBase(data), sum, s.replaceLocal(basePath, data)
}

// settled is the content of the file that Settle writes, after a line with its hash.
type settled struct {
	Build   string          `json:"build"`
	Folders schemas.Folders `json:"folders"`
	Globs   []string        `json:"globs,omitempty"`
	Outputs []string        `json:"outputs,omitempty"` // declared and present
	Missing []string        `json:"missing,omitempty"` // declared and not present
	Sum     fingerprint     `json:"sum"`
	Base    uint64          `json:"base"` // the hash of the base's file
	At      time.Time       `json:"at"`
	Summary Summary         `json:"summary"`
}

func (s *Store) readSettled() (settled, bool) {
	b, err := regular.Read(s.root, settledPath)
	if err != nil || len(b) < checksumSize {
		return settled{}, false
	}
	var was settled
	want, err := strconv.ParseUint(string(b[:checksumSize-1]), 16, 64)
	rest := b[checksumSize:]
	if err != nil || want != xxhash.Sum64(rest) || quick.Unmarshal(rest, &was) != nil {
		return settled{}, false
	}
	return was, was.Folders.Specs != "" && was.Folders.State != ""
}

// Summary is the result of a run that reached its fixed point. If nothing changed since, the next run only repeats it.
type Summary struct {
	Counts []Count   `json:"counts,omitempty"`
	Exit   int       `json:"exit"`
	Wake   time.Time `json:"wake,omitzero"` // the next time at which an object is due; zero: never
	Commit bool      `json:"commit,omitempty"`
	Push   bool      `json:"push,omitempty"`   // as the settings say: fetch from the remote first
	Mirror bool      `json:"mirror,omitempty"` // as the settings say: GitHub may be out of date
	Lines  []string  `json:"lines,omitempty"`  // further output of the run
	// Clocks are the objects that are decided again at some time although nothing changes.
	Clocks []schemas.Ref `json:"-"`
	// Dormant are objects that need no work until one of their files, or of their references, changes.
	Dormant []schemas.Ref `json:"-"`
}

// Count is the number of objects of a kind.
type Count struct {
	Kind  string `json:"kind"`
	Ready int    `json:"ready"`
	Total int    `json:"total"`
}
