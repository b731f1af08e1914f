package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// MemoryTable writes the rows of the memory as a table of observations, one per line, with category, agent, issue, age,
// tokens and summary.
func MemoryTable(w io.Writer, p Palette, rows []memory.Row, now time.Time) error {
	const width = 100
	t := NewTable(p, "ID", "CATEGORY", "AGENT", "ISSUE", "AGE", "TOKENS", "SUMMARY")
	for i := range rows {
		r := &rows[i]
		cell := Cell{Text: Cut(Line(r.Summary), width)}
		if mark := memoryMark(r); mark != "" {
			cell = Cell{Text: cell.Text + " (" + mark + ")", Color: Dim}
		}
		t.Cells(Cell{Text: r.ID}, Cell{Text: r.Category}, Cell{Text: r.Agent}, Cell{Text: issueNumber(r.IssueNumber)},
			Cell{Text: stampAge(r.Timestamp, now)}, Cell{Text: strconv.Itoa(r.Tokens)}, cell)
	}
	return t.Write(w)
}

// memoryMark returns the reason not to rely on an observation; "" for none.
func memoryMark(r *memory.Row) string {
	switch {
	case r.Archived:
		return "archived"
	case r.SupersededBy != "":
		return "superseded"
	case r.Stale != "":
		return "may be stale: " + Cut(Line(r.Stale), 60)
	}
	return ""
}

// MemoryText writes a full observation: a table of its fields, then the lines of its content.
func MemoryText(w io.Writer, p Palette, m memory.Full, now time.Time) error {
	var b strings.Builder
	b.WriteString(p.Paint(Bold, Line(m.ID)) + "\n")
	t := Table{Palette: p, Indent: "  "}
	for _, f := range memoryFields(&m, now) {
		t.Row(f.name, f.value)
	}
	t.Write(&b) // a buffer does not fail
	b.WriteByte('\n')
	for line := range strings.SplitSeq(strings.TrimRight(Text(m.Content), "\n"), "\n") {
		b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func memoryFields(m *memory.Full, now time.Time) []figure {
	out := []figure{
		{"category", m.Category},
		{"agent", m.Agent},
		{"issue", issueNumber(m.IssueNumber)},
		{"learned", stampText(m.Timestamp, now)},
		{"tokens", strconv.Itoa(m.Tokens)},
	}
	add := func(name, value string) {
		if value != "" {
			out = append(out, figure{name, value})
		}
	}
	add("session", m.SessionID)
	add("observation", m.Source)
	add("seen", digestTimes(m.SeenCount))
	add("recalled", digestTimes(m.RecallCount))
	add("verified", stampText(m.VerifiedAt, now))
	add("about", anchorsText(m.Anchors))
	add("may be stale", m.Stale)
	add("superseded by", m.SupersededBy)
	add("stands for", strings.Join(m.Compacts, ", "))
	if m.Archived {
		add("archived", "yes: compaction put another one in its place")
	}
	return out
}

func anchorsText(anchors []schemas.Anchor) string {
	paths := make([]string, len(anchors))
	for i, a := range anchors {
		paths[i] = a.Path
		if a.Digest == schemas.AnchorAbsent {
			paths[i] += " (which did not exist)"
		}
	}
	return strings.Join(paths, ", ")
}

// MemoryStatsText writes the memory statistics: the figures, and the tallies by category and by agent.
func MemoryStatsText(w io.Writer, p Palette, s schemas.MemoryStats, now time.Time) error {
	var b strings.Builder
	t := Table{Palette: p}
	for _, f := range memoryFigures(&s, now) {
		t.Row(f.name, f.value)
	}
	t.Write(&b) // a buffer does not fail
	memoryTallies(&b, p, "by category", s.ByCategory)
	memoryTallies(&b, p, "by agent", s.ByAgent)
	_, err := io.WriteString(w, b.String())
	return err
}

func memoryFigures(s *schemas.MemoryStats, now time.Time) []figure {
	out := []figure{
		{"observations", Grouped(s.TotalObservations)},
		{"tokens", Grouped(s.TotalTokens)},
		{"issues", Grouped(s.IssueCount)},
	}
	if s.TotalObservations > 0 {
		out = append(out, figure{"oldest", stampText(s.OldestTimestamp, now)}, figure{"newest", stampText(s.NewestTimestamp, now)})
	}
	return append(out,
		figure{"superseded", Grouped(s.Superseded)},
		figure{"archived", Grouped(s.Archived)},
		figure{"recalls", Grouped(s.Recalls)},
		figure{"on disk", Bytes(s.DiskBytes)},
	)
}

// memoryTallies writes counts by name, the largest first.
func memoryTallies(b *strings.Builder, p Palette, title string, counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		if counts[x] != counts[y] {
			return counts[y] - counts[x]
		}
		return strings.Compare(x, y)
	})
	b.WriteString("\n" + p.Paint(Bold, title) + "\n")
	t := Table{Palette: p, Indent: "  "}
	for _, name := range names[:min(len(names), digestTop)] {
		t.Row(name, Grouped(counts[name]))
	}
	if more := len(names) - t.Len(); more > 0 {
		t.Row(fmt.Sprintf("and %d more", more))
	}
	t.Write(b) // a buffer does not fail
}

