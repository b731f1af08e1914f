package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/style"
	"reconcile.dev/reconcile/controllers/tools"
)

// Findings writes findings, each on a line that editors can follow: file:line:column, severity, message, tool and rule, and the id.
func Findings(w io.Writer, p Palette, all []checks.Check) error {
	var b strings.Builder
	for _, c := range all {
		for _, f := range c.Findings {
			place := Line(cmp.Or(f.File, c.Folder, "."))
			for _, n := range []int{f.Line, f.Column} {
				if n == 0 {
					break
				}
				place += ":" + strconv.Itoa(n)
			}
			rule := f.Tool
			if f.Rule != "" {
				rule += "/" + f.Rule
			}
			fmt.Fprintf(&b, "%s: %s: %s [%s] %s\n", p.Paint(Bold, place), p.Paint(severityColor(f.Severity), string(f.Severity)), Line(f.Message), Line(rule), f.ID)
			if f.Suggestion != "" {
				fmt.Fprintf(&b, "    %s\n", Line(f.Suggestion))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func severityColor(s checks.Severity) Color {
	switch s {
	case checks.Critical, checks.High:
		return Red
	case checks.Medium:
		return Yellow
	case checks.Info:
		return Dim
	}
	return Plain
}

func outcomeColor(o checks.Outcome) Color {
	switch o {
	case checks.Passed:
		return Green
	case checks.Failed:
		return Red
	}
	return Yellow
}

// FailedTests writes the failed tests with their output.
func FailedTests(w io.Writer, p Palette, all []checks.Check, diagnoses []checks.Diagnosis) error {
	var b strings.Builder
	for _, c := range all {
		for _, t := range c.Tests {
			if t.Outcome != checks.TestFailed {
				continue
			}
			name := strings.TrimSpace(Line(t.Suite) + " " + Line(t.Name))
			place := ""
			if t.File != "" {
				place = " (" + Line(t.File)
				if t.Line > 0 {
					place += ":" + strconv.Itoa(t.Line)
				}
				place += ")"
			}
			fmt.Fprintf(&b, "%s %s%s\n", p.Paint(Red, "FAIL"), p.Paint(Bold, name), place)
			if t.Expected != "" || t.Actual != "" {
				fmt.Fprintf(&b, "    expected: %s\n    actual:   %s\n", Line(t.Expected), Line(t.Actual))
			}
			said := strings.TrimSpace(cmp.Or(t.Output, t.Stack))
			if first, _, _ := strings.Cut(t.Message, "\n"); t.Expected+t.Actual == "" && !strings.Contains(said, first) {
				said = strings.TrimSpace(t.Message + "\n" + said)
			}
			for line := range strings.Lines(Text(said)) {
				b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
			}
			for _, d := range diagnoses {
				if d.Test == t.Name && d.Suite == t.Suite {
					fmt.Fprintf(&b, "    %s: %s\n", p.Paint(Yellow, string(d.Blame)), Line(d.Why))
				}
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(Text(c.Output)), "\n") {
			if line != "" {
				fmt.Fprintf(&b, "%s: %s\n", Line(c.Tool), line)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ChecksTable is the table of checks: what each says, and why where that is not obvious.
func ChecksTable(p Palette, all []checks.Check) *Table {
	t := NewTable(p, "CHECK", "CATEGORY", "FOLDER", "OUTCOME", "FOUND", "TIME", "WHY")
	t.Wrap = true
	for _, c := range all {
		found := strconv.Itoa(len(c.Findings))
		if c.Category == checks.TestFramework {
			n := checks.Count(c.Tests)
			found = fmt.Sprintf("%d of %d", n.Failed, n.Run)
			if n.Skipped > 0 {
				found += fmt.Sprintf(", %d skipped", n.Skipped)
			}
		}
		t.Cells(Cell{Text: c.Tool}, Cell{Text: string(c.Category)}, Cell{Text: cmp.Or(c.Folder, ".")}, Cell{Text: string(c.Outcome), Color: outcomeColor(c.Outcome)},
			Cell{Text: found}, Cell{Text: Age(time.Duration(c.Seconds * float64(time.Second)))}, Cell{Text: c.Reason})
	}
	return t
}

// RepairsTable is the table of repairs: how each ended, and why where it did not run to its end.
func RepairsTable(p Palette, all []checks.Repair) *Table {
	t := NewTable(p, "REPAIR", "FOLDER", "OUTCOME", "WHY")
	t.Wrap = true
	for _, r := range all {
		color := Yellow
		switch r.Outcome {
		case checks.RepairRan:
			color = Green
		case checks.RepairFailed:
			color = Red
		}
		t.Cells(Cell{Text: r.Tool}, Cell{Text: cmp.Or(r.Folder, ".")}, Cell{Text: string(r.Outcome), Color: color}, Cell{Text: r.Reason})
	}
	return t
}

// CoverageTable is the table of files with lines that no test ran, the least covered first; at most as many as most.
func CoverageTable(p Palette, c *checks.Coverage, most int) *Table {
	t := NewTable(p, "FILE", "COVERED", "UNCOVERED LINES")
	files := slices.Clone(c.Files)
	slices.SortStableFunc(files, func(a, b checks.FileCoverage) int { return cmp.Compare(a.Percent, b.Percent) })
	for _, f := range files[:min(most, len(files))] {
		var lines []string
		for _, r := range f.Uncovered {
			if r.First == r.Last {
				lines = append(lines, strconv.Itoa(r.First))
			} else {
				lines = append(lines, fmt.Sprintf("%d-%d", r.First, r.Last))
			}
		}
		if len(lines) > 0 {
			t.Row(f.File, fmt.Sprintf("%.1f %%", f.Percent), strings.Join(lines, ", "))
		}
	}
	return t
}

// Overrides writes what people accepted, and whether it still holds.
func Overrides(w io.Writer, p Palette, all []checks.Override) error {
	var b strings.Builder
	for _, o := range all {
		what := "no test runs"
		switch {
		case o.Finding != "":
			what = "finding " + o.Finding + ": " + o.Message
		case o.Test != "":
			what = "test " + o.Test
		}
		state := "accepted"
		if o.Void != "" {
			state = "not accepted any more: " + o.Void
		}
		fmt.Fprintf(&b, "%s: %s, by %s: %s (%s)\n", p.Paint(Yellow, state), Line(what), Line(cmp.Or(o.By, "nobody")), Line(o.Reason), Line(o.Action))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ToolsTable is the table of a project's tools; wide also has their checks and programs.
func ToolsTable(p Palette, all []tools.Discovered, wide bool) *Table {
	columns := []string{"CATEGORY", "LANGUAGE", "FOLDER", "TOOL", "CONFIDENCE", "INSTALLED", "WHY"}
	if wide {
		columns = append(columns, "CHECK", "PROGRAM")
	}
	table := NewTable(p, columns...)
	for _, t := range all {
		installed := "no"
		switch {
		case t.Program != "" && t.Unversioned != "":
			installed = "version unknown: " + t.Unversioned
		case t.Program != "":
			installed = cmp.Or(t.Version, "yes")
		}
		row := []string{string(t.Category), t.Language, cmp.Or(t.Folder, "."), t.Tool, string(t.Confidence), installed, strings.TrimSpace(t.Why)}
		if wide {
			row = append(row, cmp.Or(Text(strings.Join(t.Check, " ")), none), cmp.Or(Text(t.Program), none))
		}
		table.Row(row...)
	}
	return table
}

// ToolOptions are a line for each tool that may be chosen.
func ToolOptions(all []tools.Option) string {
	var lines []string
	for _, o := range all {
		line := "  " + o.Tool
		if o.Recommended {
			line += " (recommended)"
		}
		if len(o.Pros) > 0 {
			line += "  + " + strings.Join(o.Pros, ", ")
		}
		if len(o.Cons) > 0 {
			line += "  - " + strings.Join(o.Cons, ", ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// StylesTable is the table of how the code of languages is written.
func StylesTable(p Palette, styles []*style.Style) *Table {
	t := NewTable(p, "LANGUAGE", "ASPECT", "VALUE", "SHARE", "SAMPLES", "EXAMPLE", "DECLARED")
	for _, s := range styles {
		for _, c := range s.Rows() {
			share := none
			if c.Samples > 0 {
				share = fmt.Sprintf("%.0f%%", 100*c.Share)
			}
			t.Row(s.Language, c.Name, c.Value, share, fmt.Sprint(c.Samples), c.Example, c.Declared)
		}
	}
	return t
}
