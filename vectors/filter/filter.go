// Package filter reports in nanoseconds that no text of a domain has a word, so that a search for it can end, or name
// the domains with results.
//
// A [Set] has for each domain a set of keys, see [Key]: those of the build in an XOR filter (Graf and Lemire, "Xor
// Filters: Faster and Smaller Than Bloom and Cuckoo Filters", 2020), 10 bits for a key, to which keys cannot be added;
// and the keys added later in blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient
// Bloom Filters", 2007), about 16 to 32 bits for a key. There are no false negatives. False positives are about 1 in
// 256, and a little more with added keys; removed keys are found until the set is rebuilt.
//
// The bytes of a set that was built depend on its keys only: not on their order, how often each is given, or the machine.
//
// # Format
//
// A file of package sections:
//
//	numbers  8 bytes each: for each domain the seed of its XOR filter, the keys in it, and the number of layers of Bloom
//	         filters; then for each layer how many keys it got
//	domains  for each domain a section with the fingerprints, one byte each, and for each layer one with its blocks of 32
//	         bytes
//
// [Open] checks all lengths; no content causes a panic. The file that contains the set as a section must compare the
// checksums.
package filter

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/FastFilter/xorfilter"
	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/vectors/graph"
)

// ErrDamaged says that bytes are not a set that was written, or one of another version.
var ErrDamaged = errors.New("the filter of the index is damaged or of another version; build it again")

const (
	domains   = 3
	maxLayers = 32
)

// format is that of sets.
var format = sections.Format{Magic: "rcnfiltr", Version: 2}

// Key returns the key of a term of package lexical: its xxhash64.
func Key(term string) uint64 { return xxhash.Sum64String(term) }

// Set is the keys of each domain. It never changes, and is safe for concurrent use.
type Set struct {
	parts [domains]part
}

// part is the set of a domain.
type part struct {
	keys    uint32
	built   xorfilter.Xor8 // without fingerprints if it has no keys
	pending []layer        // the last one is not full
}

// Build is the set of these keys.
func Build(keys map[graph.Domain][]uint64) *Set {
	s := &Set{}
	for _, d := range graph.Domains {
		s.parts[d-1] = buildPart(slices.Clone(keys[d]))
	}
	return s
}

// buildPart makes a filter of keys, which it may reorder.
func buildPart(keys []uint64) part {
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		return part{}
	}
	built, err := xorfilter.Populate(keys)
	if err != nil {
		// Each of a thousand tries with other hashes failed, which does not happen in practice; a Bloom filter holds
		// the keys, too.
		return part{}.with(keys)
	}
	return part{keys: uint32(len(keys)), built: *built}
}

// With returns a copy of the set with more keys of each domain, which are found at once. It takes time proportional to
// the keys and to those added since the build.
func (s *Set) With(keys map[graph.Domain][]uint64) *Set {
	out := *s
	for _, d := range graph.Domains {
		if len(keys[d]) > 0 {
			out.parts[d-1] = out.parts[d-1].with(keys[d])
		}
	}
	return &out
}

func (p part) with(keys []uint64) part {
	p.pending = slices.Clone(p.pending)
	fresh := false // whether the last layer is not shared with another set
	for _, key := range keys {
		if p.has(key) {
			continue
		}
		last := len(p.pending) - 1
		switch {
		case last < 0 || p.pending[last].full():
			p.pending = append(p.pending, newLayer(last+1))
			last++
		case !fresh:
			p.pending[last].blocks = bytes.Clone(p.pending[last].blocks)
		}
		fresh = true
		p.pending[last].add(key)
	}
	return p
}

func (p *part) has(key uint64) bool {
	if len(p.built.Fingerprints) > 0 && p.built.Contains(key) {
		return true
	}
	for i := range p.pending {
		if p.pending[i].has(key) {
			return true
		}
	}
	return false
}

// Probe are the domains that have any of the keys, in the order of [graph.Domains]: none, if a search for these terms
// would find nothing.
func (s *Set) Probe(keys []uint64) []graph.Domain {
	var out []graph.Domain
	for _, d := range graph.Domains {
		if slices.ContainsFunc(keys, s.parts[d-1].has) {
			out = append(out, d)
		}
	}
	return out
}

// AppendTo appends the set in its format: numbers, and for each domain its built filter and the layers of added keys.
func (s *Set) AppendTo(to []byte) []byte {
	var numbers []uint64
	parts := [][]byte{nil}
	for i := range s.parts {
		p := &s.parts[i]
		numbers = append(numbers, p.built.Seed, uint64(p.keys), uint64(len(p.pending)))
		parts = append(parts, p.built.Fingerprints)
		for _, l := range p.pending {
			numbers = append(numbers, uint64(l.keys))
			parts = append(parts, l.blocks)
		}
	}
	parts[0] = sections.Raw(numbers)
	return append(to, format.Encode(parts...).Bytes()...)
}

// Open returns the set that the data hold, after checking its sizes. The bytes are used in place and must not change while
// the set is in use.
func Open(data []byte) (*Set, error) {
	file, err := format.Open(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	s, r := &Set{}, reader{file: file, numbers: sections.Numbers[uint64](file.Get(0)), next: 1}
	for i := range s.parts {
		if s.parts[i] = r.part(); r.bad {
			return nil, fmt.Errorf("%w: domain %s", ErrDamaged, graph.Domains[i])
		}
	}
	if len(r.numbers) > 0 || r.next != file.Sections() {
		return nil, ErrDamaged
	}
	return s, nil
}

// reader reads the parts of a set, one after the other.
type reader struct {
	file    *sections.File
	numbers []uint64
	next    int // section
	bad     bool
}

// number reads the next number of a stored filter of words; without one the filter is bad.
func (r *reader) number() (n uint64) {
	if len(r.numbers) == 0 {
		r.bad = true
		return 0
	}
	n, r.numbers = r.numbers[0], r.numbers[1:]
	return n
}

// keys reads a number of keys.
func (r *reader) keys() uint32 {
	n := r.number()
	r.bad = r.bad || n > math.MaxUint32
	return uint32(n)
}

// section returns the next section, which has rows of a size.
func (r *reader) section(size int) []byte {
	b := r.file.Get(r.next)
	r.next++
	r.bad = r.bad || len(b)%size != 0
	return b
}

func (r *reader) part() (p part) {
	seed, keys, layers, prints := r.number(), r.keys(), r.number(), r.section(3)
	if r.bad = r.bad || layers > maxLayers || (len(prints) == 0) != (keys == 0); r.bad {
		return p
	}
	p.keys = keys
	p.built = xorfilter.Xor8{Seed: seed, BlockLength: uint32(len(prints) / 3), Fingerprints: prints}
	for range layers {
		l := layer{keys: r.keys(), blocks: r.section(blockSize)}
		r.bad = r.bad || len(l.blocks) == 0
		p.pending = append(p.pending, l)
	}
	return p
}
