package settle

import (
	"iter"
	"reflect"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// World is what decisions over one tree in one round share. It belongs to one goroutine.
type World struct {
	Tree *state.Tree
	Now  time.Time
	// OfRound are values that hold for the round, OfTree those that follow from the tree alone, and OfRun those that are
	// carried from tree to tree: they speed decisions up and never change them. See [Shared].
	OfRound       Values
	OfTree, OfRun *Values

	table Table
	only  *Selection
	asks  func(owner schemas.Ref, node string) bool // nil until it is needed
	// work are the objects that are decided; nil means everything. The statuses of other objects are taken from the tree.
	work map[schemas.Ref]bool
	outs map[schemas.Ref]Out
	// notCommitted is Decider.NotCommitted, ailing Decider.Ailing, tool Decider.Tool.
	notCommitted map[NodeRef]string
	ailing       func(agent string) (why string, known bool)
	tool         func(name string) (is Tool, known bool)

	identify func(action schemas.Ref) (Identity, bool) // Decider.Identify

	tell func() // called at every decision; may be nil
}

// Values holds at most one value of each type. The zero Values is empty.
type Values struct{ byType map[reflect.Type]any }

// Shared returns the value of type T in v. If it does not exist yet, make makes it.
func Shared[T any](v *Values, make func() *T) *T {
	key := reflect.TypeFor[T]()
	if is, ok := v.byType[key].(*T); ok {
		return is
	}
	is := make()
	if v.byType == nil {
		v.byType = map[reflect.Type]any{}
	}
	v.byType[key] = is
	return is
}

// NewWorld returns the world of a round over a tree that decides the objects of work; nil: everything.
func NewWorld(t *state.Tree, now time.Time, work map[schemas.Ref]bool) *World {
	return &World{table: TableOf(t), Tree: t, Now: now, work: work, outs: make(map[schemas.Ref]Out, len(work)),
		OfTree: new(Values), OfRun: new(Values)}
}

// Table is the table of kinds by which the world decides.
func (w *World) Table() Table { return w.table }

// Everything reports whether everything is decided in this round.
func (w *World) Everything() bool { return w.work == nil }

// Decides reports whether an object is decided in this round.
func (w *World) Decides(ref schemas.Ref) bool { return w.work == nil || w.work[ref] }

// Decided yields the objects of a kind that are decided in a round that does not decide everything, in no order.
func (w *World) Decided(kind string) iter.Seq[*state.Entry] {
	return func(yield func(*state.Entry) bool) {
		for ref := range w.work {
			if e := w.Tree.Entry(ref); ref.Kind == kind && e != nil && !yield(e) {
				return
			}
		}
	}
}

// Asked reports whether the run is asked for the outputs of a node.
func (w *World) Asked(owner schemas.Ref, node string) bool {
	if w.only == nil || len(w.only.Nodes) == 0 {
		return false
	}
	if w.asks == nil {
		w.asks = w.only.in(w.table, w.Tree)
	}
	return w.asks(owner, node)
}

// NotCommitted says why the workspace of a node's agent cannot be made yet; "" if nothing is known to keep it. known is false
// if no one has asked git.
func (w *World) NotCommitted(owner schemas.Ref, node string) (why string, known bool) {
	return w.notCommitted[NodeRef{owner, node}], w.notCommitted != nil
}

// Ailing says why an agent does no work, as a check found; "" if nothing is known against it. known is false if it was not checked.
func (w *World) Ailing(agent string) (why string, known bool) {
	if w.ailing == nil {
		return "", false
	}
	return w.ailing(agent)
}

// Tool says which version a program has here; known is false if it was not asked.
func (w *World) Tool(name string) (is Tool, known bool) {
	if w.tool == nil {
		return Tool{}, false
	}
	return w.tool(name)
}

// AsksTools reports whether the versions of tools are asked for before something is done with these decisions.
func (w *World) AsksTools() bool { return w.tool != nil }

// ChecksAgents reports whether agents are checked before something is done with these decisions.
func (w *World) ChecksAgents() bool { return w.ailing != nil }

// Identity is who wrote an Action, as a commit or a comment proves it.
type Identity struct {
	Who   string // as Action.spec.by
	Proof string // a Proof constant; "" if nothing proves it
	Why   string // it is not proved
}

// Identity says who wrote an action; known is false if it was not looked up.
func (w *World) Identity(action schemas.Ref) (id Identity, known bool) {
	if w.identify == nil {
		return Identity{}, false
	}
	return w.identify(action)
}

// decide returns the decision about e by the row of the table, as it is kept.
func (w *World) decide(e *state.Entry) Out { return w.decideAs(e, w.table.Row(e.Kind)) }

// decideAs returns the decision about e, an object of kind k, as it is kept: without the status if that stays as it is. A decision
// that is shared is made once.
func (w *World) decideAs(e *state.Entry, k *Kind) Out {
	if out, ok := w.outs[e.Ref]; ok {
		return out
	}
	if w.tell != nil {
		w.tell()
	}
	out := k.Decide(In{Entry: e, Tree: w.Tree, World: w, Now: w.Now})
	out = out.kept(k.SameStatus(e.Status(), out.Status))
	if !k.KeepSpec {
		Release(e, out)
	}
	if k.Shared {
		w.outs[e.Ref] = out
	}
	return out
}

// Status returns the status that an object of a shared kind has now: as decided if it is decided in this round, else as in the
// tree. It may be nil. Of two kinds, only one may ask for the status of the other.
func (w *World) Status(e *state.Entry) schemas.Status {
	if w.Decides(e.Ref) {
		if out := w.decide(e); !out.unchanged {
			return out.Status
		}
	}
	return e.Status()
}

// Brief is Status in brief, or nil. Blocked is not set for an object whose status is changed now. It decodes no status that stays
// as it is.
func (w *World) Brief(e *state.Entry) *schemas.Brief {
	if w.Decides(e.Ref) {
		switch out := w.decide(e); {
		case out.unchanged:
		case out.Status == nil:
			return nil
		default:
			b := schemas.BriefWithoutNodes(out.Status)
			return &b
		}
	}
	if !e.HasStatus() {
		return nil
	}
	return e.Brief()
}

// StatusAs is [World.Status] for an entry whose status is of type S: empty, and never nil, if it has none.
func StatusAs[S any, P interface {
	*S
	schemas.Status
}](w *World, e *state.Entry) P {
	if st, ok := w.Status(e).(P); ok {
		return st
	}
	return new(S)
}
