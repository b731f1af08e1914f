package ops

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/plan"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/share"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/versions"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

// PlanRequest requests what a run would do to the present tree.
type PlanRequest struct {
	Advice bool // also find valid specs that probably do not work as intended
}

// PlanResult is what a run would do.
type PlanResult struct {
	Steps    []settle.Step
	Waits    []Waiting         // what waits for people or for what is not there
	Bounds   mirror.PullBounds // what the runs among Steps cost at most
	Problems []schemas.Problem // of the files; with Advice also warnings about valid ones
	Verdict  Code              // OK, Invalid or NotReady: the state of the objects before the run
	// AsOf says what the plan does not know, if other reconcilers share the branch: it fetches nothing. "" if none does.
	AsOf string
}

// Plan plans the steps that a run would take on the present tree, with the problems of its files, and changes nothing.
func Plan(ctx context.Context, env Env, q PlanRequest) (PlanResult, error) {
	open := env.openChanged
	if q.Advice {
		open = env.open // about every spec
	}
	o, err := open(ctx)
	if err != nil {
		return PlanResult{}, typed(err)
	}
	s, t := o.store, o.tree
	defer s.Close()
	now := env.Tree.Now()
	tools := versions.Open(s.Dir(), s.Root(), secrets.RedactBytes)
	r := PlanResult{Steps: controllers.Plan(t, now, tools.Foretell, settle.Doubtful(t, o.reader.Changed)), Verdict: Code(readiness.Verdict(t, nil)), Problems: t.Problems()}
	r.Bounds, r.Waits = plan.Bounds(t, r.Steps, now), waiting(t, r.Steps, now)
	r.AsOf = asOf(share.LastFetch(s.Root()), t.Settings().Git.Push)
	if q.Advice {
		r.Problems = tree.Problems(s, t)
	}
	return r, nil
}

// asOf says what this clone does not know of a branch that others share: what they have claimed, reserved or done since its last fetch.
func asOf(fetched time.Time, push bool) string {
	switch {
	case !fetched.IsZero():
		return "as far as this clone knows: what others on the branch have claimed or used since " + fetched.UTC().Format(time.RFC3339) +
			", when it last fetched, is not in it"
	case push:
		return "as far as this clone knows: it has not fetched what others on the branch have claimed or used"
	}
	return ""
}

// Waiting is work that needs a person before it continues.
type Waiting struct {
	Ref  string // dag/checks, CLR-42-001
	Node string // "" for the whole
	Why  string
}

// String describes it in a line.
func (w Waiting) String() string { return strings.TrimSuffix(w.Ref+"/"+w.Node, "/") + " " + w.Why }

// waiting lists what people have to do or commit before work continues, and missing programs. A budget that was used up in the last run, and lets
// a step run now, is none of it.
func waiting(t *state.Tree, steps []settle.Step, now time.Time) (out []Waiting) {
	for _, w := range work.Waits(t, nil, now) {
		is := Waiting{Ref: w.What, Why: strings.TrimPrefix(w.String(), w.What+" ")}
		if i := strings.LastIndex(w.What, "/"); strings.Count(w.What, "/") > 1 {
			is.Ref, is.Node = w.What[:i], w.What[i+1:]
		}
		out = append(out, is)
	}
	type place struct {
		ref  schemas.Ref
		node string
	}
	planned := map[place]bool{}
	for _, s := range steps {
		planned[place{s.Ref, s.Node}] = true
	}
	for _, e := range t.Active(schemas.DAGKind.Name) {
		st, ok := e.Status().(*schemas.DAGStatus)
		if !ok || !e.Brief().Blocked {
			continue
		}
		for _, name := range nodes.NodeNames(e) {
			is := Waiting{Ref: e.Ref.String(), Node: name}
			switch n := st.Nodes.Of(name); n.Reason {
			case settle.ReasonNotCommitted, settle.ReasonTreeDirty:
				is.Why = fmt.Sprintf("waited in the last run: %s; then run reconcile", n.Message)
			case settle.ReasonToolUnknown, settle.ReasonAgentUnhealthy, settle.ReasonBudgetExceeded:
				if n.Reason == settle.ReasonBudgetExceeded && planned[place{e.Ref, name}] {
					continue
				}
				is.Why = "is blocked: " + n.Message
			default:
				continue
			}
			out = append(out, is)
		}
	}
	return out
}

// PlanChangeRequest requests what an unmerged change would do.
type PlanChangeRequest struct {
	Base, Head  string // revisions; "": no base, and HEAD as the head
	PullRequest int    // the number of the pull request to comment on; 0: none
	Out         string // the file to which the plan is written instead; "": none
	// From is a file with a saved plan, which is commented if its pull request is at Head; "": the plan is computed
	// now.
	From string
}

// ChangePlan is what a change would do.
type ChangePlan struct {
	Pull     *mirror.Pull
	Problems []schemas.Problem
	Head     string              // the planned commit, as the pull request names it
	Said     *plan.CommentResult // the outcome of the comment on the pull request; nil: there was no attempt
	Verdict  Code                // Invalid if specs of the change are
}

// PlanChange plans what an unmerged change would do, and saves the plan or comments it on the pull request. It computes
// what the head commit would do with the settings and the state of the base. The plan is valid even with an error.
func PlanChange(ctx context.Context, env Env, q PlanChangeRequest) (r ChangePlan, err error) {
	heads := []string{q.Head}
	if q.From != "" {
		r.Head = q.Head
		r.Pull, err = plan.Load(env.CallerPath(q.From), q.From)
	} else {
		heads, err = env.planBetween(ctx, q, &r)
	}
	if err != nil {
		return r, typed(err)
	}
	switch {
	case q.Out != "":
		err = plan.Save(env.CallerPath(q.Out), q.Out, r.Pull)
	case q.From != "" || q.PullRequest != 0:
		var said plan.CommentResult
		if said, err = plan.Comment(ctx, env.Tree, r.Pull, heads); err == nil {
			r.Said = &said
		}
	}
	return r, typed(err)
}

// planBetween computes the plan, and returns the commits at which the pull request may be.
func (e Env) planBetween(ctx context.Context, q PlanChangeRequest, r *ChangePlan) ([]string, error) {
	repo, base, err := e.Tree.Revision(ctx, q.Base)
	if err != nil {
		return nil, err
	}
	head, err := repo.Resolve(ctx, cmp.Or(q.Head, "HEAD"))
	if err != nil {
		return nil, err
	}
	if r.Pull, r.Problems, err = plan.Between(ctx, e.Tree, repo, base, head); err != nil {
		return nil, err
	}
	if r.Pull.Number = q.PullRequest; r.Pull.Errors > 0 {
		r.Verdict = Invalid
	}
	r.Head = head
	if q.PullRequest != 0 && q.Out == "" {
		if second, err := repo.Resolve(ctx, head+"^2"); err == nil {
			r.Head = second // the second parent of GitHub's test merge is the head of the pull request
		}
	}
	return []string{head, r.Head}, nil
}

// PlanGitHub returns the calls that would update GitHub's issues from the tree, without making them. It reads the
// present issues. nil: nothing could be read; with an error the calls may be incomplete.
func PlanGitHub(ctx context.Context, env Env) (*plan.Calls, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer s.Close()
	calls, err := plan.GitHub(ctx, env.Tree, s, t)
	return calls, typed(err)
}
