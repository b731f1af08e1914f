package dags

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Of the DAGs of a concurrency group one works: the one that wants to for the longest time. The others wait for it, or are cancelled
// by a later one. The place of each is in its status, so that all processes and clones that see the same statuses decide the same.

// member is a DAG of a group that works or wants to.
type member struct {
	dag     string
	since   schemas.Time
	new     bool // it has no place yet: all others are before it
	begun   bool
	cancels bool
}

// before reports whether the others of a group wait for m rather than for o: one that has begun keeps its place. Two clones may learn
// of each other's DAGs when one has.
func (m member) before(o member) bool {
	if m.begun != o.begun {
		return m.begun
	}
	return m.compare(o) < 0
}

func (m member) compare(o member) int {
	if o.new && !m.new { // only the DAG that is decided can be new
		return -1
	}
	return cmp.Or(m.since.Compare(o.since.Time), strings.Compare(m.dag, o.dag))
}

// placeInGroup says what a member of a group does: it waits for another one, it is cancelled by another one, or, if both are empty, it
// works.
func placeInGroup(me member, others []member) (waitsFor, cancelledBy string) {
	var first, last *member
	for i := range others {
		switch o := &others[i]; {
		case o.compare(me) > 0 && o.cancels:
			if last == nil || o.compare(*last) > 0 {
				last = o
			}
		case o.before(me) && (first == nil || o.before(*first)):
			first = o
		}
	}
	if last != nil {
		return "", last.dag
	}
	if first != nil {
		return first.dag, ""
	}
	return "", ""
}

// groups are the DAGs that have not ended, are claimed, or wait for a schedule, by group and name, of the tree that was looked at last.
type groups struct {
	tree    *state.Tree
	of      map[string]string // the group of each
	members map[string]map[string]*state.Entry
}

// groupsOf returns the groups of a tree, the world's or the one that follows from the round.
func groupsOf(w *settle.World, t *state.Tree) *groups {
	g := settle.Shared(w.OfRun, func() *groups { return new(groups) })
	g.follow(t)
	return g
}

func (g *groups) follow(t *state.Tree) {
	if g.tree == nil || !t.SameBase(g.tree) {
		g.of, g.members = map[string]string{}, map[string]map[string]*state.Entry{}
		for _, e := range t.Active(schemas.DAGKind.Name) {
			if e.HasStatus() && (e.Brief().FinishedAt.IsZero() || len(e.Claims) > 0 || hasTimes(e)) {
				g.put(e.Name, e)
			}
		}
	} else {
		for was, is := range t.Since(g.tree, schemas.DAGKind.Name) {
			if is == nil {
				g.put(was.Name, nil)
			} else {
				g.put(is.Name, is)
			}
		}
	}
	g.tree = t
}

// put replaces the entry of a DAG.
func (g *groups) put(name string, e *state.Entry) {
	if was, ok := g.of[name]; ok {
		delete(g.members[was], name)
		delete(g.of, name)
	}
	if e == nil || e.Gone() {
		return
	}
	if st, ok := e.Status().(*schemas.DAGStatus); ok && st.Group != nil && (!over(st) || hasClaims(e) || hasTimes(e)) {
		group := st.Group.Name
		if g.members[group] == nil {
			g.members[group] = map[string]*state.Entry{}
		}
		g.of[name], g.members[group][name] = group, e
	}
}

// hasTimes reports whether a DAG has a schedule: a time that comes while another one of its group works is due when that has ended.
func hasTimes(e *state.Entry) bool {
	spec := state.SpecOf[*schemas.DAGSpec](e)
	return spec != nil && len(spec.Schedule) > 0
}

// others are the members of a group besides one DAG.
func (g *groups) others(group, dag string) (out []member) {
	for name, e := range g.members[group] {
		if st, ok := e.Status().(*schemas.DAGStatus); ok && name != dag && !st.Group.Since.IsZero() {
			out = append(out, member{name, st.Group.Since, false, !st.StartedAt.IsZero(), st.Group.Cancels && !over(st)})
		}
	}
	return out
}

