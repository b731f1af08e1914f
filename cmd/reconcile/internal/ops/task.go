package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TaskVerbs are the verbs of [Task].
var TaskVerbs = []string{schemas.VerbPrompt, schemas.VerbInterrupt, schemas.VerbIgnoreInspector, schemas.VerbIgnoreTester, schemas.VerbHandoff, schemas.VerbStopHandoff}

// VerbQuery is what [QueryTask] does.
const VerbQuery = "query"

// TaskRequest is what a person says about the task of an agent.
type TaskRequest struct {
	Name string // dag/NAME:NODE, or the unique name of a node or an agent
	Verb string // one of TaskVerbs
	Text string // for the agent; of the verbs that it hears nothing of, the reason
	// Digest is that of the change whose verdict is ignored, as the person has seen it; "": the present one.
	Digest string
	By     string        // the acting person; "": the caller
	NoRun  bool          // only write the action
	Wait   time.Duration // wait that long until the text has arrived; 0: do not wait
}

// TaskResult is the outcome of a TaskRequest.
type TaskResult struct {
	Node    string                  `json:"node"`   // dag/NAME:NODE
	Action  string                  `json:"action"` // its name
	Path    string                  `json:"path"`
	Receipt *schemas.MessageReceipt `json:"receipt,omitempty"` // nil: it has not arrived yet
	Note    string                  `json:"note"`              // when and how it arrived, or why it has not
	Run     *RunResult              `json:"-"`                 // the run that applied it; nil: another one does
}

// Task writes the Action of a TaskRequest, and runs the tree to apply it, unless another run is active. Only people may. The result is valid even with an error, if it has a path.
func Task(ctx context.Context, env Env, q TaskRequest) (r TaskResult, err error) {
	if !slices.Contains(TaskVerbs, q.Verb) {
		return r, badRequest("a task cannot be told to %s%s; it knows %s", q.Verb, schemas.DidYouMean(q.Verb, TaskVerbs), VerbQuery+", "+strings.Join(TaskVerbs, ", "))
	}
	if err := env.authorize("Task"); err != nil {
		return r, typed(err)
	}
	if q.Verb == schemas.VerbPrompt && strings.TrimSpace(q.Text) == "" {
		return r, badRequest("there is nothing to tell: reconcile task NAME prompt TEXT")
	}
	a, err := env.beginAction(ctx, q.Verb, q.By, "")
	if err != nil {
		return r, typed(err)
	}
	defer a.store.Close()
	dag, node, err := findTask(a.tree, q.Name, false)
	if err != nil {
		return r, typed(err)
	}
	spec := &a.spec
	spec.Target, spec.Node = "dag/"+dag, node
	if text := env.redact("TEXT", q.Text); schemas.IsMessage(q.Verb) {
		spec.Text = text
	} else {
		spec.Reason = text
	}
	if schemas.IgnoredStep(q.Verb) != "" {
		if spec.Digest, err = env.presentChange(a.tree, spec); err != nil {
			return r, typed(err)
		}
		if q.Digest != "" && q.Digest != spec.Digest {
			return r, badRequest("the change is another one by now; its digest is %s: reconcile task %s:%s query", spec.Digest, spec.Target, node)
		}
	} else if q.Digest != "" {
		return r, badRequest("--digest is for %s and %s", schemas.VerbIgnoreInspector, schemas.VerbIgnoreTester)
	}
	r.Node, r.Action = spec.Target+":"+node, actionName(*spec)
	if r.Path, r.Run, err = a.write(ctx, r.Action, q.NoRun); err != nil {
		return r, typed(err)
	}
	if r.Note = "the next run applies it"; r.Run == nil && !q.NoRun {
		r.Note = "the run that is at work applies it"
	}
	if q.Wait > 0 {
		_, err = Wait(ctx, env, WaitRequest{Objects: []string{"action/" + r.Action}, For: "condition=" + actions.Delivered, Timeout: q.Wait})
	}
	env.readReceipt(ctx, &r)
	return r, typed(err)
}

// presentChange is the digest of the change of an action's node, as it is now: the status in the files may be older.
func (e Env) presentChange(t *state.Tree, spec *schemas.ActionSpec) (string, error) {
	ref, err := spec.TargetRef()
	if err != nil {
		return "", err
	}
	v, _ := e.taskOf(t, t.Entry(ref), spec.Node)
	if p := v.Pipeline; p != nil && p.Digest != "" {
		return p.Digest, nil
	}
	return "", badRequest("%s:%s has no change that is verified, waits, or was sent back: there is no verdict to ignore", spec.Target, spec.Node)
}

// readReceipt adds to a result how its action is now.
func (e Env) readReceipt(ctx context.Context, r *TaskResult) {
	s, t, err := e.load(ctx)
	if err != nil {
		return // the run reported the error
	}
	defer s.Close()
	a := t.Entry(schemas.ActionKind.Ref(r.Action))
	if a == nil {
		return
	}
	if st, ok := a.Status().(*schemas.ActionStatus); ok {
		r.Receipt = st.Delivery
		if why := readiness.Because(a); st.Phase == schemas.ActionApplied && why != "" {
			r.Note = why
		}
		if c := st.Condition(actions.Delivered); c != nil {
			r.Note = c.Message
		}
	}
}

// findTold checks that a DAG has a node, and that a program's agent works on it.
func findTold(e *state.Entry, node string) error {
	if err := findNode(e, node); err != nil {
		return err
	}
	for _, n := range schemas.SpecAs[*schemas.DAGSpec](e.Object).Nodes {
		if n.Name == node && n.Agent == "" {
			return badRequest("no agent works on %s of %s", node, e.Ref)
		}
	}
	return nil
}

// tasksNamed lists the nodes with an agent that have a name, those of an agent of that name that are open, and those of these
// that run.
func tasksNamed(t *state.Tree, word string) (byName, byAgent, running []string) {
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
		if spec == nil {
			continue
		}
		st, _ := e.Status().(*schemas.DAGStatus)
		for _, n := range spec.Nodes {
			name := fmt.Sprintf("dag/%s:%s", e.Name, n.Name)
			if n.Name == word && n.Agent != "" {
				byName = append(byName, name)
			}
			var now schemas.NodeStatus
			if st != nil {
				now = st.Nodes.Of(n.Name)
			}
			if n.Agent != word || readiness.NodeEnded(&now) {
				continue
			}
			byAgent = append(byAgent, name)
			if slices.ContainsFunc(e.Claims, func(c state.Claim) bool { return c.Node == n.Name }) {
				running = append(running, name)
			}
		}
	}
	return byName, byAgent, running
}

// taskNames are the names of nodes with an agent.
func taskNames(t *state.Tree) []string {
	var out []string
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		if spec := schemas.SpecAs[*schemas.DAGSpec](e.Object); spec != nil {
			for _, n := range spec.Nodes {
				if n.Agent != "" {
					out = append(out, n.Name)
				}
			}
		}
	}
	return out
}
