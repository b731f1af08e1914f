// Package controllers decides. A controller is a pure function of one object, the tree it stands in and the time; it
// says what the object's status should be, which effects it wants, and when it must look again. It does nothing, has
// no error result, reads no clock and starts no goroutine: a spec that can never work is Stalled in its status, an
// effect that failed is a record in the tree, and back-off is arithmetic over recorded attempts.
//
// Effects are wanted, not ordered: Out.Effects lists everything that should be running or start running now, also what
// already runs. What runs and is no longer wanted gets cancelled by the loop; what is wanted and does not run is
// started when [Admit] finds a place for it. An effect's result comes back as a [schemas.Run] in the tree.
//
// The table of kinds is [Kinds] in kinds.go. One file per kind holds its decision.
package controllers
