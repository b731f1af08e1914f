package settle

import (
	"reflect"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
)

// Kind is one row of the table of kinds: the schema, the decision, and all else that other code asks about a kind.
type Kind struct {
	schemas.Kind
	// Decide is nil for kinds that have nothing to decide (Settings).
	Decide func(In) Out
	// Columns are those of its table, after the name. nil: READY and PHASE.
	Columns []Column
	// Details are shown of one object, each only where it has something to say.
	Details []Column

	// DependsOn names the kinds of the objects whose change calls for another decision about those that refer to them.
	DependsOn []string
	// Affects adds what else is to be decided with an object, beyond what depends on it. nil: nothing.
	Affects func(*Change)
	// Sources are names, in place of a kind, of files that are not objects; Affects is also called when one of them changes.
	Sources []string
	// Before and After add, before and after a round in which not everything is decided, what the round calls for. nil: nothing.
	Before, After func(*Round)
	// OwnRound is set if each object of this kind may call for one more round.
	OwnRound bool
	// Shared is set if decisions about other objects use the decision about this one: then it is made once a round.
	Shared bool
	// KeepSpec keeps the decoded spec of an object that has nothing to do: others read it again and again.
	KeepSpec bool
	// Origin returns what finds out how the spec files of the tree came about. It is asked about sound objects only. nil, or such a function: users write them.
	Origin func(*state.Tree) func(*state.Entry) Origin
	// Retired returns what finds out when a spec of the tree had its effect, zero while it has not: after the time that the
	// settings say it is moved to the archive. It is asked about sound objects only, and decodes few specs: a tree may have tens of
	// thousands. It depends on files alone, so all clones agree. nil: never.
	Retired func(*state.Tree) func(*state.Entry) time.Time
	// Rests returns what finds out whether an object wants nothing until one of its files, an object that it refers to or one that refers
	// to it changes: a run does not load it before. It is asked about sound objects without work under way and without a time at which
	// they are decided again. nil: none rests.
	Rests func(*state.Tree) func(*state.Entry) bool
	// RestOfUsers is set if users write the files of all objects that rest, as Origin says.
	RestOfUsers bool
	// Performs is set if decisions about the objects have effects.
	Performs bool
	// Foretold is set if the status follows from specs and records alone: while a run is under way, its file may be behind the
	// journal, and controllers.Current returns what it will be.
	Foretold bool
	// PartOf returns the DAG, and the node of it, that an effect of the object at a node is for: a run of only that DAG performs
	// it. nil: no run of a single DAG performs effects of this kind.
	PartOf func(e *state.Entry, node string) (dag, of string)
	// Steps lists what a run would do for an object with the decision out, besides its status. nil: the effects that no one has
	// claimed.
	Steps func(e *state.Entry, out Out) []Step
	// Tries bounds the runs of a step at a node. nil: one run without a limit.
	Tries func(e *state.Entry, node string) Tries
	// Events lists what happened within an object, besides changes of its phase and conditions. An event without a node replaces
	// that of the phase, unless this is a warning. before may be nil. nil: nothing.
	Events func(before, after *state.Entry) []Event
	// Why explains, a line each, what an object that is not ready waits for, beyond its condition. nil: nothing.
	Why func(*state.Entry, *state.Tree) []string
	// Note says in a few words how far an object is, by its status, for the messages of commits; "" and nil: nothing.
	Note func(schemas.Status) string
	// Mirror selects the part of the objects that GitHub shows. nil: nothing.
	Mirror *mirror.Projector
	// Index makes the part of the search index for the objects. nil: search does not find them.
	Index *project.Projector
	// Same compares two statuses, neither of them nil. nil: reflect.DeepEqual.
	Same func(a, b schemas.Status) bool
}

// SameStatus compares two statuses of this kind.
func (k *Kind) SameStatus(a, b schemas.Status) bool {
	switch {
	case a == nil || b == nil:
		return a == nil && b == nil
	case k.Same != nil:
		return k.Same(a, b)
	}
	return reflect.DeepEqual(a, b)
}

// Column is one column of the table of a kind, or one line about an object.
type Column struct {
	Head string
	Text func(*state.Entry) string       // "" where there is nothing to say; nil: the column shows a time
	Time func(*state.Entry) schemas.Time // shown by how long ago it was
}

// Table is a table of kinds.
type Table []Kind

// Schemas returns the schema half of the table, for decoders. Each kind carries its row.
func (t Table) Schemas() schemas.Kinds {
	kinds := make(schemas.Kinds, len(t))
	for i := range t {
		kinds[i] = t[i].Kind
		kinds[i].Row = &t[i]
	}
	return kinds
}

// TableOf is the table that a tree was read with. Kinds that carry no row are not in it.
func TableOf(t *state.Tree) Table {
	kinds := t.Schemas()
	table := make(Table, 0, len(kinds))
	for i := range kinds {
		if row, ok := kinds[i].Row.(*Kind); ok {
			table = append(table, *row)
		}
	}
	return table
}

// RowOf is the row of a kind in the table of a tree, without making that; nil if it has none.
func RowOf(t *state.Tree, kind string) *Kind {
	kinds := t.Schemas()
	for i := range kinds {
		if kinds[i].Name == kind {
			row, _ := kinds[i].Row.(*Kind)
			return row
		}
	}
	return nil
}

// Row is the row of a kind; nil if the table has none.
func (t Table) Row(kind string) *Kind {
	for i := range t {
		if t[i].Name == kind {
			return &t[i]
		}
	}
	return nil
}

// Details are those of e's kind.
func (t Table) Details(e *state.Entry) []Column {
	if k := t.Row(e.Kind); k != nil {
		return k.Details
	}
	return nil
}

// responsible returns the row of a kind, or the row that lists it among its sources, or nil.
func (t Table) responsible(kind string) *Kind {
	for i := range t {
		if t[i].Name == kind || slices.Contains(t[i].Sources, kind) {
			return &t[i]
		}
	}
	return nil
}

// Verbs of a step.
const (
	StepRestore = "restore" // missing outputs of a success would be written back
	StepRun     = "run"     // a node would run, now or after others succeeded
	StepSkip    = "skip"    // a node would be skipped
	StepCancel  = "cancel"  // a node would be cancelled, or its run ended
	StepWrite   = "write"   // the status would change
	StepRemove  = "remove"  // the status and the records would go
)

// Step is one thing that a run would do, and why.
type Step struct {
	Ref  schemas.Ref
	Node string
	Verb string
	Why  string
}

// Tries describes the runs that one effect takes at most.
type Tries struct {
	Most  int    // number of runs
	Agent string // that is run; "" for a command
	// Limit ends each run; nil: the limit of the agent, if it has one. Whole ends it in any case, unless it is nil.
	Limit, Whole *schemas.Duration
}
