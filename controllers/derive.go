package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// Spec is a spec file that follows from what is on record, and is to be written: it did not exist when it was derived.
type Spec struct {
	Path string // below the root
	Ref  schemas.Ref
	Spec schemas.Spec
}

// Derive is [Deriver.Derive] for a single tree.
func Derive(t *state.Tree) []Spec { return new(Deriver).Derive(t) }

// Deriver derives specs from the trees of a run, one after the other. It looks only at what differs from the tree before. Its
// zero value derives from any tree.
type Deriver struct{ calls calls }

// Derive lists the spec files that the tree lacks: the requests of nodes whose latest run ended with a question, and those
// of open questions that other programs wrote into ledgers; and, if there is a memory, the observations of what agents
// learned and of what clarifications came to. What may not be asked is left out: the node is told. The tree is one that
// Settle has decided.
func (d *Deriver) Derive(t *state.Tree) []Spec {
	v := &deriver{tree: t, w: requestsOf(newWorld(t, time.Time{}, nil)), remembers: remembers(t)}
	due := d.calls.since(t)
	again := map[schemas.Ref]bool{}
	look := func(ref schemas.Ref, by ...func()) {
		before := len(v.out)
		for _, f := range by {
			f()
		}
		if len(v.out) > before {
			again[ref] = true // until it is there
		}
	}
	for _, e := range due.of(t, schemas.DAGKind.Name) {
		look(e.Ref, func() { v.asks(e) }, func() { v.learned(e) })
	}
	for _, l := range due.ledgers(t) {
		look(l.Ref(), func() { v.imports(l) })
	}
	for _, e := range due.of(t, schemas.ClarificationRequestKind.Name) {
		look(e.Ref, func() { v.learned(e) }, func() { v.resolved(e) })
	}
	d.calls = calls{tree: t, again: again}
	return v.out
}

type deriver struct {
	tree      *state.Tree
	w         *requests
	remembers bool
	out       []Spec
	derived   map[schemas.Ref]bool
}

// lacks reports whether there is no such object, nor will be one.
func (d *deriver) lacks(ref schemas.Ref) bool {
	e := d.tree.Entry(ref)
	return (e == nil || e.Gone()) && !d.derived[ref]
}

// add adds a spec, unless it exists. A ledger may have an id twice: the first record is taken.
func (d *deriver) add(k schemas.Kind, name string, spec schemas.Spec) {
	ref := schemas.Ref{Kind: k.Name, Name: name}
	if !d.lacks(ref) {
		return
	}
	if d.derived == nil {
		d.derived = map[schemas.Ref]bool{}
	}
	d.derived[ref] = true
	path := d.tree.Settings().Folders.Specs + "/" + k.Plural + "/" + name + ".yaml"
	d.out = append(d.out, Spec{Path: path, Ref: ref, Spec: spec})
}

// asks adds what the latest runs of a DAG's nodes under their present keys asked.
func (d *deriver) asks(e *state.Entry) {
	if e.Object == nil || !e.RunsHave(state.Asks) {
		return
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return
	}
	for i, r := range e.Runs() {
		if r.Asks == nil || st.Nodes[r.Node].Key != r.NodeKey || supersededBy(e.Runs(), i) {
			continue
		}
		spec := askSpec(e, r, issueOf(d.tree, e))
		if d.w.index.takes(e.Name, r) == nil && d.w.scopeOf(spec.From).Check(spec) == nil {
			d.add(schemas.ClarificationRequestKind, runSpecName(e.Name, r), spec)
		}
	}
}

// supersededBy reports whether the node ran again under the same key after run i. Runs are sorted.
func supersededBy(runs []*schemas.Run, i int) bool {
	return i+1 < len(runs) && runs[i+1].Node == runs[i].Node && runs[i+1].NodeKey == runs[i].NodeKey
}

// askSpec is the request that a run's question becomes.
func askSpec(dag *state.Entry, run *schemas.Run, issue int) *schemas.ClarificationRequestSpec {
	a := run.Asks
	if a == nil {
		a = new(schemas.Ask)
	}
	return &schemas.ClarificationRequestSpec{Issue: issue, From: run.Agent, To: a.To, Topic: a.Topic, Question: a.Question,
		Blocking: a.Blocking, Artifacts: a.Artifacts, Run: run.Key}
}

// runSpecName is the name of the spec that a run's record calls for: <owner>-<node>-<6 hex digits of the run's key>.
func runSpecName(owner string, run *schemas.Run) string { return nameFor(owner+"-"+run.Node, run.Key) }

// nameFor is head, as much of it as fits, and six hex digits of the digest of key.
func nameFor(head, key string) string {
	const digits, most = 6, 63
	sum := sha256.Sum256([]byte(key))
	tail := "-" + hex.EncodeToString(sum[:])[:digits]
	return head[:min(len(head), most-len(tail))] + tail
}

