package ops

import (
	"context"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/graph"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// GraphRequest requests the picture of a DAG or a workflow.
type GraphRequest struct {
	Object string // kind/name
}

// Graph returns an object's graph.Picture: the nodes of a DAG with their states, or the steps of a workflow.
func Graph(ctx context.Context, env Env, q GraphRequest) (graph.Picture, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return graph.Picture{}, typed(err)
	}
	defer s.Close()
	e, err := find(t, q.Object)
	if err != nil {
		return graph.Picture{}, typed(err)
	}
	if e.Broken() {
		return graph.Picture{}, typed(fmt.Errorf("%s cannot be drawn: %s", e.Ref, e.Problems[0].Error()))
	}
	return picture(e)
}

// noteOf is what the picture of a graph shows next to the state of a node: how long it took, and which round of a loop it is in.
func noteOf(n *schemas.Node, s schemas.NodeStatus) string {
	took := render.Took(s)
	switch {
	case n.Repeat != nil:
		return strings.TrimSpace(fmt.Sprintf("%s round %d of %d", took, max(s.Round, 1), n.Repeat.Max))
	case s.Round > 1:
		return strings.TrimSpace(fmt.Sprintf("%s round %d", took, s.Round))
	}
	return took
}

func picture(e *state.Entry) (graph.Picture, error) {
	g := graph.Picture{Title: e.Ref.String()}
	if wf := schemas.SpecAs[*schemas.WorkflowSpec](e.Object); wf != nil {
		for _, s := range wf.Steps {
			g.Nodes = append(g.Nodes, graph.Node{Name: s.ID, Note: s.Agent, Needs: s.Needs})
		}
		return g, nil
	}
	dag := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if dag == nil {
		return g, badRequest("%s has no graph; dags and workflows have", e.Ref)
	}
	status, _ := e.Status().(*schemas.DAGStatus)
	for _, n := range dag.Nodes {
		node := graph.Node{Name: n.Name, State: schemas.NodePending, Needs: n.Needs}
		if status != nil {
			if s := status.Nodes.Find(n.Name); s != nil {
				node.State, node.Note = s.State, noteOf(&n, *s)
			}
		}
		g.Nodes = append(g.Nodes, node)
	}
	return g, nil
}
