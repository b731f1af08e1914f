package controllers

import (
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// World is what decisions over one tree share: who may work, and what was decided already. What is asked for is worked
// out once. A World belongs to one goroutine.
type World struct {
	table Table
	tree  *state.Tree
	now   time.Time
	only  *Selection
	asks  func(owner schemas.Ref, node string) bool // nil until asked for
	// work is what is being decided; nil means everything. The statuses of other objects in the tree are believed.
	work  map[schemas.Ref]bool
	outs  map[schemas.Ref]Out
	seats map[string]*seat // by session; nil until asked for
	deeds map[string]*deeds
	// invalid are the broken DAGs by session; nil until asked for, where everything is decided.
	invalid map[string][]*state.Entry
	tell    func() // told of every decision; may be nil
	// sums are those of sessions; summed tells that they are as decided now.
	sums   *dagSums
	summed bool

	// What decisions about clarifications share; each is nil until asked for, but matters.
	matters  *matterIndex
	findings map[string]*finding       // by name of the request
	numbers  map[string]string         // given now, by name of the request
	scopes   map[string]clarify.Scope  // by asking agent
	ordered  map[string]*clarify.Order // by name of the request
	waits    map[string]wait           // by asking agent
}

func newWorld(t *state.Tree, now time.Time, work map[schemas.Ref]bool) *World {
	return &World{table: TableOf(t), tree: t, now: now, work: work, outs: make(map[schemas.Ref]Out, len(work)),
		matters: &matterIndex{tree: t}}
}

// asked reports whether the outputs of a node were asked for.
func (w *World) asked(owner schemas.Ref, node string) bool {
	if w.only == nil || len(w.only.Nodes) == 0 {
		return false
	}
	if w.asks == nil {
		w.asks = w.only.in(w.table, w.tree)
	}
	return w.asks(owner, node)
}

// decide is decideAs by the row of the table.
func (w *World) decide(e *state.Entry) Out { return w.decideAs(e, w.table.Row(e.Kind)) }

// decideAs returns the decision about e, an object of kind k. A status that it does not change is the very one that e has.
// A decision that is shared is made once.
func (w *World) decideAs(e *state.Entry, k *Kind) Out {
	if out, ok := w.outs[e.Ref]; ok {
		return out
	}
	if w.tell != nil {
		w.tell()
	}
	out := k.Decide(In{Entry: e, Tree: w.tree, World: w, Now: w.now})
	if !k.KeepSpec {
		releaseSpec(e, out)
	}
	if k.same(e.Status(), out.Status) {
		out.Status = e.Status() // of two equal ones one is kept
	}
	if k.Shared {
		w.outs[e.Ref] = out
	}
	return out
}

// releaseSpec releases the decoded spec of an object that has nothing to do: what is not decided again need not be held in
// full.
func releaseSpec(e *state.Entry, out Out) {
	if e.Object != nil && len(out.Effects) == 0 && len(e.Claims) == 0 && out.Again.IsZero() {
		e.Object.Release()
	}
}

// Status returns the status that an object of a shared kind has now: as decided if it is being decided, else as in the tree.
// It may be nil. Of two kinds, only one may ask for the status of the other.
func (w *World) Status(e *state.Entry) schemas.Status {
	if w.work == nil || w.work[e.Ref] {
		return w.decide(e).Status
	}
	return e.Status()
}

// dagStatus is Status for DAGs.
func (w *World) dagStatus(e *state.Entry) *schemas.DAGStatus {
	st, _ := w.Status(e).(*schemas.DAGStatus)
	return st
}

// dagBrief is dagStatus in brief; nil where there is no status.
func (w *World) dagBrief(e *state.Entry) *schemas.Brief {
	if w.work == nil || w.work[e.Ref] {
		st := w.dagStatus(e)
		if st == nil {
			return nil
		}
		b := schemas.BriefOf(st)
		return &b
	}
	if !e.HasStatus() {
		return nil
	}
	return e.Brief()
}

// sessionStatus is Status for sessions.
func (w *World) sessionStatus(e *state.Entry) *schemas.SessionStatus {
	st, _ := w.Status(e).(*schemas.SessionStatus)
	return st
}

// dagsOf lists the DAGs whose specs name the session, by name.
func dagsOf(t *state.Tree, session schemas.Ref) []*state.Entry {
	var out []*state.Entry
	for _, r := range t.ReferrersOf(session, schemas.DAGKind.Name) {
		out = append(out, t.Entry(r))
	}
	return out
}

// dagSum adds up the DAGs of a session, each as it is decided now; it is not to be changed.
func (w *World) dagSum(session string) *dagSum {
	if w.work != nil {
		if !w.summed {
			w.sums.follow(w.tree)
			w.summed = true
			for ref := range w.work {
				if e := w.tree.Entry(ref); ref.Kind == schemas.DAGKind.Name && e != nil {
					w.sums.decided(e, w.dagBrief(e))
				}
			}
		}
		return w.sums.session(session)
	}
	if w.invalid == nil {
		w.invalid = brokenDAGs(w.tree)
	}
	sum := new(dagSum)
	for _, e := range dagsOf(w.tree, sessionRef(session)) {
		sum.add(e.Name, partOf(session, w.dagBrief(e)))
	}
	for _, e := range w.invalid[session] {
		sum.add(e.Name, part{session: session, broken: true})
	}
	return sum
}

// brokenDAGs lists the DAGs whose files cannot be used by the session that they name, or belonged to.
func brokenDAGs(t *state.Tree) map[string][]*state.Entry {
	out := map[string][]*state.Entry{}
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if e.Broken() {
			session := sessionOfBroken(e)
			out[session] = append(out[session], e)
		}
	}
	return out
}

