package derive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// checkpointsKept bounds the checkpoints of an agent in a session; the oldest go first.
const checkpointsKept = 50

// summaryLabel is the label with the kind of the summary in an observation.
const summaryLabel = "kind"

// marked returns the marks of a DAG's runs, oldest first.
func marked(e *state.Entry) []moment {
	var out []moment
	add := func(r *schemas.Run) {
		if r.Agent == "" || r.Turn == nil {
			return
		}
		for k := range r.Turn.Marks {
			out = append(out, moment{r, &r.Turn.Marks[k]})
		}
	}
	if e.RunsHave(state.Marks) {
		for _, r := range e.Runs() {
			add(r)
		}
	}
	for i := range e.Claims {
		add(&e.Claims[i].Run)
	}
	slices.SortStableFunc(out, func(a, b moment) int {
		return cmp.Or(a.mark.At.Compare(b.mark.At.Time), strings.Compare(a.run.Key, b.run.Key), cmp.Compare(a.mark.Percent, b.mark.Percent))
	})
	return out
}

// hasCheckpoint reports whether a checkpoint exists for the same cause, or is older than all of the many that are kept.
func (d *deriver) hasCheckpoint(c *schemas.Checkpoint) bool {
	kept, oldest := 0, schemas.Time{}
	for _, old := range slices.Concat(d.tree.Checkpoints(), d.kept.Add) {
		if old.Agent != c.Agent || old.SessionID != c.SessionID {
			continue
		}
		if old.SameCause(c) {
			return true
		}
		if kept++; oldest.IsZero() || old.Timestamp.Before(oldest.Time) {
			oldest = old.Timestamp
		}
	}
	return kept >= checkpointsKept && !c.Timestamp.After(oldest.Time)
}

// nextIndex is the number after the last one of the agent in the session. It drops the oldest checkpoint of too many.
func (d *deriver) nextIndex(c *schemas.Checkpoint) int {
	var own []*schemas.Checkpoint
	last := 0
	for _, old := range slices.Concat(d.tree.Checkpoints(), d.kept.Add) {
		if old.Agent == c.Agent && old.SessionID == c.SessionID {
			last = max(last, old.CheckpointIndex)
			if !slices.Contains(d.kept.Drop, old) {
				own = append(own, old)
			}
		}
	}
	if len(own) >= checkpointsKept {
		d.kept.Drop = append(d.kept.Drop, slices.MinFunc(own, func(a, b *schemas.Checkpoint) int {
			return cmp.Or(a.Timestamp.Compare(b.Timestamp.Time), cmp.Compare(a.CheckpointIndex, b.CheckpointIndex))
		}))
	}
	return last + 1
}

// summarized adds the observation of a checkpoint.
func (d *deriver) summarized(e *state.Entry, c *schemas.Checkpoint) {
	if !d.remembers {
		return
	}
	name := fmt.Sprintf("checkpoint-%s-%s-%d", c.SessionID, c.Agent, c.CheckpointIndex)
	if len(name) > longestName {
		name = clarifications.NameFor("checkpoint-"+c.Agent, c.Name())
	}
	if !d.lacks(schemas.ObservationKind.Ref(name)) {
		return
	}
	spec := &schemas.ObservationSpec{Agent: c.Agent, Issue: sessions.IssueOf(d.tree, e), Session: c.SessionID, Timestamp: c.Timestamp, Run: c.Run}
	head := fmt.Sprintf("%s of %s at %d %% of its context, working on %s", c.Summary, c.Agent, c.Threshold, c.Node)
	if h := c.Handoff; h != nil {
		head = fmt.Sprintf("%s of %s, working on %s: %s", c.Summary, c.Agent, c.Node, h.HandoffReason)
	}
	spec.Entries = soundEntries([]schemas.ObservationEntry{{Category: schemas.CategorySummary,
		Content: cutWords(head+"\n"+workText(&c.Work), contentLimit), Summary: cutWords(head, summaryLimit)}})
	before := len(d.out)
	if d.observe(name, spec); len(d.out) > before {
		d.out[before].Labels = map[string]string{summaryLabel: c.Summary}
	}
}

// workText is the work of a checkpoint in a few lines, the most important first.
func workText(w *schemas.CheckpointWork) string {
	var lines []string
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, name+": "+text)
		}
	}
	add("Task", cutWords(w.Task, contentLimit/4))
	add("Files changed", strings.Join(w.FilesChanged, ", "))
	add("Reported", cutWords(w.Reported, contentLimit/4))
	add("Remaining", strings.Join(w.Remaining, "; "))
	add("Last said", cutWords(w.Said, contentLimit/4))
	add("Latest tool calls", strings.Join(w.ToolCalls, "; "))
	return strings.Join(lines, "\n")
}

// checkpoints adds what agents knew when they had used a share of their context, once for each share of each of their sessions:
// by the records of a DAG's runs, and by the claims of those that run.
func (d *deriver) checkpoints(e *state.Entry) {
	for _, at := range marked(e) {
		c := &schemas.Checkpoint{APIVersion: schemas.APIVersion, Kind: schemas.CheckpointName, Timestamp: at.mark.At,
			SessionID: cmp.Or(sessionWith(e), e.Name), ContextUsage: at.mark.Usage(), Threshold: at.mark.Percent, Agent: at.run.Agent,
			AgentSession: at.mark.Session, Run: at.run.Key, Node: "dag/" + e.Name + ":" + at.run.Node, NodeKey: at.run.NodeKey}
		d.keepCheckpoint(c, e, at)
	}
	for _, c := range slices.Concat(d.tree.Checkpoints(), d.kept.Add) {
		if strings.HasPrefix(c.Node, "dag/"+e.Name+":") {
			d.summarized(e, c)
		}
	}
}

// keepCheckpoint adds a checkpoint, unless it exists.
func (d *deriver) keepCheckpoint(c *schemas.Checkpoint, e *state.Entry, at moment) {
	if d.hasCheckpoint(c) {
		return
	}
	c.CheckpointIndex = d.nextIndex(c)
	c.Metadata.Name = c.Name()
	d.fill(c, e, at)
	d.kept.Add = append(d.kept.Add, c)
}

// fill fills in the content of a checkpoint from records, without secrets. It names missing facts as unknown.
func (d *deriver) fill(c *schemas.Checkpoint, e *state.Entry, at moment) {
	s := &summary{d: d, dag: e, spec: schemas.SpecAs[*schemas.DAGSpec](e.Object), c: c, fields: map[string]any{}}
	if s.spec != nil {
		if i := slices.IndexFunc(s.spec.Nodes, func(n schemas.Node) bool { return n.Name == at.run.Node }); i >= 0 {
			s.node = &s.spec.Nodes[i]
		}
	}
	c.Summary = schemas.SummaryHandoff
	if a := d.tree.Entry(schemas.AgentKind.Ref(c.Agent)); a != nil {
		if spec := schemas.SpecAs[*schemas.AgentSpec](a.Object); spec != nil {
			c.Summary = spec.MemoryOf().Summary
		}
	}
	s.work(at)
	switch c.Summary {
	case schemas.SummaryGuide:
		s.guide()
	case schemas.SummaryLibrarian:
		s.librarian()
	case schemas.SummaryAcademic:
		s.academic()
	case schemas.SummaryArchitect:
		s.architect()
	case schemas.SummaryHandoff:
		s.handoff()
	default:
		s.set("pipelineId", c.Node)
	}
	s.finish()
}
