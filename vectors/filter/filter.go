package filter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/FastFilter/xorfilter"
	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors/graph"
)

// ErrDamaged says that bytes are not a set that was written, or one of another version.
var ErrDamaged = errors.New("the filter of the index is damaged or of another version; build it again")

const (
	magic      = "rcnxor\x00\x01" // ends with the version
	partSize   = 24               // of a domain in the header
	layerSize  = 64               // of the header of a layer
	align      = 64
	domains    = 3
	headerSize = 128 // magic and the parts, up to a multiple of align
	maxLayers  = 32
)

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

// AppendTo appends the set in its format: a header, and the part of each domain with its built filter and added keys.
func (s *Set) AppendTo(to []byte) []byte {
	start := len(to)
	header := make([]byte, headerSize)
	copy(header, magic)
	for i := range s.parts {
		p, at := &s.parts[i], header[len(magic)+i*partSize:]
		binary.LittleEndian.PutUint64(at, p.built.Seed)
		binary.LittleEndian.PutUint32(at[8:], p.keys)
		binary.LittleEndian.PutUint32(at[12:], p.built.BlockLength)
		binary.LittleEndian.PutUint32(at[16:], uint32(len(p.pending)))
	}
	to = append(to, header...)
	for i := range s.parts {
		to = fill(append(to, s.parts[i].built.Fingerprints...), start)
		for _, l := range s.parts[i].pending {
			to = binary.LittleEndian.AppendUint32(to, l.keys)
			to = binary.LittleEndian.AppendUint32(to, uint32(len(l.blocks)/blockSize))
			to = append(fill(to, start), l.blocks...)
			to = fill(to, start)
		}
	}
	return to
}

// fill appends zeros up to a multiple of align from start.
func fill(to []byte, start int) []byte {
	return append(to, make([]byte, -(len(to)-start)&(align-1))...)
}

// Open returns the set that the data hold, after checking its header and parts. The bytes are used in place and must
// not change while the set is in use.
func Open(data []byte) (*Set, error) {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return nil, ErrDamaged
	}
	s, r := &Set{}, reader{data[headerSize:]}
	for i := range s.parts {
		at := data[len(magic)+i*partSize:]
		var err error
		if s.parts[i], err = r.part(at[:partSize]); err != nil {
			return nil, fmt.Errorf("%w: domain %s", err, graph.Domains[i])
		}
	}
	if len(r.left) > 0 {
		return nil, ErrDamaged
	}
	return s, nil
}

// reader reads what follows the header.
type reader struct{ left []byte }

// take returns the next n bytes, and skips the padding after them.
func (r *reader) take(n uint64) ([]byte, error) {
	whole := (n + align - 1) &^ (align - 1)
	if whole > uint64(len(r.left)) {
		return nil, ErrDamaged
	}
	out := r.left[:n:n]
	r.left = r.left[whole:]
	return out, nil
}

func (r *reader) part(head []byte) (part, error) {
	p := part{keys: binary.LittleEndian.Uint32(head[8:])}
	length, layers := binary.LittleEndian.Uint32(head[12:]), binary.LittleEndian.Uint32(head[16:])
	prints, err := r.take(3 * uint64(length))
	if err != nil || layers > maxLayers || (length == 0) != (p.keys == 0) {
		return part{}, ErrDamaged
	}
	p.built = xorfilter.Xor8{Seed: binary.LittleEndian.Uint64(head), BlockLength: length, Fingerprints: prints}
	for range layers {
		l, err := r.layer()
		if err != nil {
			return part{}, err
		}
		p.pending = append(p.pending, l)
	}
	return p, nil
}

func (r *reader) layer() (layer, error) {
	head, err := r.take(layerSize)
	if err != nil {
		return layer{}, err
	}
	blocks := binary.LittleEndian.Uint32(head[4:])
	l := layer{keys: binary.LittleEndian.Uint32(head)}
	if l.blocks, err = r.take(uint64(blocks) * blockSize); err != nil || blocks == 0 {
		return layer{}, ErrDamaged
	}
	return l, nil
}
