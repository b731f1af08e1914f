package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/commits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// RunRequest requests a run of the loop.
type RunRequest struct {
	Watch  bool   // keep running after each change
	Commit bool   // commit the written files even if the settings do not ask for it
	Push   bool   // share the branch; implies Commit
	Object string // the DAG to run, as dag/NAME; "": everything
	Node   string // the node of Object to run, with its dependencies; "": all nodes
	// Params are values of parameters of Object, as NAME=VALUE; they are written into its spec before the run.
	Params []string
}

// RunResult is the outcome of a run.
type RunResult struct {
	Objects    []state.Count `json:"objects"` // in the order of the table of kinds
	Ready      int           `json:"ready"`
	Total      int           `json:"total"`
	Unchanged  bool          `json:"unchanged,omitempty"` // nothing had changed since the last run
	Ran        int           `json:"ran"`
	Wrote      int           `json:"wrote"`
	Commit     string        `json:"commit,omitempty"`
	Pushed     bool          `json:"pushed,omitempty"`   // all commits are on the remote
	Pulled     bool          `json:"took,omitempty"`     // commits of others were merged
	MemoryBusy bool          `json:"held,omitempty"`     // the memory waits for a lock; the next run continues
	Waits      []string      `json:"waits,omitempty"`    // actions for people, one per line
	NotReady   []ObjectRow   `json:"notReady,omitempty"` // if Env.Explain; absent if nothing had changed and Verdict is OK

	Verdict  Code                    `json:"-"` // OK, Invalid or NotReady, and Busy if something is held
	Busy     error                   `json:"-"` // the lock that was not available; nil: none
	Sent     bool                    `json:"-"` // a commit was pushed
	Standing readiness.StandingCount `json:"-"` // of all objects; zero if nothing had changed and Verdict is OK
	Unready  []readiness.Row         `json:"-"` // as readiness.Report.Rows, or all if Env.Explain

	problems []schemas.Problem
	tree     *state.Tree // nil if the run did not read the tree
	only     *settle.Selection
}

// HasTree reports whether the result has the tree of the run, which need not have read it.
func (r *RunResult) HasTree() bool { return r.tree != nil }

// entries returns the entries of the run's tree that were selected, by kind and name; none if the result has no tree.
func (r *RunResult) entries() iter.Seq[*state.Entry] {
	if r.tree == nil {
		return func(func(*state.Entry) bool) {}
	}
	return r.only.Entries(r.tree)
}

// Problems returns the problems of the run's selected entries, or of all files of its tree if everything was selected.
func (r *RunResult) Problems() []schemas.Problem { return r.problems }

// Listed selects the objects to show after a run, the first of how many: all if there are few, or else those that are not
// ready, but only failures if nothing had changed or failed says so.
func (r *RunResult) Listed(failed bool) (rows []readiness.Row, total int) {
	switch {
	case failed:
		rows = slices.DeleteFunc(slices.Clone(r.Unready), func(row readiness.Row) bool { return row.Waits })
		total = r.Standing.Failed + r.Standing.Invalid
	case r.tree == nil || r.Unchanged || r.Total > readiness.MostRows:
		rows, total = r.Unready, r.Standing.Unready()
	default:
		for e := range r.entries() {
			applied := e.Kind == schemas.ActionKind.Name && readiness.Standing(e).Ready == 1 // "get actions" lists it
			if readiness.Standing(e).Total() == 1 && (e.HasStatus() || readiness.ExpectsStatus(e)) && !applied {
				rows = append(rows, readiness.RowOf(e))
			}
		}
		total = len(rows)
	}
	return rows[:min(readiness.MostRows, len(rows))], total
}

