package derive

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// summaryFields are the fields of each kind of summary.
var summaryFields = map[string][]string{
	schemas.SummaryGuide: {"knownRoutings", "frequentMatches", "failedRoutings", "agentCapabilities", "requestPatterns", "sessionRoutingStats"},
	schemas.SummaryLibrarian: {"directoryStructure", "keyPaths", "codeStyle", "architecture", "testingStrategy", "tooling", "packageManagers",
		"patterns", "conventions", "newDiscoveries"},
	schemas.SummaryAcademic: {"title", "abstract", "topicsResearched", "keyFindings", "sourcesCited", "recommendations", "openQuestions", "relatedTopics"},
	schemas.SummaryArchitect: {"originalRequest", "implementationPlan", "currentDAG", "completedTasks", "pendingTasks", "blockedTasks",
		"architecturalDecisions", "risks", "assumptions"},
	schemas.SummaryHandoff: {"pipelineId", "originalPrompt", "accomplished", "filesChanged", "remaining", "contextNotes", "contextUsage", "handoffReason"},
	schemas.SummaryInspector: {"pipelineId", "totalIssuesFound", "resolvedIssues", "unresolvedIssues", "overriddenIssues", "criticalFixes",
		"highPriorityFixes", "loopsCompleted", "averageLoopTime"},
	schemas.SummaryTester: {"pipelineId", "testsCreated", "testsRun", "testsPassed", "testsFailed", "testsSkipped", "failures", "flakeyTests",
		"coveragePercent", "uncoveredPaths", "loopsCompleted", "fixesVerified"},
}

// textLimit bounds a text of a checkpoint, in characters.
const textLimit = 4000

// summary collects what records tell for a checkpoint.
type summary struct {
	d      *deriver
	dag    *state.Entry
	spec   *schemas.DAGSpec // nil: broken or gone
	node   *schemas.Node    // nil: gone
	c      *schemas.Checkpoint
	fields map[string]any
}

// set sets a field, unless there is nothing to say.
func (s *summary) set(name string, value any) {
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return
		}
		value = clean(v)
	case []string:
		if len(v) == 0 {
			return
		}
		value = cleanAll(v)
	}
	s.fields[name] = value
}

func clean(s string) string { return shorten.Text(secrets.Redact(strings.TrimSpace(s)), textLimit) }

func cleanAll(all []string) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = clean(t)
	}
	return out
}

// finish encodes the fields, and names those that are not known.
func (s *summary) finish() {
	s.c.Fields = map[string]json.RawMessage{}
	for _, name := range summaryFields[s.c.Summary] {
		raw, err := schemas.Marshal(s.fields[name])
		if _, known := s.fields[name]; !known || err != nil {
			s.c.Unknown = append(s.c.Unknown, name)
			continue
		}
		s.c.Fields[name] = raw
	}
}

// work fills in the recorded work of any agent.
func (s *summary) work(at moment) {
	w := &s.c.Work
	if s.node != nil {
		w.Task = clean(s.node.Prompt)
	}
	w.Results = s.results()
	w.Questions = s.questions(func(*schemas.ClarificationRequestStatus) bool { return true })
	w.FilesChanged = cleanAll(at.mark.Files)
	w.ToolCalls, w.Said = cleanAll(at.mark.Tools), clean(at.mark.Said)
	for _, r := range s.dag.Runs() { // the last report under the same key
		if r.Node == at.run.Node && r.NodeKey == at.run.NodeKey && r.Reported != nil && r.Seq <= at.run.Seq {
			w.Reported, w.Remaining = clean(r.Reported.Summary), cleanAll(r.Reported.Remaining)
		}
	}
}

func (s *summary) results() []string {
	st, ok := s.dag.Status().(*schemas.DAGStatus)
	if !ok || s.node == nil {
		return nil
	}
	var out []string
	for _, need := range s.node.Needs {
		if n := st.Nodes.Of(need); len(n.Result) > 0 {
			out = append(out, clean(need+": "+string(n.Result)))
		}
	}
	return out
}

// questions are those of the node under its key for which the predicate holds, with their latest answer.
func (s *summary) questions(want func(*schemas.ClarificationRequestStatus) bool) []string {
	var out []string
	node := s.c.Node[strings.LastIndexByte(s.c.Node, ':')+1:]
	for _, q := range s.d.w.Index.QuestionsOf(s.dag.Name) {
		st := clarifications.Status(q.Entry)
		if q.Node != node || !want(st) {
			continue
		}
		text := q.Spec.To + ": " + q.Spec.Question
		if a := lastTurn(st, schemas.TurnAnswer); a != nil {
			text += " — " + a.Body
		}
		out = append(out, clean(text))
	}
	return out
}

