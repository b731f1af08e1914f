package ops

import (
	"context"
	"fmt"
	"os"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/outputs"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// DescribeRequest requests all information about one object.
type DescribeRequest struct {
	Object string // kind/name, or the id of a clarification
	At     string // a revision of git; "": the present tree
}

// Description is an object with all information about it.
type Description struct {
	Object
	Path      string   `json:"path,omitempty"`
	Why       []string `json:"why"`       // why it is not ready, and when it is decided again
	Referrers []string `json:"referrers"` // objects that reference it
	// OutputsChanged are the declared outputs that have changed since their runs, by node.
	OutputsChanged map[string][]string `json:"outputsChanged,omitempty"`

	// Turns are the latest recorded turns of agents, by node; Usage is the sum over the turns of an agent.
	Turns map[string]*schemas.Turn `json:"turns,omitempty"`
	Usage *turns.Total             `json:"usage,omitempty"`

	Entry          *state.Entry        `json:"-"`
	Details        []settle.Column     `json:"-"` // specific to the kind
	OutputsMissing map[string][]string `json:"-"` // declared outputs that do not exist, by node
	Interrupted    []string            `json:"-"` // nodes with the status Running that no process runs
}

// Describe returns the Description of an object: its spec and status, details, referrers, and why it has its state.
// Outputs are compared with the files only for the present tree.
func Describe(ctx context.Context, env Env, q DescribeRequest) (Description, error) {
	t, done, err := env.loadAt(ctx, q.At)
	if err != nil {
		return Description{}, typed(err)
	}
	defer done()
	e, err := find(t, q.Object)
	if err != nil {
		return Description{}, typed(err)
	}
	details := append(slices.Clip(settle.TableOf(t).Details(e)), agents.UsageDetails(t, e)...)
	d := Description{Object: NewObject(e), Entry: e, Details: details, Turns: agents.NodeTurns(e), Why: readiness.Why(e, t), Referrers: []string{}}
	for _, r := range t.Referrers(e.Ref) {
		d.Referrers = append(d.Referrers, r.String())
	}
	if e.Kind == schemas.AgentKind.Name {
		d.Usage = agents.Totals(t)[e.Name]
	}
	if e.Object != nil {
		d.Path = e.Object.Path
	}
	if q.At == "" {
		d.Interrupted = nodes.Interrupted(e)
		d.OutputsMissing, d.OutputsChanged, err = outputs.Compare(ctx, env.Tree.Dir, e)
	}
	return d, typed(err)
}

// loadAt reads the tree of a commit; "" is the present tree. done releases it.
func (e Env) loadAt(ctx context.Context, rev string) (t *state.Tree, done func(), err error) {
	if rev == "" {
		s, t, err := e.load(ctx)
		if err != nil {
			return nil, nil, err
		}
		return t, func() { _ = s.Close() }, nil // this only saves a cache
	}
	repo, commit, err := e.Tree.Revision(ctx, rev)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "reconcile-at-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the tree of %s: %w", rev, err)
	}
	remove := func() { _ = os.RemoveAll(dir) } // the system removes the rest
	t, err = e.Tree.LoadAt(ctx, repo, commit, dir)
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("read the tree of %s: %w", rev, err)
	}
	return t, remove, nil
}
