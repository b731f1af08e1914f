package controllers

import (
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

func putObservation(s *sim, content string) {
	s.put("specs/observations/seen.yaml", head("Observation", "seen")+
		"spec: {agent: a, timestamp: 2026-02-27T10:00:00Z, entries: [{category: decision, content: "+content+"}]}\n")
}

// An observation has no status while nothing is wrong with it. Edited after it was taken in, it is stalled until the
// text is put back; who does not look into the memory leaves it so.
func TestObservationIsImmutable(t *testing.T) {
	s := newSim(t)
	ref := schemas.ObservationKind.Ref("seen")
	stalled := func() string {
		t.Helper()
		s.settle()
		st := s.entries[ref].Status()
		if st == nil {
			return ""
		}
		return st.Base().ObservedDigest + " " + st.Base().Condition(schemas.Stalled).Reason
	}
	putObservation(s, "First.")
	first := s.entries[ref].Object.Digest
	if got := stalled(); got != "" {
		t.Errorf("new: %s", got)
	}
	s.entry(ref).Accepted = first
	if got := stalled(); got != "" {
		t.Errorf("taken in: %s", got)
	}
	putObservation(s, "Second.")
	want := first + " " + settle.ReasonImmutable
	if got := stalled(); got != want {
		t.Errorf("edited: %q, want %q", got, want)
	}
	s.entry(ref).Accepted = ""
	if got := stalled(); got != want {
		t.Errorf("where nobody looks: %q, want %q", got, want)
	}
	s.put("specs/observations/seen.yaml", head("Observation", "seen")+"spec: {}\n")
	if got := stalled(); got != first+" "+settle.ReasonInvalidSpec {
		t.Errorf("broken: %q", got)
	}
	putObservation(s, "First.")
	if got := stalled(); got != "" {
		t.Errorf("put back: %s", got)
	}
	s.put("specs/observations/seen.yaml", "")
	s.settle()
	if is := s.last.StatusOf(ref); is != nil {
		t.Errorf("gone: %+v", is)
	}
}
