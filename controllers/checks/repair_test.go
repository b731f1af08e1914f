package checks

import (
	"testing"
	"time"
)

func TestJudgeRepair(t *testing.T) {
	x := Expected{Found: []int{1}, Timeout: time.Minute}
	for _, c := range []struct {
		ended    Ended
		category Category
		want     RepairOutcome
		why      string
	}{
		{Ended{}, Formatter, RepairRan, ""},
		{Ended{Unreadable: "no JSON"}, Linter, RepairRan, ""},
		{Ended{Exit: 1, LastLine: "1 left"}, Linter, RepairRan, ""},
		{Ended{Exit: 1, LastLine: "a.js: syntax error"}, Formatter, RepairFailed, "exit code 1: a.js: syntax error"},
		{Ended{Exit: 2, LastLine: "bad option"}, Linter, RepairFailed, "exit code 2: bad option"},
		{Ended{Exit: 3}, Linter, RepairFailed, "exit code 3"},
		{Ended{NotStarted: "prettier is not installed"}, Formatter, RepairUnknown, "prettier is not installed"},
		{Ended{TimedOut: true}, Formatter, RepairUnknown, "it did not end within 1m0s"},
		{Ended{Signal: "SIGKILL", LastLine: "half"}, Linter, RepairUnknown, "it was ended by SIGKILL: half"},
	} {
		if got, why := JudgeRepair(x, c.ended, c.category); got != c.want || why != c.why {
			t.Errorf("%+v of a %s: %s, %q; not %s, %q", c.ended, c.category, got, why, c.want, c.why)
		}
	}
}
