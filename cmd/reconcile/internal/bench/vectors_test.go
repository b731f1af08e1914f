package main

import (
	"testing"
	"time"
)

func TestCurveIsInterpolated(t *testing.T) {
	curve := []point{{0.90, 100, 200}, {0.94, 100, 300}, {0.96, 400, 1200}}
	for _, c := range []struct {
		recall float64
		mean   time.Duration
		ok     bool
	}{{0.90, 100, true}, {0.5, 100, true}, {0.95, 200, true}, {0.96, 400, true}, {0.97, 0, false}} {
		p, ok := at(curve, c.recall)
		if ok != c.ok || p.mean < c.mean-1 || p.mean > c.mean+1 {
			t.Errorf("recall %g takes %d, %v; want %d, %v", c.recall, p.mean, ok, c.mean, c.ok)
		}
	}
	if p, _ := at(curve, 0.95); p.p99 < 599 || p.p99 > 601 {
		t.Errorf("the 99th percentile is %d, want 600", p.p99)
	}
}

func TestRowsOfVectorIDs(t *testing.T) {
	x := &vectorIndex{}
	for _, row := range []int{0, 1, 99_999, 1 << 31} {
		if got := x.row(vectorID(row)); got != uint32(row) {
			t.Errorf("row %d becomes %d", row, got)
		}
	}
}
