package controllers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// sim is a tree in memory with a clock and processes that run effects. Statuses go through their encoded form after
// every decision, as if written to disk and read back.
type sim struct {
	t       testing.TB
	now     time.Time
	specs   map[string]schemas.Decoded // by path
	entries map[schemas.Ref]*state.Entry
	dirty   map[schemas.Ref]bool
	lost    bool // an object lost its status: all are decided
	last    settle.Decision
	decider settle.Decider // as a run has it: it decides over all trees
	deriver derive.Deriver
	only    *settle.Selection // what the run that decides was asked for
	checks  bool              // compare with a full decision, and so on, at every settle
	ledgers map[int][]byte    // by issue
	parsed  map[int]*state.Ledger
	// checkpoints are those that were derived.
	checkpoints []*schemas.Checkpoint
	// settings are those without a file.
	settings *schemas.SettingsSpec
}

var simDecoder = schemas.NewDecoder(Schemas(), 0)

func newSim(t testing.TB) *sim {
	settings := new(schemas.SettingsSpec)
	settings.Default()
	return &sim{t: t, settings: settings, now: time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC), specs: map[string]schemas.Decoded{},
		entries: map[schemas.Ref]*state.Entry{}, dirty: map[schemas.Ref]bool{}, checks: true,
		ledgers: map[int][]byte{}, parsed: map[int]*state.Ledger{}}
}

// put writes a spec file; empty text removes it.
func (s *sim) put(path, text string) {
	s.t.Helper()
	if old, ok := s.specs[path]; ok {
		delete(s.specs, path)
		e := s.entry(old.Ref)
		e.Object, e.Problems, e.Refs = nil, nil, nil
	}
	if text == "" {
		return
	}
	d := simDecoder.Decode(path, []byte(text))
	if d.Ref == (schemas.Ref{}) {
		s.t.Fatalf("%s names no object: %v", path, d.Problems)
	}
	s.specs[path] = d
	e := s.entry(d.Ref)
	e.Object, e.Problems, e.Refs = d.Object, nil, d.Refs
	if d.Object == nil {
		e.Problems = d.Problems
	}
}

// relate judges what can be wrong with an object in view of another, as the store does.
func (s *sim) relate() {
	for path, d := range s.specs {
		k, _ := Schemas().Find(d.Ref.Kind)
		if d.Object == nil || k.CheckAgainst == nil || s.entries[d.Ref].Brief().Phase == schemas.ActionApplied {
			continue
		}
		var r schemas.Report
		for _, ref := range d.Object.Refs {
			if to := s.entries[ref.To]; to != nil && to.Object != nil {
				k.CheckAgainst(d.Object, to.Object, &r)
			}
		}
		if wrong := r.Findings(); len(wrong) > 0 != s.entries[d.Ref].Broken() {
			e := s.entry(d.Ref)
			e.Object, e.Problems, e.Refs = d.Object, nil, nil
			for _, f := range wrong {
				e.Object, e.Refs = nil, d.Object.Refs
				e.Problems = append(e.Problems, schemas.Problem{Place: schemas.Place{Path: path}, Severity: f.Severity,
					Code: f.Code, Ref: d.Ref, Message: f.Message, Suggestion: f.Suggestion})
			}
		}
	}
}

// entry returns the entry of ref for changing it.
func (s *sim) entry(ref schemas.Ref) *state.Entry {
	c := &state.Entry{Ref: ref}
	if e := s.entries[ref]; e != nil {
		*c = *e
		c.SetRuns(slices.Clone(e.Runs()))
		c.Claims, c.Inputs = slices.Clone(e.Claims), maps.Clone(e.Inputs)
	}
	s.entries[ref] = c
	s.dirty[ref] = true
	return c
}

