package state

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	quick "github.com/segmentio/encoding/json"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state/regular"
)

const (
	basePath      = cacheDir + "/base"
	baseVersion   = "reconcile settled tree 4\n"
	baseHeader    = len(baseVersion) + 14*8 // the numbers of baseNumbers
	baseInputSize = 2 * 8
)

// baseNumbers are the first numbers of an encoded base.
type baseNumbers struct {
	key, hash         uint64 // hash is that of what follows it
	settings, records uint64
	frozen            uint64 // the hash of the file of frozen objects
	live              fingerprint
	files, inputs     uint64
	rest              uint64   // bytes of what follows the files and inputs
	last              baseFile // the path, content and offset of the last record in the cache
}

func (n *baseNumbers) put(b []byte) {
	for i, v := range []uint64{n.key, n.hash, n.settings, n.records, n.frozen, n.live.A, n.live.B, uint64(n.live.Files), n.files, n.inputs, n.rest,
		n.last.path, n.last.content, n.last.at} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

func readBaseNumbers(b []byte) (n baseNumbers) {
	v := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return baseNumbers{v(0), v(1), v(2), v(3), v(4), fingerprint{v(5), v(6), int(v(7))}, v(8), v(9), v(10), baseFile{path: v(11), content: v(12), at: v(13)}}
}

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

func (f *inputFile) content() uint64 { return binary.LittleEndian.Uint64(f.digest[:]) }

func (b *base) index() {
	b.slots = hashTable(len(b.files), func(i int) uint64 { return b.files[i].path })
	b.looks = hashTable(len(b.files), func(i int) uint64 { return b.files[i].statHash[0] })
	b.recentFiles = make([]int, len(b.recent))
	for _, f := range b.files {
		if n := b.frozen.objects(); int(f.owner) > n {
			b.recentFiles[int(f.owner)-n-1]++
		}
	}
	b.inputSlots = hashTable(len(b.inputs), func(i int) uint64 { return b.inputs[i].path })
}

// findByStat is find by the hash of a file's stat. Scans find files in nearly the same order again: guess is the index that is
// tried first.
func (b *base) findByStat(look [2]uint64, guess int) int {
	i := guess
	if i >= b.frozen.len() || !b.frozen.hasStat(i, look) {
		i = b.frozen.findByStat(look)
	}
	if i >= 0 && !b.thawedFile(i) {
		return i
	}
	if i = lookUpHash(b.looks, look[0], func(i int) uint64 { return b.files[i].statHash[0] }); i < 0 || b.files[i].statHash != look {
		return -1
	}
	return b.frozen.len() + i
}

// input returns the hash of an input's content; ok is false if it did not exist.
func (b *base) input(p string) (content uint64, ok bool) {
	i := lookUpHash(b.inputSlots, hashOf(p), func(i int) uint64 { return b.inputs[i].path })
	if i < 0 {
		return 0, false
	}
	return b.inputs[i].content, true
}

// encodeBase encodes the base of the model, and returns the fingerprint of the files of the tree with it.
func (m *model) encodeBase(key, records uint64, clocks []schemas.Ref, dormant *nextDormants) ([]byte, fingerprint) {
	n := baseNumbers{key: key, settings: m.settings.sum, records: records, frozen: dormant.hash, live: dormant.live, inputs: uint64(len(m.inputs.files))}
	out := make([]byte, baseHeader, baseHeader+baseFileSize*(len(m.files)+len(dormant.files))+baseInputSize*len(m.inputs.files)+128*len(dormant.recent))
	sum := dormant.live
	add := func(f *baseFile) {
		out = f.append(out)
		sum.merge(fingerprint{f.statHash[0], f.statHash[1], 1})
		n.files++
	}
	for i := range dormant.files {
		add(&dormant.files[i])
	}
	if m.dormant != nil {
		n.last = m.dormant.base.last
	}
	var hash fingerprinter
	for p, f := range m.files {
		e := f.inBase(&hash, p)
		if e.owner = dormant.owners[m.refOf(f)]; e.owner != isFrozen {
			add(&e)
		}
		if e.at > n.last.at {
			n.last = e
		}
	}
	for p, f := range m.inputs.files {
		out = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(out, hashOf(p)), f.content())
	}
	listed := len(out)
	e := encoder{Encoder: sections.Encoder{B: out}}
	e.refs(clocks)
	e.Uint(uint64(len(dormant.thawed)))
	for _, i := range dormant.thawed {
		e.Uint(uint64(i))
	}
	e.Uint(uint64(len(dormant.recent)))
	for _, o := range dormant.recent {
		e.dormant(o)
	}
	n.rest = uint64(len(e.B) - listed)
	copy(e.B, baseVersion)
	n.put(e.B[len(baseVersion):])
	n.hash = xxhash.Sum64(e.B[len(baseVersion)+16:])
	n.put(e.B[len(baseVersion):])
	return e.B, sum
}

