package sessions

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// dagSum adds up the DAGs of a session.
type dagSum struct {
	dags, running int
	progress      schemas.Progress
	phases        map[string]int
	changed       int      // their specs are not those that their statuses are about
	active        []string // working, about to, or waiting; sorted
	failed        []string // sorted
	invalid       []string // whose files cannot be used; not among dags; sorted
	ended         recent
}

// part is what one DAG adds.
type part struct {
	session  string
	broken   bool
	phase    string
	progress schemas.Progress
	running  int
	ended    schemas.Time
	changed  bool // the spec is not the one that the status is about
}

// partOf is what a DAG adds to a session; there may be no brief yet.
func partOf(session string, b *schemas.Brief) part {
	if b == nil {
		return part{session: session, phase: schemas.DAGPending}
	}
	return part{session: session, phase: b.Phase, progress: b.Progress, running: b.Running, ended: b.FinishedAt}
}

// live reports whether the DAG works, is about to, or waits.
func (p *part) live() bool {
	switch p.phase {
	case schemas.DAGSucceeded, schemas.DAGCancelled:
		return false
	case schemas.DAGFailed:
		return p.ended.IsZero() // something of it waits
	}
	return true
}

// haveWork reports whether a DAG of the session has not ended.
func (s *dagSums) haveWork(session string) bool {
	sum := s.sum(session)
	return len(sum.active) > 0 || sum.running > 0 || sum.changed > 0
}

func (s *dagSum) add(name string, p *part) {
	if p.broken {
		s.invalid = withName(s.invalid, name)
		return
	}
	if s.phases == nil {
		s.phases = map[string]int{}
	}
	s.count(p, 1)
	if p.live() {
		s.active = withName(s.active, name)
	}
	if p.phase == schemas.DAGFailed {
		s.failed = withName(s.failed, name)
	}
	if !p.ended.IsZero() {
		s.ended.add(name, p)
	}
}

func (s *dagSum) remove(name string, p part) {
	if p.broken {
		s.invalid = withoutName(s.invalid, name)
		return
	}
	s.count(&p, -1)
	if p.live() {
		s.active = withoutName(s.active, name)
	}
	if p.phase == schemas.DAGFailed {
		s.failed = withoutName(s.failed, name)
	}
	if !p.ended.IsZero() {
		s.ended.remove(ending{name, p})
	}
}

func (s *dagSum) count(p *part, n int) {
	s.dags += n
	s.running += n * p.running
	if p.changed {
		s.changed += n
	}
	s.progress.Done += n * p.progress.Done
	s.progress.Total += n * p.progress.Total
	if s.phases[p.phase] += n; s.phases[p.phase] == 0 {
		delete(s.phases, p.phase)
	}
}

// withName and withoutName add a name to a sorted list, and remove it.
func withName(list []string, name string) []string {
	if i, ok := slices.BinarySearch(list, name); !ok {
		list = slices.Insert(list, i, name)
	}
	return list
}

