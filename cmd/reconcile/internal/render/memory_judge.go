package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/memory"
)

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