func (s *sim) tree() *state.Tree {
	settings := s.settings
	for _, d := range s.specs {
		if d.Ref.Kind == schemas.SettingsKind.Name && d.Object != nil {
			settings = d.Object.Spec().(*schemas.SettingsSpec)
		}
	}
	var list []*state.Entry
	var problems []schemas.Problem
	for _, e := range s.entries {
		if e.Kind != schemas.SettingsKind.Name && (!e.Gone() || e.HasStatus() || len(e.Claims) > 0) {
			list = append(list, e)
			problems = append(problems, e.Problems...)
		}
	}
	return state.NewTree(Schemas(), settings, problems, list...).WithLedgers(s.parsedLedgers()...).WithCheckpoints(s.checkpoints, nil)
}

func (s *sim) parsedLedgers() []*state.Ledger {
	var out []*state.Ledger
	for issue, data := range s.ledgers {
		if s.parsed[issue] == nil {
			l, err := state.ParseLedger(fmt.Sprintf("state/clarifications/issue-%d.json", issue), data)
			if err != nil {
				s.t.Fatal(err)
			}
			s.parsed[issue] = l
		}
		out = append(out, s.parsed[issue])
	}
	return out
}

// setLedger replaces the ledger of an issue, as another program does.
func (s *sim) setLedger(issue int, data []byte) {
	s.ledgers[issue] = data
	delete(s.parsed, issue)
	s.dirty[schemas.Ref{Kind: state.LedgerKind, Name: fmt.Sprintf("issue-%d", issue)}] = true
}

// write adds a derived spec.
func (s *sim) write(spec derive.Spec) {
	s.t.Helper()
	b, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": spec.Ref.Kind,
		"metadata": schemas.Metadata{Name: spec.Ref.Name}, "spec": spec.Spec})
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(spec.Path, string(b))
}

// fold brings the ledgers of all requests up to date and returns the issues of those that changed, sorted. Where a
// ledger is ahead of the statuses, it is to be decided again.
func (s *sim) fold() []int {
	s.t.Helper()
	var refs []schemas.Ref
	for ref := range s.entries {
		refs = append(refs, ref)
	}
	var changed []int
	for issue, records := range ledgers.LedgersOf(s.tree(), refs) {
		data, err := clarify.Fold(s.ledgers[issue], issue, records)
		switch {
		case errors.Is(err, clarify.ErrStale):
			s.dirty[schemas.Ref{Kind: state.LedgerKind, Name: fmt.Sprintf("issue-%d", issue)}] = true
		case err != nil:
			s.t.Fatal(err)
		case !bytes.Equal(data, s.ledgers[issue]):
			s.setLedger(issue, data)
			changed = append(changed, issue)
		}
	}
	slices.Sort(changed)
	return changed
}

// settle decides, writes, and lets go of what is gone.
func (s *sim) settle() settle.Decision {
	s.t.Helper()
	s.relate()
	t := s.tree()
	dirty := slices.SortedFunc(maps.Keys(s.dirty), schemas.Ref.Compare)
	if s.lost {
		s.lost, dirty = false, nil
	}
	s.decider.Only = s.only
	if s.checks {
		s.decider.Settle(t, s.now.Add(time.Hour), dirty) // nobody takes it over
	}
	d := s.decider.Settle(t, s.now, dirty)
	if s.checks {
		s.check(t, d)
	}
	for ref := range d.Outs {
		e := s.entries[ref]
		c := *e
		is := d.StatusOf(ref)
		c.SetStatus(s.disk(ref, is))
		s.entries[ref] = &c
		if is == nil && c.Gone() && len(c.Claims) == 0 {
			delete(s.entries, ref)
		}
	}
	s.merge(d)
	s.dirty = map[schemas.Ref]bool{}
	return d
}

// merge keeps what was decided last of every object.
func (s *sim) merge(d settle.Decision) {
	outs := s.last.Outs
	if outs == nil {
		outs = map[schemas.Ref]settle.Out{}
	}
	for ref, out := range d.Outs {
		outs[ref] = out
	}
	for ref := range outs {
		if s.entries[ref] == nil {
			delete(outs, ref)
		}
	}
	s.last = d
	s.last.Outs = outs
}

