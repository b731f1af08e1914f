package loop

import (
	"testing"
	"time"
)

func TestGatherTime(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{
		0: gatherFor, gatherFor / 10: gatherFor, gatherFor / 2: 5 * gatherFor / 2, time.Second: maxGather * gatherFor,
	} {
		s := &run{turnCost: cost}
		if got := s.gatherTime(); got != want {
			t.Errorf("after a decision of %s results are gathered for %s, not %s", cost, got, want)
		}
	}
}
