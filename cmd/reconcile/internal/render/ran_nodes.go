package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/schemas"
)

// Bounds of the list of what ran.
const (
	ranRows = 50
	ranKept = 20 * ranRows // before the shorter ones are dropped
)

// ranNodes collects the nodes that ran.
type ranNodes struct {
	nodes       []ranNode
	index       map[string]int // by name
	dropped     int
	first, last time.Time
}

// ranNode is one node that ran, once or more.
type ranNode struct {
	owner, name, state string
	took               time.Duration // all attempts
	attempts           int
}

func (r *ranNodes) add(e progress.Event) {
	if start := e.At.Add(-e.Took); r.first.IsZero() || start.Before(r.first) {
		r.first = start
	}
	if e.At.After(r.last) {
		r.last = e.At
	}
	if len(r.nodes) >= ranKept {
		r.prune()
	}
	if r.index == nil {
		r.index = map[string]int{}
	}
	id := e.Owner + " " + e.Name
	i, ok := r.index[id]
	if !ok {
		i = len(r.nodes)
		r.index[id] = i
		r.nodes = append(r.nodes, ranNode{owner: e.Owner, name: e.Name})
	}
	n := &r.nodes[i]
	n.state, n.took, n.attempts = e.State, n.took+e.Took, n.attempts+1
}

// prune keeps the nodes that did not succeed, and of the others the longest, in the order in which they ended.
func (r *ranNodes) prune() {
	if len(r.nodes) <= ranRows {
		return
	}
	order := make([]int, len(r.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return r.nodes[a].compare(&r.nodes[b]) })
	kept := slices.Sorted(slices.Values(order[:ranRows]))
	r.dropped += len(r.nodes) - ranRows
	next := make([]ranNode, 0, ranKept)
	clear(r.index)
	for _, i := range kept {
		r.index[r.nodes[i].owner+" "+r.nodes[i].name] = len(next)
		next = append(next, r.nodes[i])
	}
	r.nodes = next
}

// compare orders nodes by importance to the reader.
func (n *ranNode) compare(o *ranNode) int {
	if a, b := n.state == schemas.OutcomeSucceeded, o.state == schemas.OutcomeSucceeded; a != b {
		if a {
			return 1
		}
		return -1
	}
	return int(o.took - n.took)
}

// take returns the list as text, and clears it.
func (r *ranNodes) take(p Palette) string {
	if len(r.nodes) == 0 {
		return ""
	}
	r.prune()
	t := NewTable(p)
	t.Indent = "  "
	names := max((p.Width-len(t.Indent))/2, 10)
	for _, n := range r.nodes {
		took := Age(n.took)
		if n.attempts > 1 {
			took += fmt.Sprintf(" in %d attempts", n.attempts)
		}
		t.Cells(Cell{Text: nodeName(n.owner, n.name, names)}, Cell{Text: n.state, Color: stateColor(n.state)}, Cell{Text: took})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ran %s in %s:\n", schemas.Count(len(r.nodes)+r.dropped, "node"), Age(r.last.Sub(r.first)))
	t.Write(&b) // a strings.Builder does not fail
	if r.dropped > 0 {
		fmt.Fprintf(&b, "  … and %d more that succeeded sooner\n", r.dropped)
	}
	*r = ranNodes{}
	return b.String()
}