// tallyTable lists names with bars; the longest bar is that of the first.
func tallyTable(p Palette, l tallyList) *Table {
	const nameWidth, barWidth = 60, 20
	t := NewTable(p, strings.ToUpper(l.title), "COUNT")
	most := l.tallies[0].Count
	for _, x := range l.tallies {
		bar := strings.Repeat("█", max(1, x.Count*barWidth/cmp.Or(most, 1)))
		t.Cells(Cell{Text: Cut(Line(x.Name), nameWidth)}, Cell{Text: strconv.Itoa(x.Count)}, Cell{Text: bar, Color: Blue})
	}
	return t
}

// listedFindings is the maximum number of listed findings of a category, or missed questions.
const listedFindings = 20

// MemoryAudit writes the audit of a memory: a table of the sorts of findings with how many were found and are allowed,
// and then the findings.
func MemoryAudit(w io.Writer, p Palette, sorts []memory.AuditSort) error {
	t := NewTable(p, "SORT", "FOUND", "ALLOWED", "WHAT")
	var lists strings.Builder
	for _, s := range sorts {
		found, allowed := Cell{Text: strconv.Itoa(s.Found)}, "any"
		if s.Most >= 0 {
			allowed = strconv.Itoa(s.Most)
		}
		if s.Past() {
			found.Color = Red
		}
		t.Cells(Cell{Text: s.Name}, found, Cell{Text: allowed}, Cell{Text: s.About})
		listFindings(&lists, s)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, lists.String())
	return err
}

func listFindings(b *strings.Builder, s memory.AuditSort) {
	if len(s.Lines) > 0 {
		fmt.Fprintf(b, "\n%s: %s\n", s.Name, s.About)
	}
	for _, line := range s.Lines[:min(len(s.Lines), listedFindings)] {
		b.WriteString("  " + Text(line) + "\n")
	}
	if more := len(s.Lines) - listedFindings; more > 0 {
		fmt.Fprintf(b, "  and %d more; -o json has all\n", more)
	}
}

// MemoryEvaluation writes the metrics of an evaluation, and the questions without an answer.
func MemoryEvaluation(w io.Writer, p Palette, e memory.Evaluation, answers []memory.Answer) error {
	t := NewTable(p, "FIGURE", "VALUE")
	t.Row("questions", strconv.Itoa(e.Questions))
	for _, f := range e.Figures(memory.EvalBounds{}) {
		form := "%.3f"
		if f.Most {
			form = "%.1f"
		}
		t.Row(f.Name, fmt.Sprintf(form, f.Value))
	}
	var b strings.Builder
	t.Write(&b) // a buffer does not fail, nor does it below
	missed := slices.DeleteFunc(slices.Clone(answers), func(a memory.Answer) bool { return a.Rank > 0 })
	if len(missed) > 0 {
		t := NewTable(p, "NOT AMONG THE FIRST TEN", "EXPECTED")
		for _, a := range missed[:min(len(missed), listedFindings)] {
			t.Row(Cut(a.Question.Question, 80), strings.Join(a.Expect, " "))
		}
		if more := len(missed) - listedFindings; more > 0 {
			t.Row(fmt.Sprintf("and %d more; -o json has all", more))
		}
		b.WriteByte('\n')
		t.Write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