func withoutName(list []string, name string) []string {
	if i, ok := slices.BinarySearch(list, name); ok {
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// ending is a DAG that ended.
type ending struct {
	dag string
	part
}

// compare orders endings as their entries are in a history.
func (e *ending) compare(o *ending) int {
	if c := e.ended.Compare(o.ended.Time); c != 0 {
		return c
	}
	if c := strings.Compare(e.phase, o.phase); c != 0 || e.dag == o.dag {
		return c
	}
	return strings.Compare(e.dag+":", o.dag+":")
}

// entry is the line of the session's history.
func (e *ending) entry() schemas.HistoryEntry {
	return schemas.HistoryEntry{At: e.ended, Reason: "DAG" + e.phase,
		Message: fmt.Sprintf("%s: %d of %d nodes done", schemas.DAGKind.Ref(e.dag), e.progress.Done, e.progress.Total)}
}

// recent are the latest endings: at least as many as a history holds, if there are that many, unless too few are left.
type recent struct {
	list   []ending // sorted
	before bool     // there are earlier ones, too
}

// mostRecent bounds the list. That it is longer than a history spares looking at all DAGs for each that starts again.
const mostRecent = 4 * schemas.HistoryLimit

func (r *recent) find(e *ending) (int, bool) {
	return slices.BinarySearchFunc(r.list, e, func(a ending, b *ending) int { return a.compare(b) })
}

func (r *recent) add(dag string, p *part) {
	if r.before && len(r.list) > 0 && p.ended.Before(r.list[0].ended.Time) {
		return
	}
	e := ending{dag, *p}
	i := len(r.list)
	if i > 0 && e.compare(&r.list[i-1]) < 0 {
		i, _ = r.find(&e)
	}
	if i == 0 && r.before {
		return
	}
	if r.list = slices.Insert(r.list, i, e); len(r.list) > mostRecent {
		r.list, r.before = slices.Delete(r.list, 0, mostRecent/2), true // not one at a time: what comes last is mostly the latest
	}
}

func (r *recent) remove(e ending) {
	if i, ok := r.find(&e); ok {
		r.list = slices.Delete(r.list, i, i+1)
	}
}

func (r *recent) short() bool { return r.before && len(r.list) < schemas.HistoryLimit }

// dagSums are the sums of all sessions over the tree that was looked at last.
type dagSums struct {
	tree  *state.Tree
	parts map[string]part // by DAG that is not dormant
	of    map[string]*dagSum
	ahead map[string]bool // the DAGs that are as decided, not as in the tree
}

// follow brings the sums up to date with a tree.
func (s *dagSums) follow(t *state.Tree) {
	if s.tree == nil || !t.SameBase(s.tree) {
		s.begin(t)
	}
	for was, is := range t.Since(s.tree, schemas.DAGKind.Name) {
		if is == nil {
			s.drop(was.Name)
		} else {
			s.put(is)
		}
	}
	s.tree = t
	for name := range s.ahead {
		if e := t.Entry(schemas.DAGKind.Ref(name)); e != nil {
			s.put(e)
		} else {
			s.drop(name)
		}
	}
	clear(s.ahead)
}

// begin takes all DAGs of a tree.
func (s *dagSums) begin(t *state.Tree) {
	active := t.Active(schemas.DAGKind.Name)
	s.parts, s.of, s.ahead, s.tree = make(map[string]part, len(active)), map[string]*dagSum{}, map[string]bool{}, t
	for _, e := range active {
		s.put(e)
	}
}

// sum is the sum of a session to add to. It begins with what the dormant DAGs of the tree add.
func (s *dagSums) sum(session string) *dagSum {
	sum := s.of[session]
	if sum == nil {
		sum = new(dagSum)
		s.of[session] = sum
		for dag, p := range s.dormantParts(session) {
			sum.add(dag, p)
		}
	}
	return sum
}

// dormantParts yields what the dormant DAGs of the tree add to a session. A part is valid until the next one.
func (s *dagSums) dormantParts(session string) iter.Seq2[string, *part] {
	return func(yield func(string, *part) bool) {
		var p part
		for o := range s.tree.DormantReferrers(schemas.SessionKind.Ref(session), schemas.DAGKind.Name) {
			if p = partOf(session, &o.Brief); !yield(o.Name, &p) {
				return
			}
		}
	}
}

// put takes a DAG as it is in the tree.
func (s *dagSums) put(e *state.Entry) {
	var brief *schemas.Brief
	if e.HasStatus() {
		brief = e.Brief()
	}
	s.take(e, brief)
}

// decided takes a DAG as it was decided, until the next tree.
func (s *dagSums) decided(e *state.Entry, brief *schemas.Brief) {
	s.ahead[e.Name] = true
	s.take(e, brief)
}

func (s *dagSums) take(e *state.Entry, brief *schemas.Brief) {
	if p, ok := partIn(e, brief); ok {
		s.set(e.Name, p)
	} else {
		s.drop(e.Name) // it belongs to no session
	}
}

// partIn is what a DAG adds to its session; ok is false without one.
func partIn(e *state.Entry, brief *schemas.Brief) (p part, ok bool) {
	if e.Broken() {
		return part{session: SessionOfBroken(e), broken: true}, true
	}
	if e.Object != nil {
		for _, r := range e.Object.Refs {
			if r.To.Kind == schemas.SessionKind.Name {
				p = partOf(r.To.Name, brief)
				p.changed = brief != nil && brief.ObservedDigest != e.Object.Digest
				return p, true
			}
		}
	}
	return part{}, false
}

// added is what was added for a DAG, with the dormant ones of the tree or later.
func (s *dagSums) added(name string) (p part, had bool) {
	if p, had = s.parts[name]; !had {
		if ref := schemas.DAGKind.Ref(name); s.tree.IsDormant(ref) {
			e := s.tree.Entry(ref)
			return partIn(e, e.Brief())
		}
	}
	return p, had
}

// set replaces what a DAG adds.
func (s *dagSums) set(name string, p part) {
	was, had := s.added(name)
	sum := s.sum(p.session)
	s.parts[name] = p // also where it adds what it did while it was dormant: it may not be in the next tree
	if had && was == p {
		return
	}
	if had {
		s.sum(was.session).remove(name, was)
	}
	sum.add(name, &p)
}

// drop takes away what a DAG adds.
func (s *dagSums) drop(name string) {
	if was, had := s.added(name); had {
		s.sum(was.session).remove(name, was)
		delete(s.parts, name)
	}
}

// session returns the sum of a session, with as many of the last endings as a history has.
func (s *dagSums) session(name string) *dagSum {
	sum := s.sum(name)
	if sum.ended.short() {
		sum.ended = recent{}
		add := func(dag string, p *part) {
			if p.session == name && !p.broken && !p.ended.IsZero() {
				sum.ended.add(dag, p)
			}
		}
		for dag, p := range s.parts {
			add(dag, &p)
		}
		for dag, p := range s.dormantParts(name) {
			if _, had := s.parts[dag]; !had {
				add(dag, p)
			}
		}
	}
	return sum
}

// dagsOf lists the DAGs whose specs name the session, by name.
func dagsOf(t *state.Tree, session schemas.Ref) []*state.Entry {
	var out []*state.Entry
	for _, r := range t.ReferrersOf(session, schemas.DAGKind.Name) {
		out = append(out, t.Entry(r))
	}
	return out
}

// brokenDAGs lists the DAGs whose files cannot be used by the session that they name, or belonged to.
func brokenDAGs(t *state.Tree) map[string][]*state.Entry {
	out := map[string][]*state.Entry{}
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if e.Broken() {
			session := SessionOfBroken(e)
			out[session] = append(out[session], e)
		}
	}
	return out
}

// SessionOfBroken is the session that a broken DAG names, or belonged to before; "" where neither is known.
func SessionOfBroken(dag *state.Entry) string {
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

// hasDAGs reports whether a session has DAGs.
func hasDAGs(t *state.Tree, session *state.Entry) bool {
	return len(t.ReferrersOf(session.Ref, schemas.DAGKind.Name)) > 0
}
