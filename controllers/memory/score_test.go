package memory

import (
	"math"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// scoreAt is the score of an observation at a time.
func scoreAt(w Weights, now time.Time, o *schemas.Observation, overlap float64, stale bool) float64 {
	s := score(w, now.Sub(o.Timestamp.Time).Hours()/24, o.RecallCount, overlap)
	if stale {
		s *= w.Stale
	}
	return s
}

func defaultWeights() Weights {
	s := new(schemas.SettingsSpec)
	s.Default()
	return NewWeights(s.Memory.Weights)
}

// TestT6_RecencyOverStale: the formula of phase 3, value by value.
func TestT6_RecencyOverStale(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		days    float64
		recalls int
		overlap float64
		stale   bool
		want    float64
	}{
		{0, 0, 0, false, 0.4},
		{30, 0, 0, false, 0.2},
		{90, 0, 0, false, 0.1},
		{0.5, 0, 0, false, 0.4 / (1 + 0.5/30)},
		{-3, 0, 0, false, 0.4}, // a clock that goes ahead
		{30, 5, 0, false, 0.3},
		{30, 10, 0, false, 0.4},
		{30, 1000, 0, false, 0.4}, // saturates
		{30, 10, 0.5, false, 0.6},
		{0, 10, 1, false, 1},
		{0, 10, 1, true, 0.5},
	} {
		age := time.Duration(c.days * 24 * float64(time.Hour))
		o := &schemas.Observation{Timestamp: schemas.StampOfTime(now.Add(-age)), RecallCount: c.recalls}
		if got := scoreAt(defaultWeights(), now, o, c.overlap, c.stale); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %f", c, got)
		}
	}
	if w := NewWeights(schemas.RelevanceWeights{}); w != (Weights{}) {
		t.Error(w)
	}
	fresh, old := &schemas.Observation{Timestamp: schemas.StampOfTime(now)},
		&schemas.Observation{Timestamp: schemas.StampOfTime(now.AddDate(0, -6, 0))}
	if scoreAt(defaultWeights(), now, fresh, 0.2, false) <= scoreAt(defaultWeights(), now, old, 0.2, false) {
		t.Error("an old observation is more relevant than a new one")
	}
}