// disk sends a status through its encoded form.
func (s *sim) disk(ref schemas.Ref, st schemas.Status) schemas.Status {
	s.t.Helper()
	if st == nil {
		return nil
	}
	b, err := state.EncodeStatus(ref, st)
	if err != nil {
		s.t.Fatal(err)
	}
	return decodeForTest(s.t, ref, b)
}

func decodeForTest(t testing.TB, ref schemas.Ref, b []byte) schemas.Status {
	t.Helper()
	k, ok := Schemas().Find(ref.Kind)
	if !ok {
		t.Fatalf("no kind %s", ref.Kind)
	}
	file := struct {
		Status schemas.Status `json:"status"`
	}{k.NewStatus()}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	return file.Status
}

// check holds what is true of every decision against d.
func (s *sim) check(t *state.Tree, d settle.Decision) {
	s.t.Helper()
	full := (&settle.Decider{Only: s.only, Identify: s.decider.Identify}).Settle(t, s.now, nil)
	for ref, out := range full.Outs {
		status, want := d.StatusOf(ref), full.StatusOf(ref)
		if !Kinds.Row(ref.Kind).SameStatus(status, want) {
			s.t.Errorf("%s: deciding what is affected by %v differs from deciding everything:\n%s\n%s", ref, s.dirty,
				s.text(ref, status), s.text(ref, want))
		}
		if part, ok := d.Outs[ref]; ok {
			sameEffects(s.t, ref, part.Effects, out.Effects)
		} else {
			sameEffects(s.t, ref, s.last.Outs[ref].Effects, out.Effects)
		}
	}
	again := (&settle.Decider{Only: s.only, Identify: s.decider.Identify}).Settle(d.Tree, s.now, nil)
	for _, ref := range again.Changed {
		s.t.Errorf("%s is not at its fixed point:\n%s\n%s", ref, s.text(ref, d.Tree.Entry(ref).Status()),
			s.text(ref, again.Tree.Entry(ref).Status()))
	}
	for ref := range d.Outs {
		if is := d.StatusOf(ref); is != nil {
			lint(s.t, ref, is)
			checkMoves(s.t, t.Entry(ref), is)
			if back := s.disk(ref, is); !Kinds.Row(ref.Kind).SameStatus(back, is) {
				s.t.Errorf("%s: the status does not survive a file:\n%s\n%s", ref, s.text(ref, is), s.text(ref, back))
			}
		}
	}
}

// derive lists the specs that the tree lacks: as many as whoever sees it for the first time finds.
func (s *sim) derive() []derive.Spec {
	s.t.Helper()
	t := s.tree()
	var due []schemas.Ref
	for ref, out := range s.last.Outs {
		if out.Due {
			due = append(due, ref)
		}
	}
	slices.SortFunc(due, schemas.Ref.Compare)
	all, kept := new(derive.Deriver).Derive(t, due...)
	defer func() { s.checkpoints = t.WithCheckpoints(kept.Add, kept.Drop).Checkpoints() }()
	for range 2 { // also where nobody has written them
		if specs, _ := s.deriver.Derive(t, due...); !reflect.DeepEqual(specs, all) {
			s.t.Errorf("what is looked at calls for %v, and everything for %v", specs, all)
		}
	}
	return all
}

