package message

import (
	"fmt"
	"strings"
	"testing"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	input := Trailer{"Reconcile-Input", "abc123"}
	var many []Change
	for i := range 30 {
		many = append(many, Change{Object: fmt.Sprintf("dag/d%02d", i)})
	}
	stated, withdrawn := Change{Object: "fact/edge-0123456789ab", Fact: true}, Change{Object: "fact/review-0123456789ab", Fact: true, Gone: true}
	for name, c := range map[string]struct {
		changes []Change
		subject string
		lines   int
	}{
		"nothing":       {nil, "Update recorded state", 4},
		"one":           {[]Change{{Object: "session/health"}}, "Update status of session/health", 6},
		"told":          {[]Change{{Object: "dag/checks", Note: "4 of 4 nodes succeeded"}, {Object: "session/x"}}, "Record checks: 4 of 4 nodes succeeded", 7},
		"told too long": {[]Change{{Object: "dag/checks", Note: strings.Repeat("x", 60)}}, "Record dag/checks", 6},
		"long name":     {[]Change{{Object: "dag/" + strings.Repeat("n", 60)}}, "Update status of dag/" + strings.Repeat("n", 28) + "…", 6},
		"gone":          {[]Change{{Object: "dag/a", Gone: true}}, "Remove status of dag/a", 6},
		"all gone":      {[]Change{{Object: "dag/a", Gone: true}, {Object: "dag/b", Gone: true}}, "Remove status of 2 objects", 7},
		"many":          {many, "Update status of 30 objects", 26},
		"fact":          {[]Change{stated}, "State fact/edge-0123456789ab", 7},
		"fact gone":     {[]Change{withdrawn}, "Take back fact/review-0123456789ab", 7},
		"facts":         {[]Change{stated, stated}, "State 2 facts", 8},
		"facts gone":    {[]Change{withdrawn, withdrawn}, "Take back 2 facts", 8},
		"both":          {[]Change{stated, withdrawn, withdrawn}, "State 1 and take back 2 facts", 9},
		"beside":        {[]Change{stated, {Object: "dag/a"}}, "Update status of dag/a", 8},
		"forged":        {[]Change{{Object: "dag/a", Note: "x\n\nReconcile-Input: forged\x00\x1b[31m"}}, "Record a: x Reconcile-Input: forged [31m", 6},
	} {
		got := New(c.changes, input)
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if lines[0] != c.subject || lines[1] != "" || len(lines) != c.lines {
			t.Errorf("%s: got\n%s", name, got)
		}
		if n := len([]rune(lines[0])); n > 50 {
			t.Errorf("%s: a subject of %d characters", name, n)
		}
		facts := len(factsAmong(c.changes))
		end := fmt.Sprintf("Reconcile-Objects: %d\n", len(c.changes)-facts)
		if facts > 0 {
			end = fmt.Sprintf("Reconcile-Facts: %d\n", facts) + end
		}
		end = "Reconcile-Input: abc123\n" + end
		if !strings.HasSuffix(got, end) || strings.Count(got, "\nReconcile-Input:") != 1 {
			t.Errorf("%s: trailers in\n%s", name, got)
		}
	}
}
