package graph

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// Part is what one input of the index, or a few that belong together, come to.
type Part struct {
	Items []Item
	Edges []Edge
}

// PartBuilder gathers a part. The zero value is ready to use.
type PartBuilder struct {
	Part
	ids   map[string]int // how often an id was wanted
	edges map[Edge]bool
}

// maxTitle is how many bytes of a title are kept.
const maxTitle = 512

// Add adds an item, bounds its texts and digests them. Of several that want one id the second gets "~2"; the id that it
// has is returned.
func (b *PartBuilder) Add(it Item) (id string) {
	if b.ids == nil {
		b.ids = map[string]int{}
	}
	b.ids[it.ID]++
	if n := b.ids[it.ID]; n > 1 {
		it.ID = fmt.Sprintf("%s~%d", it.ID, n)
	}
	it.Title, it.Body = Clip(it.Title, maxTitle), Clip(it.Body, MaxBody)
	it.Digest = digestOf(it.Title, it.Body)
	b.Items = append(b.Items, it)
	return it.ID
}

// AddPart adds the items and edges of another part to the builder. The builder must not have any of its ids yet.
func (b *PartBuilder) AddPart(p Part) {
	for _, it := range p.Items {
		b.Add(it)
	}
	for _, e := range p.Edges {
		b.Edge(e.From, e.Type, e.To)
	}
}

// Has reports whether the part builder has an item with the id.
func (b *PartBuilder) Has(id string) bool { return b.ids[id] > 0 }

// Edge adds an edge, once. Nothing but calls leads back to itself.
func (b *PartBuilder) Edge(from string, t EdgeType, to string) {
	e := Edge{From: from, To: to, Type: t}
	if b.edges[e] || from == to && t != Calls {
		return
	}
	if b.edges == nil {
		b.edges = map[Edge]bool{}
	}
	b.edges[e] = true
	b.Edges = append(b.Edges, e)
}

func digestOf(title, body string) uint64 {
	h := xxhash.New()
	_, _ = h.WriteString(title)
	_, _ = h.Write([]byte{0})
	_, _ = h.WriteString(body)
	return h.Sum64()
}

// Clip returns the longest prefix of s with at most n bytes that does not cut a rune, as valid UTF-8.
func Clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