// sessionOfBroken is the session that a broken DAG names, or belonged to before; "" where neither is known.
func sessionOfBroken(dag *state.Entry) string {
	for _, r := range dag.Refs {
		if r.To.Kind == schemas.SessionKind.Name {
			return r.To.Name
		}
	}
	if st, ok := dag.Status().(*schemas.DAGStatus); ok {
		return st.Session
	}
	return ""
}

// deeds is what claims and records tell of one agent.
type deeds struct {
	claims []*state.Claim
	runs   []*schemas.Run
	last   schemas.Time // the latest start or end
	issue  int          // of the oldest claim
	// task is the latest run of a node, and where it ran; answers are the questions that the agent is being asked.
	task    *schemas.Run
	dag     *state.Entry
	answers []*state.Entry
}

// deedsOf returns what an agent does and did; never nil.
func (w *World) deedsOf(agent string) *deeds {
	if w.deeds == nil {
		w.deeds = map[string]*deeds{}
		for i := range w.table {
			if k := &w.table[i]; k.Performs {
				for _, e := range w.tree.Active(k.Name) {
					w.gather(e)
				}
			}
		}
	}
	if d := w.deeds[agent]; d != nil {
		return d
	}
	return new(deeds)
}

func (w *World) gather(e *state.Entry) {
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Agent != "" && !c.StartedAt.IsZero() {
			d := w.deed(c.Agent)
			if len(d.claims) == 0 || c.StartedAt.Before(d.claims[0].StartedAt.Time) {
				d.issue = issueOf(w.tree, e)
			}
			d.claims = append(d.claims, c)
			d.last = later(d.last, c.StartedAt)
			if e.Kind == schemas.ClarificationRequestKind.Name {
				d.answers = append(d.answers, e)
			}
		}
	}
	if !e.RunsHave(state.OfAgent) {
		return
	}
	for _, r := range e.Runs() {
		if r.Agent != "" {
			d := w.deed(r.Agent)
			d.runs = append(d.runs, r)
			d.last = later(d.last, r.FinishedAt)
			if e.Kind == schemas.DAGKind.Name && (d.task == nil || r.FinishedAt.After(d.task.FinishedAt.Time)) {
				d.task, d.dag = r, e
			}
		}
	}
}

func (w *World) deed(agent string) *deeds {
	d := w.deeds[agent]
	if d == nil {
		d = new(deeds)
		w.deeds[agent] = d
	}
	return d
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

func sessionRef(name string) schemas.Ref {
	return schemas.Ref{Kind: schemas.SessionKind.Name, Name: name}
}

func dagRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.DAGKind.Name, Name: name} }

func agentRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.AgentKind.Name, Name: name} }

// sessionSpec returns the spec of a session's entry; nil when there is none that can be used.
func sessionSpec(e *state.Entry) *schemas.SessionSpec {
	if e == nil {
		return nil
	}
	return schemas.SpecAs[*schemas.SessionSpec](e.Object)
}

func later(a, b schemas.Time) schemas.Time {
	if b.After(a.Time) {
		return b
	}
	return a
}
