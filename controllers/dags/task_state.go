package dags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/shorten"
)

// The state of a task is derived from records: of the engineer's runs under the node's present key, and of what verified them.

// Bounds of a task's state, in characters and entries.
const (
	stateText    = 4000
	stateLine    = 500
	stateEntries = 40
)

// taskState is that of node i.
func (f *fold) taskState(i int32) schemas.TaskState {
	s := schemas.TaskState{Engineer: f.engineerState(i)}
	if f.pipelineOf(i) != nil {
		s.Inspector, s.Tester = f.inspectorState(i), f.testerState(i, &s.Engineer)
	}
	return s
}

// workRuns are the records of the work on node i under its present key, oldest first.
func (f *fold) workRuns(i int32) (out []*schemas.Run) {
	for _, r := range f.nodeRuns(f.p.Spec.Nodes[i].Name) {
		if r.NodeKey == f.b.Keys[i] && r.IsWork() {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *schemas.Run) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

func (f *fold) engineerState(i int32) schemas.EngineerState {
	s := schemas.EngineerState{OriginalPrompt: told(f.prompt(i), stateText)}
	runs := f.workRuns(i)
	if c := f.recs[i].claim; c != nil {
		runs = append(runs, &c.Run)
	}
	committed := "" // what it committed last; an earlier commit is part of that
	for _, r := range runs {
		if p := r.Reported; p != nil {
			s.Accomplished, s.Remaining = add(s.Accomplished, p.Summary), toldAll(p.Remaining)
		}
		if w := r.Workspace; w != nil && w.Commit != "" {
			s.Accomplished = slices.DeleteFunc(s.Accomplished, func(line string) bool { return line == committed })
			committed = fmt.Sprintf("committed changes of %s as %s", schemas.Count(w.Changed, "file"), w.Commit[:min(len(w.Commit), 12)])
			s.Accomplished = add(s.Accomplished, committed)
		}
		if changed := changesOf(r); changed != nil {
			s.FilesChanged = changed
		}
		if notes := notesOf(r); notes != "" {
			s.ContextNotes = notes
		}
		if used := f.usageOf(r); f.endsSession(i, r) {
			s.ContextUsage = 0 // the next conversation has its own
		} else if used > 0 {
			s.ContextUsage = used
		}
	}
	return s
}

// changesOf are the files that differ after a run, by its record; nil if they are unknown.
func changesOf(r *schemas.Run) (out []schemas.FileChange) {
	var paths []string
	switch {
	case len(r.Changes) > 0:
		return r.Changes
	case r.Workspace != nil && len(r.Workspace.Files) > 0:
		paths = r.Workspace.Files
	case r.Turn != nil && len(r.Turn.Marks) > 0:
		paths = r.Turn.Marks[len(r.Turn.Marks)-1].Files
	}
	for _, p := range paths {
		out = append(out, schemas.FileChange{Path: p})
	}
	return out
}

// notesOf is what an agent said last, and its latest tool calls.
func notesOf(r *schemas.Run) string {
	var parts []string
	if t := r.Turn; t != nil && len(t.Marks) > 0 {
		m := t.Marks[len(t.Marks)-1]
		parts = []string{m.Said, strings.Join(m.Tools, "; ")}
	}
	if len(parts) == 0 || parts[0] == "" {
		parts = append([]string{r.Output}, parts...)
	}
	return told(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n"), stateText)
}

// verdicts are the records of a step for node i under its present key, oldest first.
func (f *fold) verdicts(i int32, step string) (out []*schemas.Run) {
	key := verifyKey(f.b.Keys[i])
	for _, r := range f.nodeRuns(f.p.Spec.Nodes[i].Name) {
		if r.NodeKey == key && r.Step == step && r.Done() {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *schemas.Run) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// verdictOf is how a record judged the commit of a run among those of the work.
func verdictOf(record *schemas.Run, work []*schemas.Run) schemas.Verdict {
	e := checks.EvidenceOf(record)
	v := schemas.Verdict{At: record.FinishedAt, Outcome: string(e.Outcome), Summary: told(e.Summary, stateLine)}
	for _, r := range work {
		if r.Key == record.Verifies && r.Workspace != nil {
			v.Commit = r.Workspace.Commit
		}
	}
	return v
}

// inspectorState is what the tools of the inspector found, and the agent that reviews.
func (f *fold) inspectorState(i int32) *schemas.InspectorState {
	s, work := new(schemas.InspectorState), f.workRuns(i)
	all := append(f.verdicts(i, schemas.StepInspect), f.verdicts(i, schemas.StepReview)...)
	slices.SortStableFunc(all, func(a, b *schemas.Run) int { return cmp.Compare(a.Seq, b.Seq) })
	var before, now []checks.Finding
	last := map[string][]checks.Finding{} // by step
	for n, r := range all {
		s.ValidationHistory = append(s.ValidationHistory, verdictOf(r, work))
		found := checks.EvidenceOf(r).Findings
		before, last[r.Step] = append(before, last[r.Step]...), found
		if n == len(all)-1 || r.Verifies == all[len(all)-1].Verifies {
			now = append(now, found...)
		}
	}
	for _, found := range now[:min(len(now), stateEntries)] { // the most important ones come first
		s.CurrentFindings = add(s.CurrentFindings, found.Text())
	}
	for _, found := range before {
		if found.ID != "" && !slices.ContainsFunc(slices.Concat(now, last[schemas.StepInspect], last[schemas.StepReview]), func(n checks.Finding) bool { return n.ID == found.ID }) {
			s.ResolvedByEngineer = add(s.ResolvedByEngineer, found.Text())
		}
	}
	if v := f.recs[i].verify.sentBack; v != nil && v.Step != schemas.StepTest {
		s.PendingForEngineer = s.CurrentFindings
	}
	s.ValidationHistory = latestVerdicts(s.ValidationHistory)
	return s
}

func (f *fold) testerState(i int32, by *schemas.EngineerState) *schemas.TesterState {
	s, work := new(schemas.TesterState), f.workRuns(i)
	for _, c := range by.FilesChanged {
		if c.ChangeType != schemas.FileDeleted && tools.IsTestFile(c.Path) {
			s.TestsCreated = add(s.TestsCreated, c.Path)
		}
	}
	if w := f.recs[i].verify.written; w != nil { // by an agent of its own
		for _, name := range w.Workspace.Files {
			s.TestsCreated = add(s.TestsCreated, name)
		}
	}
	var now *checks.Evidence
	for _, r := range f.verdicts(i, schemas.StepTest) {
		s.TestResults = append(s.TestResults, verdictOf(r, work))
		now = checks.EvidenceOf(r)
	}
	if now != nil {
		for _, t := range now.Failures {
			s.PendingFailures = add(s.PendingFailures, strings.TrimSuffix(t.Name+": "+oneLine(t.Message), ": "))
		}
	}
	for _, line := range by.Remaining {
		if strings.Contains(strings.ToLower(line), "test") {
			s.TestPlanRemaining = add(s.TestPlanRemaining, line)
		}
	}
	s.TestResults = latestVerdicts(s.TestResults)
	return s
}

// add adds a text that is not there, without secrets, and keeps the latest ones.
func add(all []string, text string) []string {
	if text = told(text, stateLine); text == "" || slices.Contains(all, text) {
		return all
	}
	return append(all[max(0, len(all)-stateEntries+1):], text)
}

func latestVerdicts(all []schemas.Verdict) []schemas.Verdict {
	return all[max(0, len(all)-stateEntries):]
}

func told(text string, most int) string {
	return shorten.Text(secrets.Redact(strings.TrimSpace(text)), most)
}

func toldAll(all []string) (out []string) {
	for _, text := range all {
		out = add(out, text)
	}
	return out
}

// handoffState is the state of node i's task as it is handed over.
func (f *fold) handoffState(i int32, x *schemas.Handoff) schemas.TaskState {
	s := f.taskState(i)
	s.Engineer.PipelineID, s.Engineer.HandoffReason = schemas.PipelineID(f.p.Name, f.p.Spec.Nodes[i].Name, x.Index-1), x.Reason
	s.Engineer.ContextUsage = x.ContextUsage
	return s
}
