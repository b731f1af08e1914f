package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/vectors/graph"
)

// walkFlags say over which edges and nodes related and path go.
type walkFlags struct {
	edges, domains, kinds, avoid []string
	direction                    string
}

// The directions in which edges are gone over.
var directions = map[string]graph.Direction{"both": graph.Both, "out": graph.Out, "in": graph.In}

func (o *walkFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	namesFlag(cmd, f, &o.edges, "edge", "only over edges of `TYPE`: calls, imports, contains, references…; may be repeated", edgeNames())
	namesFlag(cmd, f, &o.domains, "domain", "only through `DOMAIN`: code, history or academic; may be repeated", domainNames())
	namesFlag(cmd, f, &o.kinds, "kind", "only through nodes of `KIND`: function, method, type, file, doc, task…; may be repeated",
		kindNames(graph.Domains...))
	namesFlag(cmd, f, &o.avoid, "avoid", "not over edges, kinds or domains of `NAME`; may be repeated",
		slices.Concat(edgeNames(), kindNames(graph.Domains...), domainNames()))
	o.direction = "both"
	all := []string{"both", "out", "in"}
	f.Var(&choice{value: &o.direction, allowed: all}, "direction", "go over edges `WAY`: "+strings.Join(all, ", "))
	_ = cmd.RegisterFlagCompletionFunc("direction", cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
}

// namesFlag is a flag for some of the given names, which the shell completes.
func namesFlag(cmd *cobra.Command, f *pflag.FlagSet, to *[]string, name, usage string, names []string) {
	f.StringSliceVar(to, name, nil, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

func edgeNames() []string { return namesOf(graph.EdgeTypes()) }

func domainNames() []string { return namesOf(graph.Domains) }

func kindNames(domains ...graph.Domain) []string {
	var out []string
	for _, d := range domains {
		out = append(out, namesOf(d.Types())...)
	}
	return out
}

func namesOf[T interface{ String() string }](all []T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = t.String()
	}
	return out
}

// parseNames reads the values of a flag; a dash stands for an underscore.
func parseNames[T any](flag string, names []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, name := range names {
		t, err := parse(strings.ReplaceAll(name, "-", "_"))
		if err != nil {
			return nil, badUsage("%s: %v", flag, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// filter is what the flags ask for.
func (o *walkFlags) filter() (f graph.Filter, err error) {
	f.Direction = directions[o.direction]
	if f.Edges, err = parseNames("--edge", o.edges, graph.ParseEdgeType); err != nil {
		return f, err
	}
	if f.Domains, err = parseNames("--domain", o.domains, graph.ParseDomain); err != nil {
		return f, err
	}
	if f.Types, err = parseNames("--kind", o.kinds, graph.ParseNodeType); err != nil {
		return f, err
	}
	for _, name := range o.avoid {
		if err := avoid(&f, strings.ReplaceAll(name, "-", "_")); err != nil {
			return f, err
		}
	}
	return f, checkKinds(f.Types, f.Domains)
}

// checkKinds refuses kinds none of which is of a domain that is asked for.
func checkKinds(kinds []graph.NodeType, domains []graph.Domain) error {
	there := func(t graph.NodeType) bool { return slices.Contains(domains, t.Domain()) }
	if len(kinds) == 0 || len(domains) == 0 || slices.ContainsFunc(kinds, there) {
		return nil
	}
	return badUsage("kind %s is of the domain %s, which is not asked for: only %s", kinds[0], kinds[0].Domain(),
		strings.Join(namesOf(domains), ", "))
}

// avoid takes what a name stands for out of a filter.
func avoid(f *graph.Filter, name string) error {
	left := 0
	if t, err := graph.ParseEdgeType(name); err == nil {
		f.Edges = without(f.Edges, graph.EdgeTypes(), t)
		left = len(f.Edges)
	} else if t, err := graph.ParseNodeType(name); err == nil {
		var all []graph.NodeType
		for _, d := range graph.Domains {
			all = append(all, d.Types()...)
		}
		f.Types = without(f.Types, all, t)
		left = len(f.Types)
	} else if d, err := graph.ParseDomain(name); err == nil {
		f.Domains = without(f.Domains, graph.Domains, d)
		left = len(f.Domains)
	} else {
		return badUsage("--avoid: %q is no type of edge (%s), no kind (%s) and no domain (%s)", name,
			strings.Join(edgeNames(), ", "), strings.Join(kindNames(graph.Domains...), ", "), strings.Join(domainNames(), ", "))
	}
	if left == 0 {
		return badUsage("--avoid %s leaves nothing of what the other flags ask for", name)
	}
	return nil
}

// without is some, or all if there are none, without one.
func without[T comparable](some, all []T, one T) []T {
	if len(some) == 0 {
		some = all
	}
	return slices.DeleteFunc(slices.Clone(some), func(t T) bool { return t == one })
}