func (s *sim) text(ref schemas.Ref, st schemas.Status) string {
	if st == nil {
		return "(no status)"
	}
	b, err := state.EncodeStatus(ref, st)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func sameEffects(t testing.TB, ref schemas.Ref, a, b []settle.Effect) {
	t.Helper()
	keys := func(es []settle.Effect) (out []string) {
		for _, e := range es {
			out = append(out, e.Key)
		}
		return out
	}
	x, y := keys(a), keys(b)
	if !slices.Equal(x, y) {
		t.Errorf("%s: effects %q, and %q when everything is decided", ref, x, y)
	}
	if !slices.IsSorted(y) {
		t.Errorf("%s: effects are not sorted: %q", ref, y)
	}
}

// lint rejects statuses that break the rules of conditions.
func lint(t testing.TB, ref schemas.Ref, st schemas.Status) {
	t.Helper()
	base := st.Base()
	if base.History == nil || len(base.History) > schemas.HistoryLimit {
		t.Errorf("%s: history of %d entries", ref, len(base.History))
	}
	if !slices.IsSortedFunc(base.Conditions, func(a, b schemas.Condition) int { return strings.Compare(a.Type, b.Type) }) {
		t.Errorf("%s: conditions are not sorted: %+v", ref, base.Conditions)
	}
	if base.Condition(schemas.Ready) == nil {
		t.Errorf("%s has no Ready condition", ref)
	}
	for _, c := range base.Conditions {
		if c.Type != schemas.Ready && c.Type != actions.Delivered && c.Type != settle.Healthy && c.Type != settle.Notified && c.Type != schemas.Verified && c.Status != schemas.True {
			t.Errorf("%s: %s is %s; it may only be there while it is True", ref, c.Type, c.Status)
		}
		if c.Reason == "" || strings.ContainsAny(c.Reason, " -_") || c.Message == "" || c.LastTransitionTime.IsZero() {
			t.Errorf("%s: malformed condition %+v", ref, c)
		}
	}
	if dag, ok := st.(*schemas.DAGStatus); ok {
		lintNodes(t, ref, dag)
	}
}

func lintNodes(t testing.TB, ref schemas.Ref, dag *schemas.DAGStatus) {
	t.Helper()
	for name, n := range dag.Nodes.All() {
		needsReason := n.State != schemas.NodePending && n.State != schemas.NodeSucceeded
		if n.State == "" || n.Key == "" || needsReason && (n.Reason == "" || n.Message == "" && n.State != schemas.NodeFailed) {
			t.Errorf("%s: malformed node %s: %+v", ref, name, n)
		}
		waits := []string{schemas.NodePending, schemas.NodeBlocked}
		if isOver(dag) && slices.Contains(waits, n.State) ||
			hasEndedIn(dag.Phase) && slices.Contains([]string{schemas.NodeQueued, schemas.NodeRunning}, n.State) {
			t.Errorf("%s is %s and its node %s %s", ref, dag.Phase, name, n.State)
		}
	}
}

// effects returns all wanted effects, by key.
func (s *sim) effects() []settle.Effect {
	var out []settle.Effect
	for _, ref := range slices.SortedFunc(maps.Keys(s.last.Outs), schemas.Ref.Compare) {
		out = append(out, s.last.Outs[ref].Effects...)
	}
	return out
}

// find returns the wanted effect of a node; a name may end in a star.
func (s *sim) find(owner, node string) (settle.Effect, bool) {
	for _, e := range s.effects() {
		if named(e.Owner.Name, owner) && e.Node == node {
			return e, true
		}
	}
	return settle.Effect{}, false
}

func named(name, pattern string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return name == pattern || open && strings.HasPrefix(name, prefix)
}

// claim puts an effect on record for a process.
func (s *sim) claim(e settle.Effect, process string) {
	entry := s.entry(e.Owner)
	if settle.ClaimOf(entry, e.Key) != nil {
		return
	}
	entry.Claims = append(entry.Claims, state.Claim{Run: e.Claim(), Process: process})
	slices.SortFunc(entry.Claims, func(a, b state.Claim) int { return strings.Compare(a.Key, b.Key) })
}

// start marks a claimed effect as running.
func (s *sim) start(e settle.Effect) {
	s.claim(e, "p1")
	c := settle.ClaimOf(s.entry(e.Owner), e.Key)
	if c.StartedAt.IsZero() {
		c.StartedAt = schemas.NewTime(s.now)
	}
}

// end replaces a claim by its record; with no outcome the claim just vanishes.
func (s *sim) end(owner schemas.Ref, key string, change func(*schemas.Run)) {
	s.t.Helper()
	entry := s.entry(owner)
	i := slices.IndexFunc(entry.Claims, func(c state.Claim) bool { return c.Key == key })
	if i < 0 {
		s.t.Fatalf("%s is not claimed", key)
	}
	run := entry.Claims[i].Run
	entry.Claims = slices.Delete(entry.Claims, i, i+1)
	if run.StartedAt.IsZero() {
		run.StartedAt = schemas.NewTime(s.now)
	}
	run.FinishedAt = schemas.NewTime(s.now)
	change(&run)
	if !run.Done() {
		return
	}
	entry.SetRuns(append(entry.Runs(), &run))
	slices.SortFunc(entry.Runs(), compareRuns)
}

func compareRuns(a, b *schemas.Run) int {
	if c := strings.Compare(a.Node, b.Node); c != 0 {
		return c
	}
	if c := strings.Compare(a.NodeKey, b.NodeKey); c != 0 {
		return c
	}
	return a.Seq - b.Seq
}

// finish ends the run of a node with an outcome.
func (s *sim) finish(owner, node, outcome string, change func(*schemas.Run)) {
	s.t.Helper()
	ref := schemas.DAGKind.Ref(owner)
	for r := range s.entries {
		claims := func(c state.Claim) bool { return c.Node == node }
		if (r.Kind == schemas.ClarificationRequestKind.Name || r.Kind == schemas.SessionKind.Name) && named(r.Name, owner) && slices.ContainsFunc(s.entries[r].Claims, claims) {
			ref = r
		}
	}
	for _, c := range s.entries[ref].Claims {
		if c.Node == node {
			s.end(ref, c.Key, func(r *schemas.Run) {
				r.Outcome = outcome
				code := 0
				if outcome != schemas.OutcomeSucceeded && outcome != schemas.OutcomeAsked {
					code = 1
				}
				r.ExitCode = &code
				if change != nil {
					change(r)
				}
			})
			return
		}
	}
	s.t.Fatalf("nothing runs for node %s of %s", node, ref)
}

func (s *sim) dag(name string) *schemas.DAGStatus {
	s.t.Helper()
	e := s.entries[schemas.DAGKind.Ref(name)]
	if e == nil || !e.HasStatus() {
		s.t.Fatalf("dag/%s has no status", name)
	}
	return e.Status().(*schemas.DAGStatus)
}

// states lists the nodes of a DAG as "name State/Reason".
func (s *sim) states(dag string) string {
	st := s.dag(dag)
	var b strings.Builder
	for name, n := range st.Nodes.All() {
		fmt.Fprintf(&b, "%s %s", name, n.State)
		if n.Reason != "" {
			b.WriteString("/" + n.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// hasEndedIn reports whether a DAG in this phase has nothing left to do.
func hasEndedIn(phase string) bool {
	return slices.Contains([]string{schemas.DAGSucceeded, schemas.DAGFailed, schemas.DAGCancelled}, phase)
}

// isOver reports whether a DAG has ended and nothing of it waits.
func isOver(st *schemas.DAGStatus) bool {
	return hasEndedIn(st.Phase) && (st.Phase != schemas.DAGFailed || !st.FinishedAt.IsZero())
}

// spentIn is how much of some spans lies before now. They neither overlap nor end before they begin.
func spentIn(spans []schemas.Span, now time.Time) (sum time.Duration) {
	for _, s := range spans {
		to := now
		if !s.To.IsZero() && s.To.Before(now) {
			to = s.To.Time
		}
		sum += max(to.Sub(s.From.Time), 0)
	}
	return sum
}
