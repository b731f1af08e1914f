package main

import (
	"slices"
	"testing"
	"time"
)

func TestStepsTellOfWhatTakesLong(t *testing.T) {
	now := time.Unix(0, 0)
	var said []string
	s := newSteps(func(text string) { said = append(said, text) }, func() time.Time { return now })
	for i := range 1000 { // half a second
		now = now.Add(time.Millisecond / 2)
		s.tell("decide", i, 1000)
	}
	for i := range 2500 { // ten seconds
		now = now.Add(4 * time.Millisecond)
		s.tell("write", i, 2500)
	}
	now = now.Add(time.Hour)
	s.tell("decide", 0, 10)
	want := []string{"write: 750 of 2,500 done, about 7s left", "write: 1,500 of 2,500 done, about 4s left",
		"write: 2,250 of 2,500 done, about 1s left"}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}
