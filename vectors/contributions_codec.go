package vectors

import (
	"errors"
	"fmt"
	"math"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/vectors/graph"
)

// ErrDamaged reports that the bytes of a snapshot or delta were changed. Rebuild the index.
var ErrDamaged = errors.New("the index is damaged")

// contributionWriter appends to a section.
type contributionWriter struct{ sections.Encoder }

func (w *contributionWriter) node(n *graph.Node) {
	w.String(n.ID)
	w.Uint(uint64(n.Type))
	w.String(n.Name)
	w.String(n.Path)
	w.Uint(uint64(n.Line))
	w.Uint(uint64(n.End))
	w.Fixed(n.Digest)
	w.Uint(uint64(len(n.Labels)))
	for _, l := range n.Labels {
		w.String(l)
	}
	w.Fixed(uint64(n.At))
}

func (w *contributionWriter) edge(e *graph.Edge) {
	w.String(e.From)
	w.String(e.To)
	w.Uint(uint64(e.Type))
	w.Uint(uint64(math.Float32bits(e.Weight)))
	w.String(e.Source)
}

func (w *contributionWriter) facts(f *facts) {
	w.Uint(uint64(len(f.provenances)))
	for _, p := range f.provenances {
		for _, s := range []string{p.ID, p.Node, p.SourceType, p.SourceID, p.Verifier, p.Source} {
			w.String(s)
		}
		w.Uint(uint64(p.Confidence))
		w.Fixed(uint64(p.VerifiedAt))
	}
	w.Uint(uint64(len(f.conflicts)))
	for _, c := range f.conflicts {
		for _, s := range []string{c.ID, c.A, c.B, c.Type, c.Resolution, c.Source} {
			w.String(s)
		}
		w.Fixed(uint64(c.DetectedAt))
		w.Fixed(uint64(c.ResolvedAt))
	}
}

// reader reads a section. After an error all values that it reads are zero.
type reader struct{ sections.Decoder }

func newReader(data []byte) *reader { return &reader{sections.Decoder{B: data}} }

// octet is a number below 256.
func (r *reader) octet() uint8 { return uint8(r.UintTo(math.MaxUint8)) }

func (r *reader) small() int { return int(r.UintTo(math.MaxInt32)) }

func (r *reader) facts() (f facts) {
	for range r.Count(15) {
		p := graph.Provenance{ID: r.String(), Node: r.String(), SourceType: r.String(), SourceID: r.String(),
			Verifier: r.String(), Source: r.String()}
		p.Confidence, p.VerifiedAt = uint16(min(r.Uint(), math.MaxUint16)), int64(r.Fixed())
		f.provenances = append(f.provenances, p)
	}
	for range r.Count(22) {
		c := graph.Conflict{ID: r.String(), A: r.String(), B: r.String(), Type: r.String(), Resolution: r.String(),
			Source: r.String()}
		c.DetectedAt, c.ResolvedAt = int64(r.Fixed()), int64(r.Fixed())
		f.conflicts = append(f.conflicts, c)
	}
	return f
}

func (r *reader) node() graph.Node {
	n := graph.Node{ID: r.String(), Type: graph.NodeType(r.octet()), Name: r.String(), Path: r.String(), Line: r.small(),
		End: r.small(), Digest: r.Fixed()}
	for range r.Count(1) {
		n.Labels = append(n.Labels, r.String())
	}
	n.At = int64(r.Fixed())
	return n
}

func (r *reader) edge() graph.Edge {
	return graph.Edge{From: r.String(), To: r.String(), Type: graph.EdgeType(r.octet()),
		Weight: math.Float32frombits(uint32(r.Uint())), Source: r.String()}
}

// ErrOtherVersion reports that another version of the program made the index.
var ErrOtherVersion = errors.New("another version of reconcile made the index")

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

func encodeFacts(all []facts) []byte {
	w := &contributionWriter{}
	w.Uint(uint64(len(all)))
	for i := range all {
		w.Uint(uint64(all[i].input))
		w.facts(&all[i])
	}
	return w.B
}

func decodeFacts(data []byte, inputs int) ([]facts, error) {
	r := newReader(data)
	var out []facts
	for range r.Count(3) {
		input := r.small()
		f := r.facts()
		f.input = input
		if input >= inputs {
			r.Fail()
		}
		out = append(out, f)
	}
	if !r.Done() {
		return nil, ErrDamaged
	}
	return out, nil
}
