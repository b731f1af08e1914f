package dags

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Touching says which work holds the files that nodes touch: that of the nodes that run, and what is done and has not landed. The zero
// value says that nothing does.
type Touching struct {
	itself, below map[string]*toucher // by path, and by each folder above one
}

// toucher is a node that holds a path.
type toucher struct {
	node, path string
	done       bool // its work is
}

// TouchingIn finds what the nodes of a tree touch.
func TouchingIn(t *state.Tree) *Touching {
	h := &Touching{map[string]*toucher{}, map[string]*toucher{}}
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if e.Object == nil || !bytes.Contains(e.Object.Canonical(), []byte(`"touches":`)) {
			continue // most need not be decoded for it
		}
		spec, st := schemas.SpecAs[*schemas.DAGSpec](e.Object), (*schemas.DAGStatus)(nil)
		if st, _ = e.Status().(*schemas.DAGStatus); st == nil || spec == nil {
			continue
		}
		for i := range spec.Nodes {
			if n := &spec.Nodes[i]; len(n.Touches) > 0 {
				h.add(e.Ref, n, st.Nodes.Of(n.Name))
			}
		}
	}
	return h
}

func (h *Touching) add(dag schemas.Ref, n *schemas.Node, s schemas.NodeStatus) {
	done := s.Reason == settle.ReasonLanding || s.Reason == settle.ReasonInspecting || s.Reason == settle.ReasonTesting
	if s.State != schemas.NodeRunning && (s.State != schemas.NodeQueued || !done) {
		return
	}
	for _, p := range plan.TouchedPaths(n.Touches) {
		by := &toucher{dag.String() + "/" + n.Name, p, done}
		h.itself[p] = cmp.Or(h.itself[p], by)
		for p != "" {
			p = p[:max(0, strings.LastIndexByte(p, '/'))]
			h.below[p] = cmp.Or(h.below[p], by)
		}
	}
}

// Why says which work holds a path that a node touches and waits for; "" if none does, or the node waits for something else.
func (h *Touching) Why(n *schemas.Node, s schemas.NodeStatus) string {
	if h == nil || s.State != schemas.NodeQueued || s.Reason != settle.ReasonWaitsForPlace {
		return ""
	}
	for _, p := range plan.TouchedPaths(n.Touches) {
		by := cmp.Or(h.itself[p], h.below[p])
		for up := p; by == nil && up != ""; {
			up = up[:max(0, strings.LastIndexByte(up, '/'))]
			by = h.itself[up]
		}
		if by != nil {
			return by.holds(p)
		}
	}
	return ""
}

// holds says that the node holds a path that another one waits for.
func (t *toucher) holds(path string) string {
	what, doing := "it", "runs"
	if t.path != path {
		what = named(t.path)
	}
	if t.done {
		doing = "has yet to land its work"
	}
	return fmt.Sprintf("waits for %s: %s touches %s and %s", named(path), t.node, what, doing)
}

// named is a path of TouchedPaths for people.
func named(path string) string { return cmp.Or(path, "all files") }

// HeldNodes says of the nodes of a DAG that wait for others which touch the same files what they wait for, by name; nil if none does.
func HeldNodes(e *state.Entry, h *Touching) map[string]string {
	st, ok := e.Status().(*schemas.DAGStatus)
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if !ok || spec == nil {
		return nil
	}
	var out map[string]string
	for i := range spec.Nodes {
		if why := h.Why(&spec.Nodes[i], st.Nodes.Of(spec.Nodes[i].Name)); why != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[spec.Nodes[i].Name] = why
		}
	}
	return out
}
