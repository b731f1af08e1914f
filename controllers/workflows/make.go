package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/template"
	"reconcile.dev/reconcile/state"
)

// ErrNoText is the error of a start whose issue no one has told the text of: neither the start nor an earlier session.
var ErrNoText = errors.New("nothing says what the issue is about")

// Make returns the session and the DAG of a new run of a workflow, which a start asks for. Both get the name. The error says why the
// workflow cannot start; it is ErrNoText if nothing but the text of the issue is missing.
func Make(t *state.Tree, name, start string, a *schemas.ActionSpec) (*schemas.SessionSpec, *schemas.DAGSpec, error) {
	workflow := strings.TrimPrefix(a.Target, "workflow/")
	e := t.Entry(schemas.WorkflowKind.Ref(workflow))
	w := state.SpecOf[*schemas.WorkflowSpec](e)
	switch {
	case w == nil && e != nil && len(e.Problems) > 0:
		return nil, nil, fmt.Errorf("workflow/%s cannot start: %w", workflow, e.Problems[0])
	case w == nil:
		return nil, nil, fmt.Errorf("there is no workflow/%s; reconcile get workflows lists them", workflow)
	}
	session, known := newSession(t, a)
	dag := &schemas.DAGSpec{Session: name, Description: w.Title, Workflow: &schemas.WorkflowRun{Name: workflow, Start: start}, Params: w.Params, With: a.Params, Nodes: w.Nodes()}
	err := skip(w, dag, a.Skip)
	for _, name := range dag.ParamNames() {
		if value, ok := a.Params[name]; ok && err == nil {
			param := dag.Params[name]
			if _, wrong := param.Take(value); wrong != nil {
				err = fmt.Errorf("params.%s: %w", name, wrong)
			}
		}
		if _, given := dag.Values()[name]; !given && err == nil {
			err = fmt.Errorf("the parameter %s has no value: add it to params of the start, or write --param %[1]s=VALUE, in a comment %[1]s=VALUE", name)
		}
	}
	for i := 0; err == nil && i < len(dag.Nodes); i++ {
		err = prepare(t, dag, &dag.Nodes[i], Issue(session))
	}
	if err == nil {
		err = valid(session, dag)
	}
	if err == nil && !known {
		err = noText(t, a)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("workflow/%s cannot start: %w", workflow, err)
	}
	return session, dag, nil
}

// Made returns the spec of the session or the DAG of a run as its start makes it; nil for any other, and where it cannot be made any more.
func Made(t *state.Tree, ref schemas.Ref) schemas.Spec {
	run := t.Entry(schemas.DAGKind.Ref(ref.Name))
	if run == nil || runIn(run) == nil {
		return nil
	}
	start := runIn(run).Start
	a := state.SpecOf[*schemas.ActionSpec](t.Entry(schemas.ActionKind.Ref(start)))
	if a == nil {
		return nil
	}
	session, dag, err := Make(t, ref.Name, start, a)
	switch {
	case err != nil:
		return nil
	case ref.Kind == schemas.SessionKind.Name:
		return session
	}
	return dag
}

// noText says what to do where nothing says what an issue is about.
func noText(t *state.Tree, a *schemas.ActionSpec) error {
	const file = "give the text with the start: --issue-file FILE, or text of the Action"
	if t.Settings().GitHub.Repo == "" {
		return fmt.Errorf("issue %d: %w; %s. With github.repo in %s it is read from GitHub", a.Issue, ErrNoText, file, schemas.SettingsPath)
	}
	return fmt.Errorf("issue %d: %w; a run with a token reads it from %s; or %s", a.Issue, ErrNoText, t.Settings().GitHub.Repo, file)
}

// newSession is the session of a run. A start without a text goes on with what an earlier session knows of the issue; known is false if
// none does.
func newSession(t *state.Tree, a *schemas.ActionSpec) (out *schemas.SessionSpec, known bool) {
	out = &schemas.SessionSpec{Title: fmt.Sprintf("Issue %d", a.Issue), Issue: a.Issue, Comments: a.Comments, WhenDone: schemas.WhenDoneComplete}
	if title, text := schemas.SplitIssue(a.Text); title+text != "" {
		out.Title, out.Description = cmp.Or(title, out.Title), text
		return out, true
	}
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if s := state.SpecOf[*schemas.SessionSpec](e); s != nil && s.Issue == a.Issue && s.Title != "" {
			out.Title, out.Description, known = s.Title, s.Description, true
			if len(a.Comments) == 0 {
				out.Comments = s.Comments
			}
		}
	}
	return out, known
}

// skip leaves out optional steps: their nodes are skipped, and what needs them goes on.
func skip(w *schemas.WorkflowSpec, dag *schemas.DAGSpec, ids []string) error {
	for _, id := range ids {
		switch st := w.Step(id); {
		case st == nil:
			var known []string
			for i := range w.Steps {
				known = append(known, w.Steps[i].ID)
			}
			return fmt.Errorf("skip: it has no step %q%s", id, schemas.DidYouMean(id, known))
		case !st.Optional:
			return fmt.Errorf("skip: step %q is not optional", id)
		}
		dag.Node(id).When = never
	}
	return nil
}

// prepare checks that the agent of a node exists, and inserts into the paths of its outputs what the start knows.
func prepare(t *state.Tree, dag *schemas.DAGSpec, n *schemas.Node, about template.Issue) error {
	if e := t.Entry(schemas.AgentKind.Ref(n.Agent)); e == nil || e.Gone() {
		return fmt.Errorf("step %q: there is no agent %q", n.Name, n.Agent)
	}
	for i, p := range n.Outputs.Files {
		if !template.Has(p) {
			continue
		}
		text, err := template.Compile(p, condition.Scope{Params: dag.ParamNames()})
		if err != nil {
			return fmt.Errorf("step %q: output: %w", n.Name, err)
		}
		if n.Outputs.Files[i], err = text.Execute(&template.Env{Issue: about, Params: dag.Values()}, nil); err != nil {
			return fmt.Errorf("step %q: output: %w", n.Name, err)
		}
	}
	return nil
}

// valid returns the first error that the decoder of the two files would find.
func valid(all ...schemas.Spec) error {
	for _, s := range all {
		var r schemas.Report
		s.Check(&r)
		for _, f := range r.Findings() {
			if f.Severity != schemas.Error {
				continue
			}
			field, message := slices.Clone(f.Field), f.Message
			if len(field) > 0 && field[0] == "with" { // what the start calls params
				field[0] = "params"
			}
			if f.Suggestion != "" {
				message += "; " + f.Suggestion
			}
			return fmt.Errorf("%s: %s", schemas.FieldPath(field), message)
		}
	}
	return nil
}

// Issue is what the templates of a session's DAGs see of its issue.
func Issue(s *schemas.SessionSpec) template.Issue {
	var comments []string
	for _, c := range s.Comments {
		comments = append(comments, cmp.Or(c.From, "someone")+":\n"+c.Text)
	}
	return template.Issue{Number: s.Issue, Title: s.Title, Text: s.Description, Comments: strings.Join(slices.Clip(comments), "\n\n")}
}
