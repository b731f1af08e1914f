package vectors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"reconcile.dev/reconcile/vectors/graph"
)

// ErrDamaged reports that the bytes of a snapshot or delta were changed. Rebuild the index.
var ErrDamaged = errors.New("the index is damaged")

// writer appends to a section.
type writer struct{ to []byte }

func (w *writer) number(n uint64) { w.to = binary.AppendUvarint(w.to, n) }
func (w *writer) fixed(n uint64)  { w.to = binary.LittleEndian.AppendUint64(w.to, n) }

func (w *writer) string(s string) {
	w.number(uint64(len(s)))
	w.to = append(w.to, s...)
}

func (w *writer) node(n *graph.Node) {
	w.string(n.ID)
	w.number(uint64(n.Type))
	w.string(n.Name)
	w.string(n.Path)
	w.number(uint64(n.Line))
	w.number(uint64(n.End))
	w.fixed(n.Digest)
	w.number(uint64(len(n.Labels)))
	for _, l := range n.Labels {
		w.string(l)
	}
	w.fixed(uint64(n.At))
}

func (w *writer) edge(e *graph.Edge) {
	w.string(e.From)
	w.string(e.To)
	w.number(uint64(e.Type))
	w.number(uint64(math.Float32bits(e.Weight)))
	w.string(e.Source)
}

func (w *writer) flag(is bool) {
	b := byte(0)
	if is {
		b = 1
	}
	w.to = append(w.to, b)
}

func (w *writer) facts(f *facts) {
	w.number(uint64(len(f.provenances)))
	for _, p := range f.provenances {
		for _, s := range []string{p.ID, p.Node, p.SourceType, p.SourceID, p.Verifier, p.Source} {
			w.string(s)
		}
		w.number(uint64(p.Confidence))
		w.fixed(uint64(p.VerifiedAt))
	}
	w.number(uint64(len(f.conflicts)))
	for _, c := range f.conflicts {
		for _, s := range []string{c.ID, c.A, c.B, c.Type, c.Resolution, c.Source} {
			w.string(s)
		}
		w.fixed(uint64(c.DetectedAt))
		w.fixed(uint64(c.ResolvedAt))
	}
}

// reader reads a section. After an error all values that it reads are zero.
type reader struct {
	from []byte
	bad  bool
}

func (r *reader) fail() {
	r.from, r.bad = nil, true
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.from)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.from = r.from[size:]
	return n
}

// count reads the number of following values of at least size bytes each. A number that exceeds the remaining bytes
// is damage.
func (r *reader) count(size int) int {
	n := r.number()
	if n > uint64(len(r.from)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) fixed() uint64 {
	if len(r.from) < 8 {
		r.fail()
		return 0
	}
	n := binary.LittleEndian.Uint64(r.from)
	r.from = r.from[8:]
	return n
}

func (r *reader) string() string {
	n := r.count(1)
	s := string(r.from[:n])
	r.from = r.from[n:]
	return s
}

// octet is a number below 256.
func (r *reader) octet() uint8 {
	n := r.number()
	if n > math.MaxUint8 {
		r.fail()
		return 0
	}
	return uint8(n)
}

func (r *reader) small() int {
	n := r.number()
	if n > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) flag() bool {
	if len(r.from) == 0 || r.from[0] > 1 {
		r.fail()
		return false
	}
	is := r.from[0] == 1
	r.from = r.from[1:]
	return is
}

func (r *reader) facts() (f facts) {
	for range r.count(15) {
		p := graph.Provenance{ID: r.string(), Node: r.string(), SourceType: r.string(), SourceID: r.string(),
			Verifier: r.string(), Source: r.string()}
		p.Confidence, p.VerifiedAt = uint16(min(r.number(), math.MaxUint16)), int64(r.fixed())
		f.provenances = append(f.provenances, p)
	}
	for range r.count(22) {
		c := graph.Conflict{ID: r.string(), A: r.string(), B: r.string(), Type: r.string(), Resolution: r.string(),
			Source: r.string()}
		c.DetectedAt, c.ResolvedAt = int64(r.fixed()), int64(r.fixed())
		f.conflicts = append(f.conflicts, c)
	}
	return f
}

func (r *reader) node() graph.Node {
	n := graph.Node{ID: r.string(), Type: graph.NodeType(r.octet()), Name: r.string(), Path: r.string(), Line: r.small(),
		End: r.small(), Digest: r.fixed()}
	for range r.count(1) {
		n.Labels = append(n.Labels, r.string())
	}
	n.At = int64(r.fixed())
	return n
}

func (r *reader) edge() graph.Edge {
	return graph.Edge{From: r.string(), To: r.string(), Type: graph.EdgeType(r.octet()),
		Weight: math.Float32frombits(uint32(r.number())), Source: r.string()}
}

// ErrOtherVersion reports that another version of the program made the index.
var ErrOtherVersion = errors.New("another version of reconcile made the index")

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

func encodeFacts(all []facts) []byte {
	w := &writer{}
	w.number(uint64(len(all)))
	for i := range all {
		w.number(uint64(all[i].input))
		w.facts(&all[i])
	}
	return w.to
}

func decodeFacts(data []byte, inputs int) ([]facts, error) {
	r := &reader{from: data}
	var out []facts
	for range r.count(3) {
		input := r.small()
		f := r.facts()
		f.input = input
		if input >= inputs {
			r.fail()
		}
		out = append(out, f)
	}
	if r.bad || len(r.from) > 0 {
		return nil, ErrDamaged
	}
	return out, nil
}
