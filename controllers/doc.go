// Package controllers is the table of kinds, and what is asked about the objects of all kinds: what a run would do and what that
// costs at most, how files came about and when they go to the archive, and the statuses that follow from a journal.
//
// A controller is a pure function of one object, the tree and the time. It returns the object's status, the effects that it
// wants, and when it must be called again. It performs nothing, returns no error, reads no clock and starts no goroutine: a spec
// that can never work is Stalled in its status, a failed effect is a record in the tree, and back-off is computed from recorded
// attempts.
//
// Package settle decides a tree until nothing changes any more. It knows kinds only through their rows. Each kind has a package
// with its row: sessions, agents (also workflows), dags, clarifications (also replies), observations and actions. A package may
// import those after it in this order, and never the reverse: dags, clarifications, agents, sessions, actions; readiness, keys;
// settle. Otherwise they meet in the tree, through statuses and records. Package derive finds the specs that follow from
// records; admission says which effects may start; nodes, ledgers, threads and work are views of a decided tree.
//
// A status depends on specs, records and the former status only, so the number of turns in which records arrived has no effect:
// times come from records, and the clock is read only if a condition changes and no record has the time.
package controllers
