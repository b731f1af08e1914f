package workspaces

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
)

// submitReview notes that inner gets the turn of an agent that reviews a commit, if the effect is one.
func (l *Lander) submitReview(e *settle.Effect) {
	c := e.Command()
	if c == nil || c.Review == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reviews[e.Key] = c.Review
}

// judge reports the end of an agent's review, with the evidence in place of what the agent said.
func (l *Lander) judge(r settle.Report, review *settle.Review) {
	if run := r.Run; r.Kind == settle.Finished && run.Outcome == schemas.OutcomeSucceeded {
		e := l.m.evidence(run, review)
		if data, err := schemas.Marshal(e); err == nil {
			run.Result, run.Message = data, review.Step+" "+string(e.Outcome)+": "+e.Summary
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report(r)
}

// evidence is what an agent found in a commit, or which tests of it the agent wrote.
func (m *Manager) evidence(run *schemas.Run, review *settle.Review) *checks.Evidence {
	repo, err := m.repository()
	if review.Step == schemas.StepWrite {
		w := checks.Written{By: run.Agent}
		if run.Workspace != nil {
			w.Files, w.Left = run.Workspace.Files, run.Workspace.Note
		}
		for _, file := range w.Files {
			if data, err := repo.Blob(context.Background(), run.Workspace.Commit, file); err == nil {
				w.Tests = append(w.Tests, tools.TestsIn(data)...)
			}
		}
		return checks.EvidenceOfTests(w, run.Result)
	}
	return checks.EvidenceOfReview(run.Agent, run.Result, checks.Severity(review.FailOn), func(file string) (string, int, bool) {
		if err != nil {
			return file, 0, false
		}
		// The agent works in the folder of the tree, and the difference has names from the top of the repository.
		names := []string{path.Join(repo.Prefix(), file), file}
		if strings.HasPrefix(file, repo.Prefix()) {
			slices.Reverse(names)
		}
		for _, name := range slices.Compact(names) {
			if data, err := repo.Blob(context.Background(), review.Commit, name); err == nil {
				lines := bytes.Count(append(bytes.TrimSuffix(data, []byte("\n")), '\n'), []byte("\n"))
				return strings.TrimPrefix(name, repo.Prefix()), lines, true
			}
		}
		return file, 0, false
	})
}
