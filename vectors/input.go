package vectors

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/vectors/graph"
)

// Input is the unit of indexing: it is added, replaced and removed as a whole.
type Input struct {
	// Name is unique, a kind and a source: "file:docs/git.md", "go:state/tree.go", "go:state/" (the package),
	// "object:dag/build", "memory:state/memory/issue-42.json", "facts:state/graph/reviews.json".
	Name string
	// Digest identifies the indexed version: a digest of the content, and of the way it was read.
	Digest uint64
	// Part has its nodes and texts, and edges. Edges that leave a node of another input are stated by this one: they stay
	// when that node is replaced, and go with this input.
	graph.Part
	// Provenances and Conflicts are stated facts about nodes of any input.
	Provenances []graph.Provenance
	Conflicts   []graph.Conflict
}

// source is what states the facts of an input: its name without the kind.
func (in *Input) source() string {
	_, source, _ := strings.Cut(in.Name, ":")
	return source
}

// DigestInputs is a digest of all inputs by name and digest, in any order.
func DigestInputs(inputs []Input) uint64 {
	return digestOf(func(yield func(string, uint64) bool) {
		for _, in := range byName(inputs) {
			if !yield(in.Name, in.Digest) {
				return
			}
		}
	})
}

// digestOf is the digest of inputs in the order of their names.
func digestOf(inputs iter.Seq2[string, uint64]) uint64 {
	var h xxhash.Digest
	h.Reset()
	var digest [9]byte // after a 0
	for name, d := range inputs {
		_, _ = h.WriteString(name)
		binary.LittleEndian.PutUint64(digest[1:], d)
		_, _ = h.Write(digest[:])
	}
	return h.Sum64()
}

// byName are the inputs sorted by name.
func byName(inputs []Input) []*Input {
	out := make([]*Input, len(inputs))
	for i := range inputs {
		out[i] = &inputs[i]
	}
	slices.SortFunc(out, func(a, b *Input) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// facts returns the facts of an input, with their source set.
func (in *Input) facts() facts {
	f := facts{provenances: slices.Clone(in.Provenances), conflicts: slices.Clone(in.Conflicts)}
	for i := range f.provenances {
		f.provenances[i].Source = in.source()
	}
	for i := range f.conflicts {
		f.conflicts[i].Source = in.source()
	}
	return f
}

// warnMissing warns of an edge that a user stated and that has a missing end. It ignores derived edges.
func (in *Input) warnMissing(e *graph.Edge, from string, warn func(error)) {
	if e.Source == "" {
		return
	}
	missing := e.To
	if from == "" {
		missing = e.From
	}
	warn(fmt.Errorf("%s: edge %s from %q to %q: there is no node %q (yet)", in.source(), e.Type, e.From, e.To, missing))
}

// edge returns the edge between existing nodes. One from a node of another input has this input as its source.
func (in *Input) edge(e graph.Edge, from, to string, own bool) graph.Edge {
	e.From, e.To = from, to
	if e.Source != "" || !own {
		e.Source = in.source()
	}
	return e
}
