package vectors

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"

	"reconcile.dev/reconcile/vectors/graph"
)

// hashTable is a sorted table of hashes of names, each with a number: 12 bytes a row, little-endian.
type hashTable []byte

const hashedRow = 12

type hashedPair struct {
	hash   uint64
	number uint32
}

func encodeHashed(pairs []hashedPair) []byte {
	slices.SortFunc(pairs, func(a, b hashedPair) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.number, b.number))
	})
	out := make([]byte, 0, hashedRow*len(pairs))
	for _, p := range pairs {
		out = binary.LittleEndian.AppendUint64(out, p.hash)
		out = binary.LittleEndian.AppendUint32(out, p.number)
	}
	return out
}

// of are the numbers of a name, ascending.
func (t hashTable) of(name string) []uint32 {
	hash := graph.HashID(name)
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(t[hashedRow*i:]) }
	n := len(t) / hashedRow
	var out []uint32
	for i := sort.Search(n, func(i int) bool { return at(i) >= hash }); i < n && at(i) == hash; i++ {
		out = append(out, binary.LittleEndian.Uint32(t[hashedRow*i+8:]))
	}
	return out
}

// encodeUnresolved encodes the unresolved edges, and for each name the places of those that contain it.
func encodeUnresolved(a *assembly) (edges, names []byte) {
	w := &writer{}
	var pairs []hashedPair
	for i := range a.unresolved {
		e := &a.unresolved[i]
		for _, end := range []string{e.From, e.To} {
			if _, direct := a.owner[end]; !direct {
				pairs = append(pairs, hashedPair{graph.HashID(end), uint32(len(w.B))})
			}
		}
		w.Uint(uint64(e.input))
		w.edge(&e.Edge)
	}
	return w.B, encodeHashed(slices.Compact(pairs))
}

// unresolvedAt decodes the unresolved edge at an offset.
func (s *Stored) unresolvedAt(at uint32) (unresolvedEdge, error) {
	data := s.base.Get(sectionUnresolved)
	if int(at) >= len(data) {
		return unresolvedEdge{}, ErrDamaged
	}
	r := newReader(data[at:])
	e := unresolvedEdge{input: r.small(), Edge: r.edge()}
	if r.Bad || e.input >= len(s.contributions.names) {
		return unresolvedEdge{}, ErrDamaged
	}
	return e, nil
}