func (s *summary) guide() {
	capabilities := map[string]string{}
	for _, e := range s.d.tree.Entries(schemas.AgentKind.Name) {
		if a := schemas.SpecAs[*schemas.AgentSpec](e.Object); a != nil && a.Description != "" {
			capabilities[e.Name] = clean(a.Description)
		}
	}
	if len(capabilities) > 0 {
		s.set("agentCapabilities", capabilities)
	}
	stats := map[string]int{}
	var failed []string
	for _, e := range s.d.tree.Entries(schemas.ClarificationRequestKind.Name) {
		spec, st := clarifications.Spec(e), clarifications.Status(e)
		if spec == nil {
			continue
		}
		stats[spec.From+" → "+spec.To]++
		if why := clarifications.Refusal(st); why != "" {
			failed = append(failed, spec.From+" → "+spec.To+": "+why)
		}
	}
	if len(stats) > 0 {
		s.set("sessionRoutingStats", stats)
	}
	s.set("failedRoutings", failed)
}

func (s *summary) librarian() {
	var paths []string
	if s.node != nil {
		paths = append(paths, s.node.Inputs...)
	}
	s.set("keyPaths", append(paths, s.c.Work.FilesChanged...))
	s.set("newDiscoveries", s.discoveries())
}

// discoveries are what the agent's runs taught since its checkpoint before.
func (s *summary) discoveries() []string {
	var since schemas.Time
	for _, old := range slices.Concat(s.d.tree.Checkpoints(), s.d.kept.Add) {
		if old.Agent == s.c.Agent && old.SessionID == s.c.SessionID {
			since = schemas.Later(since, old.Timestamp)
		}
	}
	var out []string
	for _, r := range s.dag.Runs() {
		if r.Agent != s.c.Agent || !r.FinishedAt.After(since.Time) || r.FinishedAt.After(s.c.Timestamp.Time) {
			continue
		}
		for _, l := range r.Learned {
			out = append(out, l.Content)
		}
	}
	return out
}

// links matches addresses of sources in a text.
var links = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https?://[^\s<>"'()\[\]]+`) })

func (s *summary) academic() {
	if title, _, _ := strings.Cut(s.c.Work.Task, "\n"); title != "" {
		s.set("title", title)
	}
	s.set("abstract", s.c.Work.Reported)
	cited := links().FindAllString(strings.Join(append(slices.Clone(s.c.Work.ToolCalls), s.c.Work.Said), "\n"), -1)
	slices.Sort(cited)
	s.set("sourcesCited", slices.Compact(cited))
	s.set("openQuestions", s.questions(func(st *schemas.ClarificationRequestStatus) bool { return st.Phase != schemas.ClarificationResolved }))
}

func (s *summary) architect() {
	if s.spec == nil {
		return
	}
	request := s.c.Work.Task
	if e := s.d.tree.Entry(schemas.SessionKind.Ref(s.spec.Session)); e != nil {
		if session := schemas.SpecAs[*schemas.SessionSpec](e.Object); session != nil && session.Title+session.Description != "" {
			request = session.Title + "\n" + session.Description
		}
	}
	s.set("originalRequest", request)
	st, ok := s.dag.Status().(*schemas.DAGStatus)
	if !ok {
		return
	}
	s.set("currentDAG", map[string]any{"name": s.dag.Name, "nodes": len(s.spec.Nodes), "layers": len(st.Layers)})
	var done, pending, blocked []string
	for name, n := range st.Nodes.All() {
		switch {
		case readiness.NodeEnded(n):
			done = append(done, fmt.Sprintf("%s: %s", name, n.State))
		case n.State == schemas.NodeBlocked:
			blocked = append(blocked, fmt.Sprintf("%s: %s", name, n.Message))
		default:
			pending = append(pending, name)
		}
	}
	s.set("completedTasks", done)
	s.set("pendingTasks", pending)
	s.set("blockedTasks", blocked)
	s.set("architecturalDecisions", s.questions(func(st *schemas.ClarificationRequestStatus) bool { return st.Phase == schemas.ClarificationResolved }))
}

func (s *summary) handoff() {
	w := &s.c.Work
	if h := s.c.Handoff; h != nil {
		e := &h.Engineer
		s.set("pipelineId", h.OldPipelineID)
		s.set("originalPrompt", e.OriginalPrompt)
		s.set("accomplished", e.Accomplished)
		s.set("filesChanged", w.FilesChanged)
		s.set("remaining", e.Remaining)
		s.set("contextNotes", e.ContextNotes)
		s.set("handoffReason", h.HandoffReason)
		s.fields["contextUsage"] = e.ContextUsage
		return
	}
	s.set("pipelineId", s.c.Node)
	s.set("originalPrompt", w.Task)
	s.set("accomplished", w.Reported)
	s.set("filesChanged", w.FilesChanged)
	s.set("remaining", w.Remaining)
	s.set("contextNotes", w.Said)
	s.fields["contextUsage"] = s.c.ContextUsage
	s.set("handoffReason", fmt.Sprintf("%d %% of the context are used", s.c.Threshold))
}

// moment is a mark of a run.
type moment struct {
	run  *schemas.Run
	mark *schemas.ContextMark
}
