package derive

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// learned adds what the runs of an object taught, an observation for each run. It uses records alone: the object may be broken or gone by now.
func (d *deriver) learned(e *state.Entry) {
	if !d.remembers || !e.RunsHave(state.Learned) {
		return
	}
	for _, r := range e.Runs() {
		if len(r.Learned) == 0 {
			continue
		}
		name := clarifications.SpecName(e.Name, r)
		if !d.lacks(schemas.ObservationKind.Ref(name)) {
			continue
		}
		spec := &schemas.ObservationSpec{Agent: r.Agent, Issue: r.Issue, Session: sessionWith(e), Timestamp: r.FinishedAt,
			Entries: soundEntries(r.Learned), Run: r.Key, SourceTokens: r.SourceTokens}
		if spec.Issue == 0 {
			spec.Issue = sessions.IssueOf(d.tree, e)
		}
		d.observe(name, spec)
	}
}

// observe adds a valid observation: records may have been written by hand.
func (d *deriver) observe(name string, spec *schemas.ObservationSpec) {
	var r schemas.Report
	if spec.Check(&r); len(spec.Entries) > 0 && !spec.Timestamp.IsZero() && len(r.Findings()) == 0 {
		d.add(schemas.ObservationKind, name, spec)
	}
}

// soundEntries are the entries that an observation may have.
func soundEntries(entries []schemas.ObservationEntry) []schemas.ObservationEntry {
	const most = 50
	sound := slices.Clone(entries)
	for i := range sound {
		sound[i].Content, sound[i].Summary = agentio.Plain(sound[i].Content), agentio.Plain(sound[i].Summary)
	}
	sound = slices.DeleteFunc(sound, func(e schemas.ObservationEntry) bool {
		var r schemas.Report
		one := schemas.ObservationSpec{Agent: "a", Entries: []schemas.ObservationEntry{e}}
		one.Check(&r)
		return len(r.Findings()) > 0 || !slices.Contains(schemas.Categories(), e.Category) ||
			utf8.RuneCountInString(e.Content) > contentLimit || utf8.RuneCountInString(e.Summary) > summaryLimit
	})
	return sound[:min(len(sound), most)]
}

// Limits of an entry, in characters.
const (
	contentLimit = 2000
	summaryLimit = 500
)

// sessionWith is the session that a DAG belongs to, as it was decided last; "" for other objects.
func sessionWith(e *state.Entry) string {
	if st, ok := e.Status().(*schemas.DAGStatus); ok {
		return st.Session
	}
	return ""
}

// resolved adds the resolution of a clarification.
func (d *deriver) resolved(e *state.Entry) {
	st := clarifications.Status(e)
	if !d.remembers || st.Phase != schemas.ClarificationResolved || st.ResolvedAt.IsZero() || st.ID == "" {
		return
	}
	name := resolvedPrefix + e.Name
	if len(name) > longestName {
		name = clarifications.NameFor(name, e.Name)
	}
	if !d.lacks(schemas.ObservationKind.Ref(name)) {
		return
	}
	spec := clarifications.Spec(e)
	if spec == nil || e.Object.Digest != st.ObservedDigest {
		return
	}
	d.observe(name, d.resolution(e.Name, spec, st))
	settle.Release(e, settle.Out{})
}

// resolvedPrefix begins the names of the observations of resolved requests; the request's name follows, if it fits.
const (
	resolvedPrefix = "resolved-"
	longestName    = 63
)

// resolution is the resolution of a clarification, as an observation of its author: the one who resolved an escalated one,
// if that is an agent of the tree, else the target.
func (d *deriver) resolution(name string, q *schemas.ClarificationRequestSpec, st *schemas.ClarificationRequestStatus,
) *schemas.ObservationSpec {
	answer, end := lastTurn(st, schemas.TurnAnswer), lastTurn(st, schemas.TurnResolution)
	spec := &schemas.ObservationSpec{Agent: q.To, Issue: q.Issue, Timestamp: st.ResolvedAt, Clarification: name}
	if end != nil && (answer == nil || st.Escalation != nil) && d.tree.Entry(schemas.AgentKind.Ref(end.From)) != nil {
		spec.Agent = end.From
	}
	if dag, _, ok := schemas.SplitRunKey(q.Run); ok {
		if owner := d.tree.Entry(schemas.DAGKind.Ref(dag)); owner != nil {
			spec.Session = sessionWith(owner)
		}
	}
	spec.Entries = []schemas.ObservationEntry{{Category: schemas.CategoryDecision,
		Content: secrets.Redact(resolutionText(q, st.ID, answer, end)),
		Summary: cutWords(secrets.Redact(st.ID+": "+summaryOf(q, st)), 300), Anchors: artifactsOf(q)}}
	return spec
}

func summaryOf(q *schemas.ClarificationRequestSpec, st *schemas.ClarificationRequestStatus) string {
	if st.Summary == "" {
		return q.Topic
	}
	return st.Summary
}

// artifactsOf are the files that a question is about, each once.
func artifactsOf(q *schemas.ClarificationRequestSpec) []string {
	out := slices.Clone(q.Artifacts)
	slices.Sort(out)
	return slices.Compact(out)
}

// lastTurn returns the latest turn of a type, or nil.
func lastTurn(st *schemas.ClarificationRequestStatus, typ string) *schemas.ThreadEntry {
	for i := range slices.Backward(st.Thread) {
		if st.Thread[i].Type == typ {
			return &st.Thread[i]
		}
	}
	return nil
}

// resolutionText has the question, the answer and the resolution, in at most contentLimit characters. A long question
// is shortened first.
func resolutionText(q *schemas.ClarificationRequestSpec, id string, answer, end *schemas.ThreadEntry) string {
	head := fmt.Sprintf("%s, %s", id, strings.TrimSpace(q.Topic))
	var said []string
	if answer != nil {
		said = append(said, fmt.Sprintf("Answer of %s: %s", answer.From, strings.TrimSpace(answer.Body)))
	}
	if end != nil && end.Body != clarify.SucceededWith {
		said = append(said, fmt.Sprintf("Resolution of %s: %s", end.From, strings.TrimSpace(end.Body)))
	}
	room := contentLimit - utf8.RuneCountInString(head) - len("\n\n\n")
	asked := fmt.Sprintf("Question of %s: %s", q.From, strings.TrimSpace(q.Question))
	asked = cutWords(asked, max(room-characters(said), room/4))
	room -= utf8.RuneCountInString(asked)
	if len(said) == 2 {
		said[1] = cutWords(said[1], max(room-characters(said[:1]), room/2))
		said[0] = cutWords(said[0], room-characters(said[1:]))
	} else if len(said) == 1 {
		said[0] = cutWords(said[0], room)
	}
	return strings.Join(append([]string{head, asked}, said...), "\n")
}

func characters(texts []string) int {
	n := 0
	for _, t := range texts {
		n += utf8.RuneCountInString(t)
	}
	return n
}

// cutWords shortens a text to a number of characters, between two words where there are any near the end.
func cutWords(s string, most int) string {
	short, rest := shorten.Head(s, most)
	if rest == "" {
		return s
	}
	if i := strings.LastIndexAny(short, " \t\n"); i > len(short)/2 {
		short = strings.TrimRight(short[:i], " \t\n")
	}
	return short + "…"
}
