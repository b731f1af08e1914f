package ops

import (
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// The names of actions are names of objects, whatever the target is called, and differ where what is asked differs.
func TestActionName(t *testing.T) {
	at := schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC))
	seen := map[string]bool{}
	for _, v := range Verbs {
		for _, target := range []string{"a", "a-", "a.b_c", strings.Repeat("x", 29) + "--y", strings.Repeat("9", 63)} {
			for _, node := range []string{"", "build"} {
				name := actionName(schemas.ActionSpec{Verb: v.Name, Target: "dag/" + target, Node: node, At: at})
				if err := schemas.CheckName(name); err != nil {
					t.Error(err)
				}
				if seen[name] {
					t.Errorf("%s twice", name)
				}
				seen[name] = true
			}
		}
	}
}
