package workflows

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// runs returns the DAGs of the runs of a workflow, by name.
func runs(t *state.Tree, workflow string) []*state.Entry {
	var out []*state.Entry
	for _, ref := range t.ReferrersOf(schemas.WorkflowKind.Ref(workflow), schemas.DAGKind.Name) {
		if e := t.Entry(ref); e != nil && !e.Gone() {
			out = append(out, e)
		}
	}
	return out
}

// runsOf counts the runs of the workflow that is decided, and names those that have not ended.
func runsOf(in settle.In) (all int, active []string) {
	for _, e := range runs(in.Tree, in.Name) {
		if all++; !EndedIn(in.World)(e) {
			active = append(active, e.Name)
		}
	}
	return all, active
}

// Ended reports whether a DAG of a tree has ended. A failed one in which something waits has not.
func Ended(e *state.Entry) bool { return ended(e.Brief().Phase, e.Status) }

// EndedIn returns [Ended] for the DAGs of a world, as they are decided.
func EndedIn(w *settle.World) func(*state.Entry) bool {
	return func(e *state.Entry) bool {
		b := w.Brief(e)
		return b != nil && ended(b.Phase, func() schemas.Status { return w.Status(e) })
	}
}

func ended(phase string, status func() schemas.Status) bool {
	switch phase {
	case schemas.DAGSucceeded, schemas.DAGCancelled:
		return true
	case schemas.DAGFailed:
		st, ok := status().(*schemas.DAGStatus)
		return ok && !st.FinishedAt.IsZero()
	}
	return false
}

// RunOf returns the DAG of the run that a start belongs to: the one that it made, else one of the same workflow and issue that has not
// ended. Without such a DAG it returns nil, and a free name.
func RunOf(t *state.Tree, start string, spec *schemas.ActionSpec, ended func(*state.Entry) bool) (run *state.Entry, name string) {
	workflow := strings.TrimPrefix(spec.Target, "workflow/")
	head := runName(workflow, spec)
	for _, e := range runs(t, workflow) {
		switch w := runIn(e); {
		case w == nil || w.Name != workflow || !isNumbered(e.Name, head):
		case w.Start == start:
			return e, e.Name
		case run == nil && !ended(e):
			run = e
		}
	}
	for n := 1; ; n++ {
		name = numbered(head, n)
		if e := t.Entry(schemas.DAGKind.Ref(name)); e == nil || e.Gone() {
			return run, name
		}
	}
}

// numbered is the name of a run: the first one has no number.
func numbered(head string, n int) string {
	if n == 1 {
		return fit(head, "")
	}
	return fit(head, "-"+strconv.Itoa(n))
}

// isNumbered reports whether a name is that of a run, with any number: former runs may have been removed.
func isNumbered(name, head string) bool {
	if name == numbered(head, 1) {
		return true
	}
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return err == nil && n > 1 && name == numbered(head, n)
}

// Started reports whether a start made a DAG.
func Started(run *state.Entry, start string) bool {
	w := runIn(run)
	return w != nil && w.Start == start
}

// never is the condition of the node of a step that a start leaves out.
const never = "false"

// Differs returns why a start cannot join a run that another one made: it asks for other values of parameters, or leaves out other steps.
// What it does not mention is as the run has it.
func Differs(run *state.Entry, start string, a *schemas.ActionSpec) error {
	if Started(run, start) {
		return nil
	}
	var other []string
	dag := state.SpecOf[*schemas.DAGSpec](run)
	has := dag.Values()
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		param, known := dag.Params[name]
		value, err := param.Take(a.Params[name])
		if !known || err != nil || !reflect.DeepEqual(value, has[name]) {
			other = append(other, "another value of the parameter "+name)
		}
	}
	for _, id := range a.Skip {
		if n := dag.Node(id); n != nil && n.When != never {
			other = append(other, "the step "+id)
		}
	}
	if other == nil {
		return nil
	}
	return fmt.Errorf("%s has not ended, and has %s: cancel it first, or start without that to join it", run.Ref, strings.Join(other, ", "))
}

// runIn says which run of a workflow a DAG is; nil for none.
func runIn(e *state.Entry) *schemas.WorkflowRun {
	if spec := state.SpecOf[*schemas.DAGSpec](e); spec != nil {
		return spec.Workflow
	}
	return nil
}

// runName begins the names of the runs for an issue: feature-42, or feature-add-a-health-check where the issue has no number.
func runName(workflow string, spec *schemas.ActionSpec) string {
	if spec.Issue > 0 {
		return workflow + "-" + strconv.Itoa(spec.Issue)
	}
	return workflow + "-" + slug(schemas.IssueTitle(spec.Text))
}

// fit shortens a name so that it fits before a suffix and ends as names must.
func fit(name, suffix string) string {
	const longest = 63
	return strings.TrimRight(name[:min(len(name), longest-len(suffix))], "-._") + suffix
}

// slug is the letters and digits of a text in lower case, words separated by dashes, shortened; "run" if nothing is left.
func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	s := strings.Join(words, "-")
	if s = strings.TrimRight(s[:min(len(s), 40)], "-"); s == "" {
		return "run"
	}
	return s
}