// imports adds the open questions of other programs whose agents both exist.
func (d *deriver) imports(l *state.Ledger) {
	for i := range l.Records() {
		c := &l.Records()[i]
		if c.Open() && c.Request == "" && d.importable(c) {
			d.add(schemas.ClarificationRequestKind, strings.ToLower(c.ID), importSpec(c, l.Issue))
		}
	}
}

// importable reports whether a question of another program can be a request here.
func (d *deriver) importable(c *schemas.Clarification) bool {
	if d.w.index.withID(c.ID) != nil || c.From == c.To {
		return false
	}
	for _, name := range []string{c.From, c.To} {
		if e := d.tree.Entry(agentRef(name)); e == nil || e.Object == nil {
			return false
		}
	}
	var r schemas.Report
	importSpec(c, 0).Check(&r)
	return len(r.Findings()) == 0
}

// importSpec is the request for a question of another program: its first turn, else its topic. What is longer than a
// request may be is cut; the thread keeps all of it.
func importSpec(c *schemas.Clarification, issue int) *schemas.ClarificationRequestSpec {
	const topic, question = 200, 2000 // characters
	spec := &schemas.ClarificationRequestSpec{Issue: issue, From: c.From, To: c.To, Topic: shorten.Text(c.Topic, topic),
		Question: shorten.Text(c.Topic, question), Blocking: c.Blocking, Imported: c.ID}
	if len(c.Thread) > 0 && c.Thread[0].Type == schemas.TurnQuestion {
		spec.Question = shorten.Text(c.Thread[0].Body, question)
	}
	return spec
}

// LedgersOf returns what belongs into the ledgers that the changed objects bear on: for each such issue the records of
// all our requests that have a number, by name.
func LedgersOf(t *state.Tree, changed []schemas.Ref) map[int][]schemas.Clarification {
	out := map[int][]schemas.Clarification{}
	for _, ref := range changed {
		if issue, ok := issueOfRef(t, ref); ok {
			out[issue] = nil
		}
	}
	if len(out) == 0 {
		return out
	}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st := requestStatusOf(e)
		issue, _, ok := clarify.ParseID(st.ID)
		if _, touched := out[issue]; !ok || !touched {
			continue
		}
		if spec := requestSpec(e); spec != nil && e.Object.Digest == st.ObservedDigest {
			out[issue] = append(out[issue], clarify.Record(e.Name, spec, st))
			releaseSpec(e, Out{})
		}
	}
	return out
}

// CarryLedger is [clarify.Carry] for the ledger of an issue, with what the tree knows of its requests.
func CarryLedger(t *state.Tree, issue int, base, there, next []byte) ([]byte, error) {
	var ours []schemas.Clarification
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		spec, st := requestSpec(e), requestStatusOf(e)
		if of, _, ok := clarify.ParseID(st.ID); !ok || of != issue || spec == nil {
			continue
		}
		own := *st
		own.Thread = slices.DeleteFunc(slices.Clone(st.Thread), func(t schemas.ThreadEntry) bool { return t.Source == clarify.SourceLedger })
		ours = append(ours, clarify.Record(e.Name, spec, &own))
	}
	return clarify.Carry(base, there, next, issue, ours)
}

// LedgersUnder lists the issues of the ledgers that a request, or a node of a DAG that asked, rests on.
func LedgersUnder(t *state.Tree, owner schemas.Ref, node string) []int {
	if issue, ok := issueOfRef(t, owner); ok {
		return []int{issue}
	}
	if owner.Kind != schemas.DAGKind.Name {
		return nil
	}
	var out []int
	x := clarificationIndex{tree: t}
	for _, q := range x.questionsOf(owner.Name) {
		if q.node == node {
			out = append(out, q.spec.Issue)
		}
	}
	return out
}

// issueOfRef is the issue whose ledger an object bears on.
func issueOfRef(t *state.Tree, ref schemas.Ref) (int, bool) {
	switch ref.Kind {
	case schemas.ClarificationRequestKind.Name:
		issue, _, ok := clarify.ParseID(requestStatusOf(t.Entry(ref)).ID)
		return issue, ok
	case state.LedgerKind:
		issue, err := strconv.Atoi(strings.TrimPrefix(ref.Name, "issue-"))
		return issue, err == nil
	}
	return 0, false
}

// issueOf is the number of the issue that a question is about, or that a DAG serves: its own, else its session's, else 0.
func issueOf(t *state.Tree, dag *state.Entry) int {
	if q := requestSpec(dag); q != nil {
		return q.Issue
	}
	spec := schemas.SpecAs[*schemas.DAGSpec](dag.Object)
	if spec == nil {
		return 0
	}
	if spec.Issue > 0 {
		return spec.Issue
	}
	if s := sessionSpec(t.Entry(sessionRef(spec.Session))); s != nil {
		return s.Issue
	}
	return 0
}
