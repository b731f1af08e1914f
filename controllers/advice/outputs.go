package advice

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// adviseOutputs warns of files that two commands of a DAG write which may run at the same time: elements of a matrix, parts of calls, nodes
// that do not need each other. The warning is at the node as it is declared, one for each file.
func adviseOutputs(e *state.Entry, spec *schemas.DAGSpec) (all []Advice) {
	writers := map[string][]*schemas.Node{}
	var files []string
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		if n.Agent != "" || n.When != "" {
			continue // in a workspace, or perhaps never beside the other one
		}
		for _, file := range append(slices.Clip(n.Outputs.Files), n.Outputs.JSON) {
			if file != "" {
				if writers[file] == nil {
					files = append(files, file)
				}
				writers[file] = append(writers[file], n)
			}
		}
	}
	for _, file := range files {
		a, b := besides(spec, writers[file])
		if a == nil {
			continue
		}
		all = append(all, Advice{Code: "shared-output", Ref: e.Ref, File: e.Object.Path, Field: declaredAt(e, a.Name),
			Message:    fmt.Sprintf("%s and %s write %s, and may run at the same time", a.Name, b.Name, file),
			Suggestion: "give each a file of its own, as with {{ matrix.NAME }} or {{ params.NAME }} in it, or let one need the other"})
	}
	return all
}

// mostWriters bounds how many writers of a file are compared.
const mostWriters = 10

// besides returns two of the nodes that do not need each other, not even by others; nil for none.
func besides(spec *schemas.DAGSpec, nodes []*schemas.Node) (a, b *schemas.Node) {
	nodes = nodes[:min(len(nodes), mostWriters)]
	for i, b := range nodes {
		for _, a := range nodes[:i] {
			if a != b && !slices.Contains(spec.AllNeeds(a.Name), b.Name) && !slices.Contains(spec.AllNeeds(b.Name), a.Name) {
				return a, b
			}
		}
	}
	return nil, nil
}

// declaredAt is the place of a node in the file of its DAG. An element of a matrix and a part of a call have that of their node.
func declaredAt(e *state.Entry, name string) (at []any) {
	longest := 0
	written(e, func(n *schemas.Node, place []any) {
		if k := len(n.Name); k > longest && (name == n.Name || len(name) > k && name[:k] == n.Name && name[k] == '_') {
			longest, at = k, append(slices.Clip(place), "outputs")
		}
	})
	return at
}
