package tree

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/advice"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// Problems returns the problems of a tree's files, with warnings of clarification requests that their scope will
// refuse, and probable mistakes. A valid file may ask what its agent must not ask. That is a warning, since an edit of the agent
// that allows it may follow; a run marks the request as Stalled.
func Problems(s *state.Store, t *state.Tree) []schemas.Problem {
	problems := slices.Clone(t.Problems())
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, _ := e.Status().(*schemas.ClarificationRequestStatus)
		spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
		if spec == nil || st != nil && st.ID != "" {
			continue // an accepted request stays accepted
		}
		var refused *clarify.Error
		if errors.As(clarifications.ScopeOf(t, spec.From, spec.Run).Check(spec), &refused) {
			problems = append(problems, scopeProblem(s, e, refused))
		}
	}
	problems = append(problems, expansionProblems(s, t, problems)...)
	_, err := worktree.Find(s.Dir())
	around := advice.Surroundings{Program: programIn(s.Dir()), Input: s.HasInput, Git: err == nil}
	for _, advice := range advice.For(t, around) {
		problems = append(problems, adviceProblem(s, advice))
	}
	hideKeys(problems)
	slices.SortStableFunc(problems, func(a, b schemas.Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems
}

// expansionProblems are those of DAGs whose files are valid individually, and that have no nodes to run: calls in a circle, say. One
// whose parameters have no values yet only gets a warning.
func expansionProblems(s *state.Store, t *state.Tree, known []schemas.Problem) (all []schemas.Problem) {
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
		if spec == nil || spec.Template || spec.Expansion == nil || spec.Expansion.Fault == "" ||
			slices.ContainsFunc(known, func(p schemas.Problem) bool { return p.Path == e.Object.Path }) {
			continue
		}
		p := adviceProblem(s, advice.Advice{Code: "bad-expansion", Ref: e.Ref, File: e.Object.Path, Message: spec.Expansion.Fault,
			Field: faultyField(schemas.SpecAs[*schemas.DAGSpec](e.Object.Declared()), spec.Expansion.Fault)})
		if !spec.Expansion.Unset {
			p.Severity = schemas.Error
		}
		all = append(all, p)
	}
	return all
}

// faultyField is the node that a fault begins with, or that the fault's node was made of, else all nodes.
func faultyField(spec *schemas.DAGSpec, fault string) []any {
	if rest, ok := strings.CutPrefix(fault, "node "); ok {
		name, _, _ := strings.Cut(rest, " ")
		name = strings.TrimSuffix(name, ":")
		found := -1
		for i := range spec.Nodes {
			of := spec.Nodes[i].Name
			if (of == name || strings.HasPrefix(name, of+"_")) && (found < 0 || len(of) > len(spec.Nodes[found].Name)) {
				found = i
			}
		}
		if found >= 0 {
			return []any{"spec", "nodes", found}
		}
	}
	return []any{"spec", "nodes"}
}

func scopeProblem(s *state.Store, e *state.Entry, refused *clarify.Error) schemas.Problem {
	p := schemas.Problem{Place: schemas.Place{Path: e.Object.Path}, Severity: schemas.Warning, Code: "scope-violation",
		Ref: e.Ref, Field: "spec.to", Message: refused.Error(),
		Suggestion: "list it in canClarify of the agent that asks; can_clarify of a workflow step is about the runs of the step"}
	locate(s, &p, e.Object.Path, "spec", "to")
	return p
}

// locate sets the place of a problem, and its line if that has no secret.
func locate(s *state.Store, p *schemas.Problem, file string, field ...any) {
	data, err := regular.Read(s.Root(), file)
	if err != nil {
		return
	}
	p.Place, p.Source = schemas.Locate(file, data, field...)
	p.Path = file
	one := []schemas.Problem{*p}
	schemas.Discreet(one, string(data))
	*p = one[0]
}

// hideKeys removes lines that have what looks like a key only with the name of its field, from all problems about them.
func hideKeys(problems []schemas.Problem) {
	keys := map[schemas.Place]bool{}
	for _, p := range problems {
		if p.Code == advice.LiteralKey {
			keys[schemas.Place{Path: p.Path, Line: p.Line}] = true
		}
	}
	for i := range problems {
		if keys[schemas.Place{Path: problems[i].Path, Line: problems[i].Line}] {
			problems[i].Source = ""
		}
	}
}

func adviceProblem(s *state.Store, advice advice.Advice) schemas.Problem {
	p := schemas.Problem{Place: schemas.Place{Path: advice.File}, Severity: schemas.Warning, Code: advice.Code, Ref: advice.Ref,
		Field: schemas.FieldPath(advice.Field), Message: advice.Message, Suggestion: advice.Suggestion}
	if advice.Refused {
		p.Severity = schemas.Error
	}
	locate(s, &p, advice.File, advice.Field...)
	return p
}

// programIn finds programs as a run does: in PATH, or, for a name with a slash, relative to the root.
func programIn(root string) func(string) bool {
	return func(name string) bool {
		if strings.Contains(name, "/") && !filepath.IsAbs(name) {
			name = filepath.Join(root, name)
			if !filepath.IsAbs(name) {
				name = "." + string(filepath.Separator) + name
			}
		}
		_, err := exec.LookPath(name)
		return err == nil
	}
}
