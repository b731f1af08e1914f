package settle

import (
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Decision is the result of deciding over a tree.
type Decision struct {
	// Tree has the new statuses.
	Tree *state.Tree
	// Outs holds the decisions, for the objects that were decided. A status that stays as it was is only in Tree.
	Outs map[schemas.Ref]Out
	// Changed are the objects whose status differs from the one in the tree that was given, sorted.
	Changed []schemas.Ref
	// Removed are the entries, as given, of objects that had a status and are to have none any more: their spec is
	// gone, or (replies, observations) nothing is wrong with them now. Sorted. Tree need not know them.
	Removed []*state.Entry
}

// StatusOf returns the status that an object has now; nil for none.
func (d *Decision) StatusOf(ref schemas.Ref) schemas.Status {
	if e := d.Tree.Entry(ref); e != nil {
		return e.Status()
	}
	return nil
}

// Decider decides over the trees of a run, one after the other. It keeps sums from one tree for the next and updates
// only what differs; its decisions never depend on that. Its zero value decides over any tree. It belongs to one
// goroutine.
type Decider struct {
	// Only is what the run was asked for; nil: everything. Where nodes were asked for, the missing outputs of these nodes and
	// of all that they need are brought back.
	Only *Selection
	// NotCommitted says of nodes why the workspaces of their agents cannot be made yet. nil: nobody asked.
	NotCommitted map[NodeRef]string
	// Ailing says why an agent that was checked does no work now; "" for a healthy one. known is false if it was not checked. nil: none
	// is known.
	Ailing func(agent string) (why string, known bool)

	// Tool says which version a program has here. known is false if it was not asked. nil: none is known.
	Tool func(name string) (is Tool, known bool)

	// Identify says who wrote an action, where that is known. nil: it was not looked up.
	Identify func(action schemas.Ref) (id Identity, known bool)

	run Values // see World.OfRun
}

// OfRun are the values that the decider carries from tree to tree.
func (d *Decider) OfRun() *Values { return &d.run }

// Tree is [Decider.Settle] for a single tree.
func Tree(t *state.Tree, now time.Time, dirty []schemas.Ref, told ...func(done, total int)) Decision {
	return new(Decider).Settle(t, now, dirty, told...)
}

// Settle decides until nothing changes any more. dirty are the objects that changed since the last decision over this
// tree; what they affect is decided too. With nil everything is decided, which is what a change of the settings needs.
//
// One round decides every object once. Three things can make another round necessary. The slots of sessions
// depend on which sessions are completed, which is known after a round; a session is completed at most once in a Settle.
// A clarification that gets its number may have replies that call it by that; it gets one once. A node whose key moves
// leaves its question behind; keys depend on no question, so they move in the first round. The answer of an architect ends a plan change
// once. So the number of rounds is
// bounded by the number of sessions and a constant.
//
// told, if there is one, is called for every decision with the number of objects of the round, and of those decided.
func (d *Decider) Settle(t *state.Tree, now time.Time, dirty []schemas.Ref, told ...func(done, total int)) Decision {
	s := &settler{table: TableOf(t), now: now, only: d.Only, notCommitted: d.NotCommitted, ailing: d.Ailing, tool: d.Tool, identify: d.Identify, run: &d.run, given: t, tree: t, values: new(Values), changed: map[schemas.Ref]bool{},
		noted: map[string]bool{}, told: told}
	if dirty == nil {
		s.outs = make(map[schemas.Ref]Out, t.Len())
	} else {
		s.outs = make(map[schemas.Ref]Out, len(dirty))
		s.work = map[schemas.Ref]bool{}
		for _, ref := range dirty {
			Worklist{s}.AddChanged(ref)
		}
	}
	for range s.maxRounds() {
		if !s.round() {
			break
		}
	}
	made := Decision{Tree: s.tree, Outs: s.outs}
	for ref := range s.changed {
		made.Changed = append(made.Changed, ref)
	}
	slices.SortFunc(made.Changed, schemas.Ref.Compare)
	for _, ref := range made.Changed {
		if old := t.Entry(ref); made.StatusOf(ref) == nil && old != nil && old.HasStatus() {
			made.Removed = append(made.Removed, old)
		}
	}
	return made
}

// Doubtful lists the objects of a tree that a decision of everything may decide otherwise than the run did that settled the tree, if it differs
// from that by changed: what depends on more than files, such as git, versions of programs or checks of agents, is not ready or declares
// tools. Sessions follow from files. nil: all of them.
func Doubtful(t *state.Tree, changed []schemas.Ref) []schemas.Ref {
	if changed == nil {
		return nil
	}
	list := slices.Clone(changed)
	for _, k := range TableOf(t) {
		for _, e := range t.Active(k.Name) {
			if k.Name != schemas.SessionKind.Name && e.HasStatus() && e.Brief().Ready != schemas.True || e.Object != nil && e.Object.Mentions(schemas.MarkTools) {
				list = append(list, e.Ref)
			}
		}
	}
	return list
}

// extraRounds are those that every Settle may need: the first, one for new numbers and moved keys, one for replies that
// this round lets through, one for an answer to a plan change, and the last, in which nothing changes.
const extraRounds = 5

// maxRounds bounds the number of rounds: extraRounds, and one for each object of a kind with OwnRound.
func (s *settler) maxRounds() int {
	n := extraRounds
	for i := range s.table {
		if s.table[i].OwnRound {
			dormant, _ := s.tree.CountDormant(s.table[i].Name)
			n += len(s.tree.Active(s.table[i].Name)) + dormant
		}
	}
	return n
}

type settler struct {
	table Table
	now   time.Time
	only  *Selection
	run   *Values

	notCommitted map[NodeRef]string
	ailing       func(agent string) (why string, known bool)
	tool         func(name string) (is Tool, known bool)
	identify     func(action schemas.Ref) (Identity, bool)
	given        *state.Tree
	tree         *state.Tree
	work         map[schemas.Ref]bool // nil: everything
	outs         map[schemas.Ref]Out
	changed      map[schemas.Ref]bool
	noted        map[string]bool // see Worklist.Note
	told         []func(done, total int)
	values       *Values // of tree, see World.OfTree
}

// round decides once, puts the statuses into the tree, and reports whether another round is needed.
func (s *settler) round() bool {
	w := NewWorld(s.tree, s.now, s.work)
	w.table, w.only, w.OfTree, w.OfRun, w.notCommitted, w.ailing, w.tool, w.identify = s.table, s.only, s.values, s.run, s.notCommitted, s.ailing, s.tool, s.identify
	r := &Round{Worklist: Worklist{s}, World: w}
	for i := range s.table {
		if before := s.table[i].Before; before != nil && s.work != nil {
			before(r)
			w.work = s.work
		}
	}
	r.Changed = s.decide(w)
	if len(r.Changed) == 0 {
		return false
	}
	r.Was = s.tree
	s.tree, s.values = s.tree.With(r.Changed...), new(Values)
	s.work, s.noted = map[schemas.Ref]bool{}, map[string]bool{}
	for _, ref := range s.tree.Expanded() {
		r.AddChanged(ref)
	}
	for i := range s.table {
		if after := s.table[i].After; after != nil {
			after(r)
		}
	}
	return s.work == nil || len(s.work) > 0
}

// decide decides the objects of the worklist and returns the entries whose status changed.
func (s *settler) decide(w *World) []*state.Entry {
	var changed []*state.Entry
	done, total := 0, len(s.work)
	if s.work == nil {
		total = s.tree.Len()
	}
	w.tell = func() {
		for _, tell := range s.told {
			tell(min(done, total), total)
		}
		done++
	}
	for i := range s.table {
		k := &s.table[i]
		if k.Decide == nil {
			continue
		}
		for _, e := range s.pending(k.Name) {
			out := w.decideAs(e, k)
			s.outs[e.Ref] = out
			if out.unchanged {
				continue
			}
			next := *e
			next.SetStatus(out.Status)
			changed = append(changed, &next)
			if old := s.given.Entry(e.Ref); old != nil && k.SameStatus(old.Status(), out.Status) {
				delete(s.changed, e.Ref)
			} else {
				s.changed[e.Ref] = true
			}
		}
	}
	return changed
}

// pending lists the objects of a kind that must be decided, sorted by name.
func (s *settler) pending(kind string) []*state.Entry {
	if s.work == nil {
		return s.tree.Entries(kind)
	}
	var some []*state.Entry
	for ref := range s.work {
		if ref.Kind != kind {
			continue
		}
		if e := s.tree.Entry(ref); e != nil {
			some = append(some, e)
		}
	}
	slices.SortFunc(some, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
	return some
}
