package repotest

import (
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestRoleMemories: the table of roles on the page has the defaults of the code.
func TestRoleMemories(t *testing.T) {
	const page = "docs/agents.md"
	_, table, _ := strings.Cut(read(t, page), "| Role | Checkpoints | A new session from | Target | Summary |\n|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for row := range strings.Lines(table) {
		roles, want, _ := strings.Cut(strings.Trim(row, "| \n"), " | ")
		for role := range strings.SplitSeq(roles, ", ") {
			rows++
			m := (&schemas.AgentSpec{Role: role}).MemoryOf()
			marks := strings.ReplaceAll(strings.Trim(fmt.Sprint(m.Checkpoints), "[]"), " ", ", ")
			if got := strings.TrimPrefix(fmt.Sprintf("%s | %d | %d | `%s`", marks, m.CompactAt, m.Target, m.Summary), " "); got != want {
				t.Errorf("%s says of the role %s: %s; it is: %s", page, role, want, got)
			}
		}
	}
	if rows != 9 {
		t.Errorf("%s has %d roles", page, rows)
	}
}
