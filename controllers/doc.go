// Package controllers decides. A controller is a pure function of one object, the tree it stands in and the time; it
// says what the object's status should be, which effects it wants, and when it must look again. It does nothing, has
// no error result, reads no clock and starts no goroutine: a spec that can never work is Stalled in its status, an
// effect that failed is a record in the tree, and back-off is arithmetic over recorded attempts.
//
// Effects are wanted, not ordered: Out.Effects lists everything that should be running or start running now, also what
// already runs. What runs and is no longer wanted gets cancelled by the loop; what is wanted and does not run is
// started when [Admit] finds a place for it. An effect's result comes back as a [schemas.Run] in the tree.
//
// [Settle] decides a whole tree, or what a few changes affect, until nothing changes any more. The table of kinds is
// [Kinds] in kinds.go. One file per kind holds its decision; a DAG's is spread over dag_*.go:
//
//	dag_plan.go     what the spec determines: positions, order, conditions; once per object
//	dag_keys.go     the keys that say whether a node has to run (decision 1)
//	dag_bind.go     the plan among its session and agents: keys, limits, tasks
//	dag_node.go     the state of one node
//	dag_actions.go  what actions put in force
//	dag_phase.go    the phase of the whole
//	dag_task.go     the effects
//	dag_ask.go      what a node asked, and whether it waits for the answer
//
// The life of a question is decided by package clarify. What bears on it, and whom it bears on, is found here:
//
//	clarification.go      the decision about a request: conditions, history, the run of the agent that is asked
//	matter.go             what bears on it: scope, limits, replies, the ledger, other questions
//	matter_number.go      its number
//	matter_task.go        what the node that asks did since
//	matter_effect.go      what the agent that is asked is told
//	matter_index.go       requests and replies by what they are called
//	settle_matters.go     what a change of any of these affects
//	derive.go             requests and ledgers that follow from what was decided: [Derive], [LedgersOf]
//
// What is to be remembered is found in derive_memory.go, as observations: what runs taught, and what clarifications came
// to. observation.go tells of those that were edited. The memory itself is package memory's.
//
// What a decision depends on beside its object goes through a [World]: places of sessions (seat.go) and decisions that
// other decisions read (a session its DAGs, an action its target). Each is made once, when first asked for, so the
// order of the kinds does not matter.
//
// Everything in a status comes from specs, records and the status before, so it does not matter in how many turns
// records came in: history and times are those of the records, and the clock is read only where a condition or phase
// changes and no record says when.
package controllers
