package ops

import (
	"context"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// newAction is an Action that is to be written into an open tree.
type newAction struct {
	env   Env
	store *state.Store
	tree  *state.Tree
	spec  schemas.ActionSpec
}

// beginAction opens the tree for an Action by a person or an agent; "" is the caller. The caller closes the store.
func (e Env) beginAction(ctx context.Context, verb, by, reason string) (*newAction, error) {
	who, err := e.Caller.Actor("--by", by)
	if err != nil {
		return nil, err
	}
	o, err := e.openChanged(ctx)
	if err != nil {
		return nil, err
	}
	return &newAction{e, o.store, o.tree, schemas.ActionSpec{Verb: verb, Reason: e.redact("--reason", reason), By: who.Name, Proof: who.Proof,
		At: schemas.NewTime(e.Tree.Now())}}, nil
}

// write writes the Action, and runs the tree to apply it, unless noRun is set or another run is active. The path of the file is valid
// even with an error, if it is not empty.
func (a *newAction) write(ctx context.Context, name string, noRun bool) (file string, run *RunResult, err error) {
	if file, err = specs.Write(a.store, a.tree, schemas.ActionKind, name, &a.spec); err != nil {
		return "", nil, err
	}
	a.env.note("wrote %s", file)
	run, err = a.env.applyByRun(ctx, a.tree, noRun)
	return file, run, err
}

// actionName returns a name such as retry-checks-20260227t100000z-1a2b3c: verb, target, time, and a digest that
// distinguishes requests of the same second. A long target is shortened.
func actionName(spec schemas.ActionSpec) string {
	most := min(30, 38-len(spec.Verb))
	_, name, ok := strings.Cut(spec.Target, "/")
	if !ok {
		name = spec.Target
	}
	name = strings.TrimRight(name[:min(len(name), most)], "-._")
	digest := specs.NameDigest(3, spec.Target, spec.Node, spec.Verb, spec.By, spec.Reason+spec.Text+spec.Answer, spec.At.UnixMilli(), spec.All, spec.Mode, spec.Alone, spec.Permission)
	return strings.Join([]string{spec.Verb, name, spec.At.UTC().Format("20060102t150405z"), digest}, "-")
}

// applyByRun runs the tree to apply the written specs, unless an active run will apply it. nil: there was no run.
func (e Env) applyByRun(ctx context.Context, before *state.Tree, noRun bool) (*RunResult, error) {
	switch {
	case noRun:
		return nil, nil
	case anyClaim(before):
		e.note("another run is at work and takes it from here")
		return nil, nil
	}
	r, err := e.run(ctx, engine.Request{})
	if err != nil {
		return nil, err
	}
	return &r, nil
}
