// Package observations decides Observations, and makes the events about the memory.
package observations

import (
	"strconv"
	"time"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// decide reports an observation that cannot be read, or that was edited after the memory had imported it
// (decision 5).
func decide(in settle.In) settle.Out {
	switch {
	case in.Gone():
		return settle.Out{}
	case in.Broken():
		return settle.DecideRecord[schemas.ObservationStatus](in)
	}
	accepted := acceptedDigest(in)
	if accepted == "" || accepted == in.Object.Digest {
		return settle.Out{}
	}
	st := &schemas.ObservationStatus{Common: settle.Common(in.Status())}
	settle.JudgeImmutable("", "an observation cannot be changed once the memory has taken it in, and what it said before stands; put "+
		"the text back, and write a new one, which may supersede it").Settle(&st.Common, accepted, in.Now)
	return settle.Out{Status: st}
}

// acceptedDigest is the digest of the spec that the memory imported; "" if unknown. If the memory was not read, the
// status has the digest of an observation that was edited.
func acceptedDigest(in settle.In) string {
	if in.Accepted != "" || !in.HasStatus() {
		return in.Accepted
	}
	base := in.Status().Base()
	if c := base.Condition(schemas.Stalled); c != nil && c.Reason == settle.ReasonImmutable {
		return base.ObservedDigest
	}
	return ""
}

// Kind is the row of kind Observation.
var Kind = settle.Kind{Kind: schemas.ObservationKind, Decide: decide, Columns: columns,
	Origin: origin, Rests: rests, Retired: retired}

var columns = []settle.Column{
	readiness.Ready,
	readiness.OfSpec("AGENT", func(s *schemas.ObservationSpec) string { return s.Agent }),
	readiness.OfSpec("ENTRIES", func(s *schemas.ObservationSpec) string { return strconv.Itoa(len(s.Entries)) }),
	{Head: "AGE", Time: func(e *state.Entry) schemas.Time {
		if s := schemas.SpecAs[*schemas.ObservationSpec](e.Object); s != nil {
			return s.Timestamp
		}
		return schemas.Time{}
	}},
}

// origin: the memory, for an observation that it has as it is.
func origin(*state.Tree) func(*state.Entry) settle.Origin {
	return func(e *state.Entry) settle.Origin {
		if e.Accepted == "" || e.Accepted == e.Object.Digest {
			return settle.OriginMemory
		}
		return settle.OriginUser
	}
}

// rests: an observation that the memory has as it is.
func rests(*state.Tree) func(*state.Entry) bool {
	return func(e *state.Entry) bool {
		return !e.HasStatus() && (e.Accepted == "" || e.Accepted == e.Object.Digest)
	}
}

// retired is when an observation was made that the memory holds.
func retired(*state.Tree) func(*state.Entry) time.Time {
	return func(e *state.Entry) time.Time {
		if e.HasStatus() || e.Accepted != "" && e.Accepted != e.Object.Digest {
			return time.Time{}
		}
		at, err := time.Parse(time.RFC3339, schemas.TextIn(e.Object.Canonical(), "timestamp"))
		if err != nil {
			return time.Time{} // one that cannot be read so is not due
		}
		return at
	}
}