// inBase describes a file for the base.
func (f *file) inBase(hash *fingerprinter, p string) baseFile {
	dir, name := splitPath(p)
	return baseFile{path: hashOf(p), content: f.content(), statHash: hash.statHash(dir, []byte(name), &f.stat), at: uint64(f.at)}
}

// hashOfBase returns the hash in an encoded base.
func hashOfBase(data []byte) uint64 { return binary.LittleEndian.Uint64(data[len(baseVersion)+8:]) }

// decodeBase returns nil if data is not a complete base with that hash. It keeps data, which must not change.
func (s *Store) decodeBase(data []byte, key, hash uint64) *base {
	if len(data) < baseHeader || string(data[:len(baseVersion)]) != baseVersion {
		return nil
	}
	n := readBaseNumbers(data[len(baseVersion):])
	if n.key != key || n.hash != hash || xxhash.Sum64(data[len(baseVersion)+16:]) != hash {
		return nil
	}
	rest := data[baseHeader:]
	if uint64(len(rest)) != baseFileSize*n.files+baseInputSize*n.inputs+n.rest {
		return nil
	}
	b := &base{settings: n.settings, records: n.records, live: n.live, last: n.last, files: make([]baseFile, n.files), inputs: make([]baseInput, n.inputs)}
	for i := range b.files {
		b.files[i], rest = readBaseFile(rest), rest[baseFileSize:]
	}
	for i := range b.inputs {
		b.inputs[i] = baseInput{binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])}
		rest = rest[baseInputSize:]
	}
	if b.frozen = s.readFrozen(n.frozen); b.frozen == nil {
		return nil
	}
	d := newDecoder(s)
	d.B = rest
	b.clocks = d.refs()
	b.thawed = make([]bool, b.frozen.objects())
	for range d.Count(1) {
		i := d.Uint()
		if i >= uint64(len(b.thawed)) {
			return nil
		}
		b.thawed[i], b.thawedList = true, append(b.thawedList, int(i))
	}
	b.recent = make([]Dormant, d.Count(1))
	for i := range b.recent {
		d.dormant(&b.recent[i])
	}
	if d.Bad {
		return nil
	}
	b.index()
	return b
}

// readBase returns the base that belongs to was; nil if it is missing or does not apply to this process.
func (s *Store) readBase(was settled, m *model) *base {
	if !s.applies(was) || was.Folders.Specs != m.layout.specs || was.Folders.State != m.layout.state {
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

// applies reports whether what was recorded of the settled tree is of this program, and not of the future.
func (s *Store) applies(was settled) bool {
	return !s.opts.NoCache && was.Build == s.opts.Build && !s.opts.Now().Before(was.At)
}

// archives reports whether a spec is due for the archive.
func (was settled) archives(now time.Time) bool {
	due := was.Summary.Archive
	return !due.IsZero() && !now.Before(due)
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
	Mirror bool      `json:"mirror,omitempty"` // GitHub may be out of date, as the settings say, or has to be read
	Lines  []string  `json:"lines,omitempty"`  // further output of the run
	// Report is what the caller says of objects and files if Exit is not 0, in its own form; nil: it loads the tree for that.
	Report json.RawMessage `json:"report,omitempty"`
	// Compacted is when the memory was checked for compaction last; zero: never.
	Compacted time.Time `json:"compacted,omitzero"`
	// Clocks are the objects that are decided again at some time although nothing changes.
	Clocks []schemas.Ref `json:"-"`
	// Archive is when a spec is due for the archive; zero: never. Then all objects are loaded.
	Archive time.Time `json:"archive,omitzero"`
	// Dormant are objects that need no work until one of their files, or of their references, changes.
	Dormant []schemas.Ref `json:"-"`
}

// Count is the number of objects of a kind.
type Count struct {
	Kind  string `json:"kind"`
	Ready int    `json:"ready"`
	Total int    `json:"total"`
}