// Summary returns, for example, "12 of 13 objects ready (1 session, 12 dags), 1 waiting; 4 runs, 3 files written".
func (r *RunResult) Summary() string {
	var kinds []string
	for _, c := range r.Objects {
		k, _ := controllers.Schemas().Find(c.Kind)
		word := k.Plural
		if c.Total == 1 {
			word = k.Singular()
		}
		kinds = append(kinds, fmt.Sprintf("%d %s", c.Total, word))
	}
	s := fmt.Sprintf("%d of %s ready (%s)", r.Ready, schemas.Count(r.Total, "object"), strings.Join(kinds, ", "))
	for _, part := range []struct {
		n    int
		word string
	}{{r.Standing.Waiting, "waiting"}, {r.Standing.Failed, "failed"}, {r.Standing.Invalid, "invalid"}} {
		if part.n > 0 {
			s += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	if s += "; " + r.activity(); r.MemoryBusy {
		s += "; the memory waits for a lock"
	}
	return s
}

// activity describes what a run did, pushed and pulled.
func (r *RunResult) activity() string {
	s := "nothing to do"
	switch {
	case r.Unchanged:
		return "nothing changed since the last run"
	case r.Ran > 0 || r.Wrote > 0 || r.Commit != "":
		s = schemas.Count(r.Ran, "run") + ", " + schemas.Count(r.Wrote, "file") + " written"
	}
	if r.Commit != "" {
		s += ", committed as " + r.Commit[:min(len(r.Commit), 10)]
	}
	switch {
	case r.Sent && r.Commit != "":
		s += " and pushed"
	case r.Sent:
		s += ", pushed earlier commits"
	}
	if r.Pulled {
		s += ", pulled commits of others"
	}
	return s
}

// ObjectRow is one object with the reason for its state.
type ObjectRow struct {
	Ref    string `json:"ref"`
	Phase  string `json:"phase,omitempty"`
	Reason string `json:"reason"`
}

// Run drives the tree to its fixed point.
func Run(ctx context.Context, env Env, q RunRequest) (RunResult, error) {
	if err := env.setParams(ctx, q); err != nil {
		return RunResult{}, typed(err)
	}
	only, waits, err := env.selection(ctx, q)
	if err != nil {
		return RunResult{}, typed(err)
	}
	if waits {
		if _, err := Act(ctx, env, ActRequest{Verb: schemas.VerbRetry, Target: q.Object, All: true, Reason: "a run out of its schedule", NoRun: true}); err != nil {
			return RunResult{}, err
		}
	}
	r, err := env.run(ctx, engine.Request{Watch: q.Watch, Commit: q.Commit || q.Push, Push: q.Push, Only: only})
	if none, ok := errors.AsType[*commits.NoRepositoryError](err); ok {
		switch {
		case none.Request.Push:
			err = badField("push", ": %v, or leave out --push; nothing was run", none.Err)
		case none.Request.Commit:
			err = badField("commit", ": %v, or leave out --commit; nothing was run", none.Err)
		}
	}
	r.explainNode(q.Object, q.Node)
	return r, typed(err)
}

// explainNode adds to the waits why a node of a DAG that was asked for has not succeeded, if it has ended.
func (r *RunResult) explainNode(dag, node string) {
	if r.tree == nil || node == "" {
		return
	}
	if e, err := find(r.tree, dag); err == nil {
		if why := work.Undone(e, node); why != "" {
			r.Waits = append(r.Waits, why)
		}
	}
}

// selection returns the selected effects; nil selects all. waits says that a DAG is selected that waits for its schedule.
func (e Env) selection(ctx context.Context, q RunRequest) (only *settle.Selection, waits bool, err error) {
	switch {
	case q.Object == "":
		return nil, false, nil
	case q.Watch:
		return nil, false, badField("watch", " performs everything; leave out either it or %s", q.Object)
	}
	s, t, err := e.load(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.Close()
	found, err := find(t, q.Object)
	switch {
	case err != nil:
	case found.Kind != schemas.DAGKind.Name:
		err = badRequest("%s is not run by itself; DAGs are, and their nodes", found.Ref)
	case found.Gone():
		err = notFound(t, found.Ref)
	case q.Node == "":
		return &settle.Selection{DAG: found.Name}, dags.RunsNow(found), nil
	case found.Object != nil:
		err = findNode(found, q.Node)
	}
	if err != nil {
		return nil, false, badRequest("%w", err)
	}
	return &settle.Selection{DAG: found.Name, Nodes: []string{q.Node}}, false, nil
}

// run runs the loop for people, and shows clarification events.
func (e Env) run(ctx context.Context, q engine.Request) (RunResult, error) {
	out, err := e.runLoop(ctx, q, true)
	if err != nil {
		return RunResult{}, err
	}
	if out.Tree == nil && out.Verdict != readiness.ExitReady && (out.Report == nil || e.Explain && !out.Report.Whole()) {
		s, t, err := e.load(ctx)
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return RunResult{}, err
		}
		out.Tree = t
	}
	return e.newRunResult(out), nil
}

// newRunResult collects the report about a run.
func (e Env) newRunResult(out engine.Result) RunResult {
	r := RunResult{Waits: out.Waits, Unchanged: out.Unchanged, Ran: out.Ran, Wrote: out.Wrote, Commit: out.Commit, MemoryBusy: out.MemoryBusy,
		Pushed: out.Pushed, Pulled: out.Pulled, Sent: out.Sent, Verdict: Code(out.Verdict), Objects: out.Counts}
	if out.MemoryBusy {
		r.Verdict = Busy
	}
	if out.LedgersBusy != nil {
		r.Busy = lockTimeout(out.LedgersBusy, "run again")
	}
	switch {
	case out.Tree != nil:
		e.readTree(&r, out)
	case out.Report != nil:
		r.Unready, r.Standing = out.Report.Rows, out.Report.Count
		for _, p := range out.Report.Problems {
			r.problems = append(r.problems, p.Whole())
		}
	}
	for _, c := range r.Objects {
		r.Ready += c.Ready
		r.Total += c.Total
	}
	if e.Explain {
		for _, row := range r.Unready {
			r.NotReady = append(r.NotReady, ObjectRow{row.Ref.String(), cmp.Or(row.Phase, "-"), row.Because})
		}
	}
	return r
}

// readTree adds what the tree of a run says.
func (e Env) readTree(r *RunResult, out engine.Result) {
	r.tree, r.only, r.Objects = out.Tree, out.Only, nil
	most := readiness.MostRows
	if e.Explain {
		most = math.MaxInt
	}
	r.Unready = readiness.NotReady(out.Only.Unrested(out.Tree, most), most)
	standing := readiness.StandingOf(out.Tree, out.Only)
	for _, k := range settle.TableOf(out.Tree) {
		if c := standing[k.Name]; c.Total() > 0 {
			r.Objects = append(r.Objects, state.Count{Kind: k.Name, Ready: c.Ready, Total: c.Total()})
			r.Standing.Add(c)
		}
	}
	if out.Only == nil {
		r.problems = out.Tree.Problems()
		return
	}
	for entry := range r.entries() {
		r.problems = append(r.problems, entry.Problems...)
	}
}

// silentView is the view of a run that shows only warnings.
type silentView struct {
	render.Silent
	warn func(text string)
}

func (silentView) Said(*settle.Clarified) {}

func (silentView) Missed(int) {}

func (u silentView) Warn(text string) { u.warn(text) }

// runLoop runs the loop on the tree; talk shows clarification events.
func (e Env) runLoop(ctx context.Context, q engine.Request, talk bool) (engine.Result, error) {
	var view View = silentView{warn: e.warn}
	if e.View != nil {
		view = e.View(talk)
	}
	defer view.Close()
	run := engine.Run
	if e.Engine != nil {
		run = e.Engine
	}
	return run(ctx, engine.Options{Tree: e.Tree, Sink: view, Attended: e.Attended, Inside: e.Caller.Run(), WarnIndex: e.warnIndex, Sandbox: e.Sandbox}, q)
}

// update updates the tree by a run, so that expired questions are noticed and written files are applied. With
// DecideOnly it starts nothing and waits for nothing. With noRun, while another run is active, or inside a run, it only
// reads the tree: that run does the rest. whole reports whether the memory is up to date, too.
func (e Env) update(ctx context.Context, o *openTree, noRun bool, q engine.Request) (whole bool, err error) {
	switch {
	case noRun || e.Caller.InRun():
	case anyClaim(o.tree):
		e.note(otherAtWork)
	default:
		out, err := e.runLoop(ctx, q, false)
		if out.LedgersBusy != nil && q.DecideOnly {
			e.note("%v", out.LedgersBusy)
		} else {
			err = errors.Join(err, out.LedgersBusy)
		}
		if err != nil {
			return false, lockTimeout(err, "what was written is kept, the next run takes it up")
		}
		whole = !out.MemoryBusy
		if out.Verdict == readiness.ExitInvalid {
			e.note("some spec files cannot be used; \"reconcile validate\" lists them")
		}
	}
	return whole, o.refresh(ctx, nil)
}

const otherAtWork = "another run is at work; this is how things stand"

// anyClaim reports whether a live process performs an effect in this tree.
func anyClaim(t *state.Tree) bool {
	for e := range (*settle.Selection)(nil).Active(t) {
		if len(e.Claims) > 0 {
			return true
		}
	}
	return false
}
