package ops

import (
	"context"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// StartRequest requests a run of a workflow.
type StartRequest struct {
	Workflow string // its name, with or without its kind
	Issue    int    // 0: none
	Text     string // the issue in Markdown, with its title as the first heading; "": as an earlier session or GitHub has it
	Params   map[string]any
	Skip     []string
	Reason   string
	By       string // the acting person; "": the caller
	NoRun    bool   // only write the action; the next run applies it
}

// StartResult is the outcome of a start.
type StartResult struct {
	Path string      // the file of the action
	DAG  schemas.Ref // of the run, or the one that it joined; zero: the next run of the tree makes it
	New  bool        // the start made the run
	Run  *RunResult  // the run that applied it; nil: another one does
}

// Start writes the Action that starts a workflow, and runs the tree to apply it, unless another run is active. Only people may. The
// result is valid even with an error, if it has a path.
func Start(ctx context.Context, env Env, q StartRequest) (r StartResult, err error) {
	if err := env.authorize("Start"); err != nil {
		return r, typed(err)
	}
	a, err := env.beginAction(ctx, schemas.VerbStart, q.By, q.Reason)
	if err != nil {
		return r, typed(err)
	}
	defer a.store.Close()
	e, err := findWorkflow(a.tree, q.Workflow)
	if err != nil {
		return r, typed(err)
	}
	spec := &a.spec
	spec.Target, spec.Issue, spec.Text, spec.Params, spec.Skip = e.Ref.String(), q.Issue, env.redact("the issue", q.Text), q.Params, q.Skip
	name := startName(spec)
	if err := env.checkStart(a.tree, name, spec); err != nil {
		return r, typed(err)
	}
	if r.Path, r.Run, err = a.write(ctx, name, q.NoRun); r.Path != "" {
		err = errors.Join(err, env.readStart(ctx, name, spec, &r))
	}
	return r, typed(err)
}

// startName is the name of the action of a start.
func startName(spec *schemas.ActionSpec) string {
	named := *spec
	named.Text += fmt.Sprint(spec.Issue, spec.Skip, spec.Params)
	return actionName(named)
}

// checkStart returns why a start could have no effect, before anything is written.
func (e Env) checkStart(t *state.Tree, name string, spec *schemas.ActionSpec) error {
	if spec.Issue == 0 && schemas.IssueTitle(spec.Text) == "" {
		return badField("issue", " or --issue-file is missing: name the issue, or a file whose first heading is its title")
	}
	run, free := workflows.RunOf(t, name, spec, workflows.Ended)
	if run != nil {
		if err := workflows.Differs(run, name, spec); err != nil {
			return badRequest("%w", err)
		}
		return nil
	}
	_, _, err := workflows.Make(t, free, name, spec)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, workflows.ErrNoText) || t.Settings().GitHub.Repo == "":
		return badRequest("%w", err)
	case (egress.Policy{Getenv: e.Tree.Getenv}).GitHubToken() == "":
		return badRequest("%w. Neither %s nor %s is set here", err, egress.TokenVariable, egress.OtherToken)
	}
	return nil // the run reads the issue
}

// readStart adds to a result which run the start made or joined. The error says why the run that applied it made none.
func (e Env) readStart(ctx context.Context, name string, spec *schemas.ActionSpec, r *StartResult) error {
	s, t, err := e.load(ctx)
	if err != nil {
		return nil // the run reported the error
	}
	defer s.Close()
	if run, _ := workflows.RunOf(t, name, spec, workflows.Ended); run != nil && workflows.Differs(run, name, spec) == nil {
		r.DAG, r.New = run.Ref, workflows.Started(run, name)
		return nil
	}
	a := t.Entry(schemas.ActionKind.Ref(name))
	if r.Run == nil || a == nil || !a.HasStatus() {
		return nil
	}
	if c := a.Status().Base().Condition(schemas.Ready); c != nil {
		return fmt.Errorf("nothing was started yet: %s", c.Message)
	}
	return nil
}
