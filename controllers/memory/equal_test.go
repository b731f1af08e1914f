package memory

import (
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestEqualOnesBecomeOne: what several processes captured at once is told once, with all ids if it is a decision, however
// long it is; what is nearly the same stays a statement of its own.
func TestEqualOnesBecomeOne(t *testing.T) {
	text := "Readers close their rows before a pool ends, " + strings.Repeat("which is so in every package of the tree, ", 12) + "always."
	for _, category := range []string{schemas.CategoryDecision, schemas.CategoryKeyFact} {
		var all []schemas.Observation
		for i := range 10 {
			at := onTheDay(i)
			all = append(all, schemas.Observation{
				ID: NewID("engineer", 7, at, fmt.Sprint(i), 0, text), Agent: "engineer", IssueNumber: 7, Category: category,
				Content: text, Summary: "Readers close their rows", Timestamp: schemas.StampOfTime(at),
			})
		}
		out := merged(all)
		if len(out) != 1 || len(out[0].Compacts) != len(all) {
			t.Fatalf("%s: %d are left of %d", category, len(out), len(all))
		}
		if n := strings.Count(out[0].Content, text); n != 1 {
			t.Errorf("%s: the text is there %d times: %s", category, n, out[0].Content)
		}
		if n := strings.Count(out[0].Summary, "Readers"); n != 1 {
			t.Errorf("%s: the summary repeats itself: %s", category, out[0].Summary)
		}
		for _, o := range all {
			if category == schemas.CategoryDecision && !strings.Contains(out[0].Content, o.ID) {
				t.Errorf("%s is not named", o.ID)
			}
		}
		all[3].Content = strings.Replace(text, "always", "never", 1)
		near := merged(all)
		var said []string
		for _, o := range near {
			said = append(said, o.Content)
		}
		if told := strings.Join(said, " "); !strings.Contains(told, "always.") || !strings.Contains(told, "never.") {
			t.Errorf("%s: a statement was lost: %s", category, told)
		}
	}
}
