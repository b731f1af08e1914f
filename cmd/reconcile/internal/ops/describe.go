package ops

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/outputs"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// DescribeRequest asks for all about one object.
type DescribeRequest struct {
	Object string // kind/name, or the id of a clarification
	At     string // a revision of git; "": the tree as it is
}

// Description is an object with all about it.
type Description struct {
	Object
	Path      string   `json:"path,omitempty"`
	Why       []string `json:"why"`       // why it is not ready, and when it is looked at again
	Referrers []string `json:"referrers"` // objects that name it
	// OutputsChanged are the declared outputs that have changed since their runs, by node.
	OutputsChanged map[string][]string `json:"outputsChanged,omitempty"`

	Entry          *state.Entry         `json:"-"`
	Details        []controllers.Column `json:"-"` // of the kind
	OutputsMissing map[string][]string  `json:"-"` // declared outputs that are not here, by node
	Interrupted    []string             `json:"-"` // nodes that the status says run, and that no process runs
}

// Describe tells all about one object. The outputs are compared with the files only for the tree as it is.
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
	d := Description{Object: NewObject(e), Entry: e, Details: controllers.TableOf(t).Details(e), Why: controllers.Why(e, t), Referrers: []string{}}
	for _, r := range t.Referrers(e.Ref) {
		d.Referrers = append(d.Referrers, r.String())
	}
	if e.Object != nil {
		d.Path = e.Object.Path
	}
	if q.At == "" {
		d.Interrupted = controllers.Interrupted(e)
		d.OutputsMissing, d.OutputsChanged, err = outputs.Compare(ctx, env.Tree.Dir, e)
	}
	return d, typed(err)
}
