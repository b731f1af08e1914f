// Package controllers decides. A controller is a pure function of one object, the tree and the time. It returns the object's
// status, the effects that it wants, and when it must be called again. It performs nothing, returns no error, reads no clock and
// starts no goroutine: a spec that can never work is Stalled in its status, a failed effect is a record in the tree, and back-off
// is computed from recorded attempts.
//
// Out.Effects lists everything that should be running or start running now, including what already runs. The loop cancels running
// effects that are not in the list, and starts the others when [Admit] finds a slot for them. The result of an effect is a
// [schemas.Run] in the tree.
//
// [Settle] decides a whole tree, or the objects that a few changes affect, until nothing changes any more. It knows kinds only
// through their rows ([Kinds], kinds.go). Decisions over one tree share values through a [World]: session_slot.go assigns slots to
// sessions, clarification_index.go finds requests and replies. Each value is computed once, on first use, so the order of the
// kinds has no effect.
//
// The decision about a DAG is in dag.go; dag_*.go have its parts: the plan that the spec determines, the keys of nodes (decision
// 1), the binding of the plan to its session and agents, the states of nodes, actions, outputs, the time limit, questions of
// nodes, and the tasks. The protocol of clarifications is package clarify; clarification*.go find its inputs in the tree. derive.go
// finds the specs that follow from records, and derive_memory.go the observations among them.
//
// A status depends on specs, records and the former status only, so the number of turns in which records arrived has no effect:
// times come from records, and the clock is read only if a condition changes and no record has the time.
package controllers
