package vectors

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// Input is what is taken into the index, and replaced in it, as a whole.
type Input struct {
	// Name is unique: "file:docs/git.md", "go:state/", "object:dag/build", "memory:state/memory/issue-42.json".
	Name string
	// Digest tells whether it is still the one that was indexed: of the content, and of how that was read.
	Digest uint64
	graph.Part
}

// DigestInputs is a digest of all inputs by name and digest, in any order.
func DigestInputs(inputs []Input) uint64 {
	sorted := slices.Clone(inputs)
	slices.SortFunc(sorted, func(a, b Input) int { return strings.Compare(a.Name, b.Name) })
	h := xxhash.New()
	for i := range sorted {
		_, _ = h.WriteString(sorted[i].Name)
		_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte{0}, sorted[i].Digest))
	}
	return h.Sum64()
}

// joined are all items of some inputs by id, and their edges with ends that are there.
type joined struct {
	items   []graph.Item // sorted by id
	edges   []graph.Edge
	open    []graph.Edge // whose other end, or begin, is not there
	aliases map[string]string
}

// join puts inputs together. Of two items with one id, that of the input whose name comes first is taken: they are
// imports, which many have.
func join(inputs []Input) *joined {
	j := &joined{aliases: map[string]string{}}
	sorted := slices.Clone(inputs)
	slices.SortFunc(sorted, func(a, b Input) int { return strings.Compare(a.Name, b.Name) })
	seen := map[string]bool{}
	for _, in := range sorted {
		for _, it := range in.Items {
			if !seen[it.ID] {
				seen[it.ID] = true
				j.items = append(j.items, it)
			}
		}
	}
	slices.SortFunc(j.items, func(a, b graph.Item) int { return strings.Compare(a.ID, b.ID) })
	for i := range j.items {
		if a, ok := source.Alias(j.items[i].ID); ok && j.aliases[a] == "" {
			j.aliases[a] = j.items[i].ID
		}
	}
	j.relate(sorted, func(id string) string {
		if seen[id] {
			return id
		}
		return j.aliases[id]
	})
	return j
}

// relate resolves the ends of edges.
func (j *joined) relate(inputs []Input, resolve func(id string) string) {
	for _, in := range inputs {
		for _, e := range in.Edges {
			from, to := resolve(e.From), resolve(e.To)
			if from == "" || to == "" {
				j.open = append(j.open, e)
				continue
			}
			e.From, e.To = from, to
			j.edges = append(j.edges, e)
		}
	}
	slices.SortFunc(j.open, compareEdges)
}

func compareEdges(a, b graph.Edge) int {
	return cmp.Or(strings.Compare(a.To, b.To), strings.Compare(a.From, b.From), cmp.Compare(a.Type, b.Type), strings.Compare(a.Source, b.Source))
}

// text is what an embedder gets of an item.
func text(it *graph.Item) string { return it.Title + "\n" + it.Body }

// told reports whether an item has a text to be found by. The packages of others have but their name.
func told(it *graph.Item) bool { return it.Type != graph.Import && (it.Title != "" || it.Body != "") }
