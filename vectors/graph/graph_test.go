package graph_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

// build is the graph of parts that may have parts that are refused.
func build(p graph.Parts) *graph.Graph {
	g, _ := graph.Build(p)
	return g
}

func shuffled(rng *rand.Rand, p graph.Parts) graph.Parts {
	p.Nodes, p.Edges = slices.Clone(p.Nodes), slices.Clone(p.Edges)
	p.Provenances, p.Conflicts = slices.Clone(p.Provenances), slices.Clone(p.Conflicts)
	rng.Shuffle(len(p.Nodes), func(i, j int) { p.Nodes[i], p.Nodes[j] = p.Nodes[j], p.Nodes[i] })
	rng.Shuffle(len(p.Edges), func(i, j int) { p.Edges[i], p.Edges[j] = p.Edges[j], p.Edges[i] })
	rng.Shuffle(len(p.Provenances), func(i, j int) { p.Provenances[i], p.Provenances[j] = p.Provenances[j], p.Provenances[i] })
	rng.Shuffle(len(p.Conflicts), func(i, j int) { p.Conflicts[i], p.Conflicts[j] = p.Conflicts[j], p.Conflicts[i] })
	return p
}

func TestSameBytesFromAnyOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		p := randomParts(rng, 30, 200)
		// Two nodes of one id: which is kept must not depend on the order either.
		p.Nodes = append(p.Nodes, randomNode(rng, 3), randomNode(rng, 3))
		g, refused := graph.Build(p)
		again, refusedAgain := graph.Build(shuffled(rng, p))
		if !bytes.Equal(g.AppendTo(nil), again.AppendTo(nil)) {
			t.Fatal("another order of the same parts gives other bytes")
		}
		if fmt.Sprint(refused) != fmt.Sprint(refusedAgain) {
			t.Fatalf("refused: %v, in another order: %v", refused, refusedAgain)
		}
		if err := g.Verify(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedAreCounted(t *testing.T) {
	t.Parallel()
	var p graph.Parts
	for i := range 1000 {
		p.Edges = append(p.Edges, graph.Edge{From: fmt.Sprintf("n%03d", i), To: "m", Type: graph.Calls})
	}
	_, refused := graph.Build(shuffled(rand.New(rand.NewPCG(1, 1)), p))
	if len(refused) != 101 || !strings.Contains(refused[99].Error(), `"n099"`) || refused[100].Error() != "and 900 more like these" {
		t.Errorf("%d refusals, the last %v and %v", len(refused), refused[99], refused[len(refused)-1])
	}
}

func TestNodesThatCannotBe(t *testing.T) {
	t.Parallel()
	g, refused := graph.Build(graph.Parts{Nodes: []graph.Node{
		{ID: "", Type: graph.File, Name: "nameless"}, {ID: "a", Type: 0}, {ID: "b", Type: graph.File, Line: -1},
		{ID: "c", Type: graph.File, Labels: []string{"x=\x00"}},
		{ID: "d", Type: graph.File, Path: "one.go", Line: 1}, {ID: "d", Type: graph.File, Path: "two.go", Line: 2},
	}})
	if g.Nodes() != 1 || len(refused) != 5 {
		t.Errorf("%d nodes, refused %v", g.Nodes(), refused)
	}
	if want := `node "d" is there twice: as file "" in one.go:1 and as file "" in two.go:2; ids are unique`; refused[4].Error() != want {
		t.Errorf("%v, want %s", refused[4], want)
	}
}

// describe is everything that a graph has, by ids, so that places do not matter.
func describe(g *graph.Graph) string {
	var b strings.Builder
	for r := range g.All() {
		fmt.Fprintf(&b, "%+v %v\n out %v\n in %v\n", g.Node(r), g.Type(r), g.Outgoing(r), incoming(g, r))
		fmt.Fprintf(&b, " %v %v\n", g.Provenance(r), g.Conflicts(r))
	}
	for i := range 21 {
		path := fmt.Sprintf("dir%d/f%02d.go", i%3, i%7)
		fmt.Fprintln(&b, path, idsOf(g, g.ByPath(path)))
	}
	fmt.Fprintf(&b, "%+v\n", g.Stats())
	return b.String()
}

// incoming are the edges that lead to a node, by type.
func incoming(g *graph.Graph, r graph.Ref) []graph.Edge {
	visited, _ := g.Walk([]graph.Ref{r}, graph.Reach{Filter: graph.Filter{Direction: graph.In}, Depth: 1})
	var out []graph.Edge
	for _, v := range visited { // the first is the node itself
		out = append(out, g.Between(v.Node, r)...)
	}
	slices.SortStableFunc(out, func(a, b graph.Edge) int { return cmp.Compare(a.Type, b.Type) })
	return out
}

func idsOf(g *graph.Graph, refs []graph.Ref) []string {
	out := make([]string, 0, len(refs))
	for _, r := range refs {
		out = append(out, g.ID(r))
	}
	return out
}

func ref(t *testing.T, g *graph.Graph, id string) graph.Ref {
	t.Helper()
	r, ok := g.Find(id)
	if !ok {
		t.Fatalf("there is no %q", id)
	}
	return r
}

// checkAgainst holds a graph to the naive one.
func checkAgainst(t *testing.T, g *graph.Graph, m *naive) {
	t.Helper()
	ids := m.ids()
	if g.Nodes() != len(ids) || g.Edges() != len(m.edges) {
		t.Fatalf("%d nodes and %d edges, want %d and %d", g.Nodes(), g.Edges(), len(ids), len(m.edges))
	}
	if got := idsOf(g, slices.Collect(g.All())); !slices.Equal(got, ids) {
		t.Fatalf("nodes %v, want %v", got, ids)
	}
	for _, id := range ids {
		r := ref(t, g, id)
		if got := g.Node(r); !reflect.DeepEqual(got, m.nodes[id]) {
			t.Fatalf("node %+v, want %+v", got, m.nodes[id])
		}
		if h, ok := g.FindHash(graph.HashID(id)); !ok || h != r {
			t.Fatalf("%s has another place by its hash", id)
		}
		checkEdges(t, "from "+id, g.Outgoing(r), m, func(k edgeKey) bool { return k.from == id })
		checkEdges(t, "to "+id, incoming(g, r), m, func(k edgeKey) bool { return k.to == id })
		other := ids[len(id)*7%len(ids)]
		checkEdges(t, "between", g.Between(r, ref(t, g, other)), m, func(k edgeKey) bool { return k.from == id && k.to == other })
	}
	checkLookups(t, g, m)
	checkStats(t, g, m)
}

// checkEdges compares edges, and that they are sorted by type.
func checkEdges(t *testing.T, what string, got []graph.Edge, m *naive, want func(edgeKey) bool) {
	t.Helper()
	n := 0
	for k := range m.edges {
		if want(k) {
			n++
		}
	}
	if len(got) != n {
		t.Fatalf("%s: %d edges, want %d", what, len(got), n)
	}
	for i, e := range got {
		k := edgeKey{e.From, e.To, e.Type, e.Source}
		if w, ok := m.edges[k]; !ok || w != e.Weight || !want(k) {
			t.Fatalf("%s: %+v, which is not there with the weight %v", what, e, w)
		}
		if i > 0 && got[i-1].Type > e.Type {
			t.Fatalf("%s: not sorted by type: %v", what, got)
		}
	}
}

func checkLookups(t *testing.T, g *graph.Graph, m *naive) {
	t.Helper()
	by := func(match func(graph.Node) bool) []string {
		out := []string{}
		for _, id := range m.ids() {
			if match(m.nodes[id]) {
				out = append(out, id)
			}
		}
		return out
	}
	check := func(what any, got, want []string) {
		if !slices.Equal(got, want) {
			t.Fatalf("nodes of %v: %v, want %v", what, got, want)
		}
	}
	for _, path := range []string{"dir0/f00.go", "dir1/f03.go", "dir2/f06.go", "zzz"} {
		check(path, idsOf(g, g.ByPath(path)), by(func(n graph.Node) bool { return n.Path == path }))
	}
	for _, id := range m.ids() {
		var want []graph.Provenance
		for _, p := range m.provenances {
			if p.Node == id {
				want = append(want, p)
			}
		}
		got := g.Provenance(ref(t, g, id))
		less := func(list []graph.Provenance) func(i, j int) bool {
			return func(i, j int) bool { return fmt.Sprint(list[i]) < fmt.Sprint(list[j]) }
		}
		sort.Slice(want, less(want))
		sort.Slice(got, less(got))
		if !slices.Equal(got, want) {
			t.Fatalf("provenance of %s: %v, want %v", id, got, want)
		}
	}
}

func checkStats(t *testing.T, g *graph.Graph, m *naive) {
	t.Helper()
	s := g.Stats()
	stated := map[string]int{}
	for k := range m.edges {
		if k.source != "" {
			stated[k.source]++
		}
	}
	left := map[string]bool{}
	for id := range m.nodes {
		left[id] = true
	}
	groups, largest := 0, 0
	for len(left) > 0 {
		for id := range left {
			reached := m.within(id, len(m.nodes), graph.Filter{})
			groups, largest = groups+1, max(largest, len(reached))
			for other := range reached {
				delete(left, other)
			}
			break
		}
	}
	if s.Nodes != len(m.nodes) || s.Edges != len(m.edges) || !maps.Equal(s.Stated, stated) || s.Components != groups || s.Largest != largest ||
		s.Provenances != len(m.provenances) || s.Conflicts != len(m.conflicts) {
		t.Fatalf("%+v; want %v stated, %d groups, the largest of %d, %d provenances, %d conflicts", s, stated, groups, largest,
			len(m.provenances), len(m.conflicts))
	}
}

func TestBuildAgainstNaive(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		p := randomParts(rng, 40, rng.IntN(300))
		g := build(p)
		checkAgainst(t, g, newNaive(p))
		opened, err := graph.Open(g.AppendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		checkAgainst(t, opened, newNaive(p))
		if describe(opened) != describe(g) {
			t.Fatal("an opened graph answers differently")
		}
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	g, refused := graph.Build(graph.Parts{})
	if len(refused) > 0 || g.Nodes() != 0 || g.Stats().Components != 0 {
		t.Error("an empty graph is not empty", refused)
	}
	g, err := graph.Open(g.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Find("x"); ok || g.Type(0) != 0 || g.ID(5) != "" || !reflect.DeepEqual(g.Node(7), graph.Node{}) {
		t.Error("there is something in an empty graph")
	}
	if _, ok := g.ShortestPath(0, 1, graph.Filter{}); ok || len(g.Outgoing(3)) > 0 || len(g.Cycles(graph.Filter{})) > 0 {
		t.Error("there are ways in an empty graph")
	}
}

// TestOpenAnywhere: bytes that do not begin where numbers may begin are read all the same.
func TestOpenAnywhere(t *testing.T) {
	t.Parallel()
	g := build(randomParts(rand.New(rand.NewPCG(5, 6)), 40, 200))
	for shift := range 5 {
		data := g.AppendTo(make([]byte, shift))[shift:]
		opened, err := graph.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		if describe(opened) != describe(g) {
			t.Fatalf("shifted by %d, the graph answers differently", shift)
		}
	}
}

func TestOpenDamaged(t *testing.T) {
	t.Parallel()
	data := build(randomParts(rand.New(rand.NewPCG(7, 8)), 8, 20)).AppendTo(nil)
	for _, size := range []int{0, 5, 63, 64, len(data) / 2, len(data) - 1} {
		if _, err := graph.Open(data[:size]); !errors.Is(err, graph.ErrDamaged) {
			t.Errorf("%d of %d bytes: %v", size, len(data), err)
		}
	}
	if _, err := graph.Open(append(slices.Clone(data), 0)); !errors.Is(err, graph.ErrDamaged) {
		t.Error("a byte too many:", err)
	}
	for at := range data {
		broken := slices.Clone(data)
		broken[at] ^= 0xa5
		if g, err := graph.Open(broken); err == nil {
			exercise(g)
		} else if !errors.Is(err, graph.ErrDamaged) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
}

// TestOpenStatedNowhere: an edge that a file states must be there.
func TestOpenStatedNowhere(t *testing.T) {
	t.Parallel()
	p := lines("aaaa calls bbbb")
	p.Edges[0].Source = "state/links.yaml"
	data := build(p).AppendTo(nil)
	text := bytes.Index(data, []byte("aaaabbbb"))
	row := binary.LittleEndian.AppendUint32(make([]byte, 4), uint32(bytes.Index(data, []byte(p.Edges[0].Source))-text))
	at := bytes.Index(data, binary.LittleEndian.AppendUint32(row, uint32(len(p.Edges[0].Source))))
	if text < 0 || at < 0 {
		t.Fatal("the row is not where the format has it")
	}
	data[at] = 1 // the only edge is number 0
	if _, err := graph.Open(data); !errors.Is(err, graph.ErrDamaged) {
		t.Error(err)
	}
}
