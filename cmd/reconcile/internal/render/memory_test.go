package render

import (
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

var memoryNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func anObservation() schemas.Observation {
	return schemas.Observation{
		ID: "obs-engineer-29-1772186400000-a1b2c3", Agent: "engineer", IssueNumber: 29, Category: schemas.CategoryDecision,
		Content: "Chose files.\nNot\x1b[31m SQLite.\r\n", Summary: "Chose files", Tokens: 7,
		Timestamp: schemas.StampOfTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)),
	}
}

func TestMemoryTable(t *testing.T) {
	o := anObservation()
	rows := []memory.Row{
		{ObservationIndex: o.Index()},
		{ObservationIndex: o.Index(), Stale: "src/a.go changed since"},
		{ObservationIndex: o.Index(), Stale: "src/a.go changed since", SupersededBy: "obs-x"},
		{ObservationIndex: o.Index(), SupersededBy: "obs-x", Archived: true},
	}
	rows[0].Summary, rows[0].IssueNumber, rows[0].Timestamp = "two\nlines \x1b]0;", 0, schemas.Stamp{}
	var b strings.Builder
	if err := MemoryTable(&b, Palette{}, rows, memoryNow); err != nil {
		t.Fatal(err)
	}
	want := `ID                                    CATEGORY  AGENT     ISSUE  AGE    TOKENS  SUMMARY
obs-engineer-29-1772186400000-a1b2c3  decision  engineer  -      -      7       two\nlines \x1b]0;
obs-engineer-29-1772186400000-a1b2c3  decision  engineer  #29    2d2h   7       Chose files (may be stale: src/a.go changed since)
obs-engineer-29-1772186400000-a1b2c3  decision  engineer  #29    2d2h   7       Chose files (superseded)
obs-engineer-29-1772186400000-a1b2c3  decision  engineer  #29    2d2h   7       Chose files (archived)
`
	if normalBlanks(b.String()) != normalBlanks(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func normalBlanks(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

func TestMemoryText(t *testing.T) {
	m := memory.Full{Observation: anObservation(), Stale: "src/a.go changed since"}
	m.SessionID, m.Source, m.SeenCount, m.RecallCount = "health", "engineer-29-1", 2, 1
	m.Anchors = []schemas.Anchor{{Path: "src/a.go", Digest: "sha256:1"}, {Path: "b", Digest: schemas.AnchorAbsent}}
	m.VerifiedAt, m.SupersededBy, m.Compacts = m.Timestamp, "obs-x", []string{"obs-y", "obs-z"}
	m.Archived = true
	var b strings.Builder
	if err := MemoryText(&b, Palette{}, m, memoryNow); err != nil {
		t.Fatal(err)
	}
	want := `obs-engineer-29-1772186400000-a1b2c3
category decision
agent engineer
issue #29
learned 2026-02-27 10:00 UTC, 2d2h ago
tokens 7
session health
observation engineer-29-1
seen 2 times
recalled once
verified 2026-02-27 10:00 UTC, 2d2h ago
about src/a.go, b (which did not exist)
may be stale src/a.go changed since
superseded by obs-x
stands for obs-y, obs-z
archived yes: compaction put another one in its place

Chose files.
Not\x1b[31m SQLite.
`
	if normalBlanks(b.String()) != want {
		t.Errorf("got\n%s\nwant\n%s", normalBlanks(b.String()), want)
	}
}

func TestMemoryStatsText(t *testing.T) {
	o := anObservation()
	agents := map[string]int{}
	for name := range strings.FieldsSeq("a b c d e f g h i j k l") {
		agents[name] = 1
	}
	agents["l"] = 1200
	var b strings.Builder
	err := MemoryStatsText(&b, Palette{}, schemas.MemoryStats{
		TotalObservations: 1211, TotalTokens: 1234567, IssueCount: 3, OldestTimestamp: o.Timestamp, NewestTimestamp: o.Timestamp,
		ByCategory: map[string]int{schemas.CategoryDecision: 1211}, ByAgent: agents, Superseded: 1, Archived: 2, Recalls: 3,
		DiskBytes: 1_500_000,
	}, memoryNow)
	if err != nil {
		t.Fatal(err)
	}
	got := normalBlanks(b.String())
	for _, want := range []string{
		"observations 1,211", "tokens 1,234,567", "issues 3", "oldest 2026-02-27 10:00 UTC, 2d2h ago", "superseded 1",
		"archived 2", "recalls 3", "on disk 1.5 MB", "decision 1,211", "l 1,200\na 1\nb 1", "and 2 more",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestGroupedNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 12345678: "12,345,678"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1.0 KB", 999_949: "999.9 KB", 40_000_000: "40.0 MB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestBudgetText(t *testing.T) {
	items := make([]BudgetItem, budgetRows+2)
	for i := range items {
		items[i] = BudgetItem{Name: "f.md", Tokens: 1000}
	}
	items[0] = BudgetItem{Name: "big\x1b.md", Tokens: 1000, Estimated: true, Note: "noted"}
	var b strings.Builder
	err := BudgetText(&b, Palette{}, Budget{
		Agent: "engineer", IssueNumber: 29, ContextWindow: 20000, TotalTokens: 14000, Percent: 70, Level: BudgetCompact,
		Sections: []BudgetSection{{Name: "skills", Tokens: 14000, Percent: 70, Items: items}}, DisplacedTokens: 5000,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := normalBlanks(b.String())
	for _, want := range []string{
		"Context of engineer, issue 29: window of 20,000 tokens", "skills 14,000 70.0 %", `big\x1b.md ~1,000 noted`,
		"and 2 more 2,000", "total 14,000 70.0 % of 20,000", "[" + strings.Repeat("#", 35) + strings.Repeat("-", 15) + "] 70.0 %",
		"Memory recall displaced 5,000 tokens of manual re-read", "compaction recommended",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}
