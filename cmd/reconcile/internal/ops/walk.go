package ops

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// Walk limits a relation or a path to edges and nodes, by their names; none means all.
type Walk struct {
	Edges, Domains, Kinds []string
	Avoid                 []string // edges, domains or kinds
	Direction             string   // one of Directions; "" is both
}

// Directions are the directions in which edges are followed.
var Directions = []string{"both", "out", "in"}

func (w *Walk) filter() (f graph.Filter, err error) {
	switch w.Direction {
	case "out":
		f.Direction = graph.Out
	case "in":
		f.Direction = graph.In
	case "", "both":
	default:
		return f, badField("direction", " %q: write one of %s", w.Direction, strings.Join(Directions, ", "))
	}
	if f.Edges, err = parseNames("edge", w.Edges, graph.ParseEdgeType); err != nil {
		return f, err
	}
	if f.Domains, err = parseNames("domain", w.Domains, graph.ParseDomain); err != nil {
		return f, err
	}
	if f.Types, err = parseNames("kind", w.Kinds, graph.ParseNodeType); err != nil {
		return f, err
	}
	for _, name := range w.Avoid {
		if err := avoid(&f, strings.ReplaceAll(name, "-", "_")); err != nil {
			return f, err
		}
	}
	return f, checkKinds(f.Types, f.Domains)
}

// parseNames parses the values of a field; a dash is read as an underscore.
func parseNames[T any](field string, names []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, name := range names {
		t, err := parse(strings.ReplaceAll(name, "-", "_"))
		if err != nil {
			return nil, badField(field, ": %v", err)
		}
		out = append(out, t)
	}
	return out, nil
}

// checkKinds returns an error if none of the kinds belongs to a requested domain.
func checkKinds(kinds []graph.NodeType, domains []graph.Domain) error {
	there := func(t graph.NodeType) bool { return slices.Contains(domains, t.Domain()) }
	if len(kinds) == 0 || len(domains) == 0 || slices.ContainsFunc(kinds, there) {
		return nil
	}
	return badRequest("kind %s is of the domain %s, which is not asked for: only %s", kinds[0], kinds[0].Domain(),
		strings.Join(namesOf(domains), ", "))
}

// avoid removes the edges, kind or domain with a name from a filter.
func avoid(f *graph.Filter, name string) error {
	left := 0
	if t, err := graph.ParseEdgeType(name); err == nil {
		f.Edges = without(f.Edges, graph.EdgeTypes(), t)
		left = len(f.Edges)
	} else if t, err := graph.ParseNodeType(name); err == nil {
		f.Types = without(f.Types, nodeTypes(), t)
		left = len(f.Types)
	} else if d, err := graph.ParseDomain(name); err == nil {
		f.Domains = without(f.Domains, graph.Domains, d)
		left = len(f.Domains)
	} else {
		return badField("avoid", ": %q is no type of edge (%s), no kind (%s) and no domain (%s)", name,
			strings.Join(EdgeNames(), ", "), strings.Join(KindNames(), ", "), strings.Join(DomainNames(), ", "))
	}
	if left == 0 {
		return badField("avoid", " %s leaves nothing of what the other flags ask for", name)
	}
	return nil
}

// without returns some, or all if some is empty, without one.
func without[T comparable](some, all []T, one T) []T {
	if len(some) == 0 {
		some = all
	}
	return slices.DeleteFunc(slices.Clone(some), func(t T) bool { return t == one })
}

func nodeTypes() []graph.NodeType {
	var all []graph.NodeType
	for _, d := range graph.Domains {
		all = append(all, d.Types()...)
	}
	return all
}

// EdgeNames returns the names of the edge types that are valid in a Walk.
func EdgeNames() []string { return namesOf(graph.EdgeTypes()) }

// DomainNames returns the names of the domains that are valid in a Walk.
func DomainNames() []string { return namesOf(graph.Domains) }

// KindNames returns the names of the node types, the kinds that are valid in a Walk.
func KindNames() []string { return namesOf(nodeTypes()) }
