package controllers

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestResting leaves out what was not decided since its spec changed.
func TestResting(t *testing.T) {
	s := newSim(t)
	ref := schemas.SessionKind.Ref("still")
	for i, title := range []string{"One", "Two"} {
		s.put("specs/sessions/still.yaml", head("Session", "still")+"spec: {title: "+title+", phase: Paused}\n")
		if slices.Contains(Resting(s.tree()), ref) && i > 0 {
			t.Errorf("%s rests before it was decided", ref)
		}
		s.settle()
		if !slices.Contains(Resting(s.tree()), ref) {
			t.Errorf("%s does not rest", ref)
		}
	}
}