// joinGroup finds the DAG's place in its group.
func (f *fold) joinGroup() {
	c := f.p.Spec.Concurrency
	if c == nil {
		return
	}
	f.group = &schemas.GroupStatus{Name: c.Group, Since: schemas.NewTime(f.Now), Cancels: c.CancelInProgress}
	has := false // a place
	if old := f.old.Group; old != nil && old.Name == c.Group {
		f.group.CancelledBy = old.CancelledBy
		if has = !old.Since.IsZero(); has {
			f.group.Since = old.Since
		}
	}
	me := member{f.Name, f.group.Since, !has, !f.old.StartedAt.IsZero() && !over(f.old), c.CancelInProgress}
	by := ""
	if f.group.WaitsFor, by = placeInGroup(me, groupsOf(f.World, f.Tree).others(c.Group, f.Name)); by != "" && !over(f.old) {
		f.group.CancelledBy = by
	} else {
		by = ""
	}
	f.cancels = by
}

// exclusive is the group of which no other DAG may work in any clone while a node of this one runs; "" for none. One that cancels the
// others does not wait for them.
func (f *fold) exclusive() string {
	if c := f.p.Spec.Concurrency; c != nil && !c.CancelInProgress {
		return c.Group
	}
	return ""
}

// cancelMessage says who cancelled node i. What was said stays, also when the group forgets who it was.
func (f *fold) cancelMessage(i int32) string {
	if was := f.was[i]; was.State == schemas.NodeCancelled && was.Reason == settle.ReasonCancelledByAction {
		return was.Message
	}
	if f.group != nil && f.group.CancelledBy != "" {
		return "dag/" + f.group.CancelledBy + " of its concurrency group cancelled it; retry runs it again"
	}
	return "an action cancelled it; retry runs it again"
}

// groupGate keeps the DAG from starting anything while it waits for another one of its group.
func (f *fold) groupGate() {
	if f.group != nil && f.group.WaitsFor != "" && f.gate.Open {
		f.gate.Open, f.gate.Reason = false, settle.ReasonWaitsForGroup
		f.gate.Message = "waits for dag/" + f.group.WaitsFor + ", which works in the concurrency group " + f.group.Name
	}
}

// hasClaims reports whether a node of a DAG is claimed, so that its program runs, or may be about to start.
func hasClaims(e *state.Entry) bool {
	return slices.ContainsFunc(e.Claims, func(c state.Claim) bool { return c.Node != schemas.OnFailure && c.Node != schemas.OnSuccess })
}

// leaveGroup gives the place up where the DAG does not work: nothing of it is claimed, and it has ended, or has not begun and waits for
// something else.
func (f *fold) leaveGroup(st *schemas.DAGStatus) {
	g := f.group
	if g == nil {
		return
	}
	waits := f.timed != nil && f.timed.Waits || !f.gate.Open && f.gate.Reason != settle.ReasonWaitsForGroup
	if (over(st) || waits && st.StartedAt.IsZero()) && !hasClaims(f.Entry) {
		g.Since, g.WaitsFor = schemas.Time{}, ""
	}
	if st.Phase != schemas.DAGCancelled && f.cancels == "" {
		g.CancelledBy = ""
	}
	st.Group = g
}

// addGroup adds the DAGs of a group that have not ended to a round, except one.
func addGroup(r *settle.Round, st *schemas.DAGStatus, dag string) {
	if st == nil || st.Group == nil {
		return
	}
	for name := range groupsOf(r.World, r.Tree()).members[st.Group.Name] {
		if name != dag {
			r.AddWithReaders(schemas.DAGKind.Ref(name))
		}
	}
}

// addGroups adds, before a round, the DAGs whose place depends on those that are decided.
func addGroups(r *settle.Round) {
	for e := range r.World.Decided(schemas.DAGKind.Name) {
		st, _ := e.Status().(*schemas.DAGStatus)
		addGroup(r, st, e.Name)
	}
}

// addChangedGroups adds, after a round, the DAGs whose place depends on those that changed.
func addChangedGroups(r *settle.Round) {
	r.EachChanged(schemas.DAGKind.Name, func(was, is *state.Entry) {
		for _, e := range []*state.Entry{was, is} {
			if e != nil {
				st, _ := e.Status().(*schemas.DAGStatus)
				addGroup(r, st, is.Name)
			}
		}
	})
}

// inGroup describes the place of a DAG in its group; "" without one.
func inGroup(s *schemas.DAGStatus) string {
	switch g := s.Group; {
	case g == nil:
		return ""
	case g.WaitsFor != "":
		return g.Name + ": waits for dag/" + g.WaitsFor
	case g.CancelledBy != "":
		return g.Name + ": cancelled by dag/" + g.CancelledBy
	case g.Since.IsZero():
		return g.Name
	default:
		return g.Name + ": works"
	}
}
