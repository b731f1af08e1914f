package vectors

import (
	"encoding/binary"
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

// hasText reports whether an item is found by meaning. Third-party packages are found by their names only; constants
// and variables, which are many and say little, by their words.
func hasText(it *graph.Item) bool {
	switch it.Type {
	case graph.Import, graph.Constant, graph.Variable:
		return false
	}
	return it.Title != "" || it.Body != ""
}
