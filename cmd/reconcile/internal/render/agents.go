package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/schemas"
)

// Levels of a [Budget]: compaction is recommended from 70 %, and critical from 90 % of the window.
const (
	BudgetOK       = "ok"
	BudgetCompact  = "compaction-recommended"
	BudgetCritical = "critical"
)

// Budget describes the use of an agent's context window.
type Budget struct {
	Agent       string `json:"agent"`
	IssueNumber int    `json:"issueNumber"`
	// ContextWindow and all other sizes are in tokens.
	ContextWindow int             `json:"contextWindow"`
	TotalTokens   int             `json:"totalTokens"`
	Percent       float64         `json:"percent"` // of the window, to one decimal
	Level         string          `json:"level"`   // one of the Budget constants
	Sections      []BudgetSection `json:"sections"`
	// DisplacedTokens is the estimated size of what the agent would have to reread without the recall.
	DisplacedTokens int `json:"displacedTokens"`
}

// BudgetSection is one category of the context: instructions, skills, memory and so on.
type BudgetSection struct {
	Name    string       `json:"name"`
	Tokens  int          `json:"tokens"`
	Percent float64      `json:"percent"` // of the window, to one decimal
	Items   []BudgetItem `json:"items"`
}

// BudgetItem is one text in the context.
type BudgetItem struct {
	Name   string `json:"name"` // its path below the root, or a description
	Tokens int    `json:"tokens"`
	// Estimated is set if only the beginning of a large file was read and counted.
	Estimated bool `json:"estimated,omitempty"`
	// Note is a remark, such as why an item counts nothing.
	Note string `json:"note,omitempty"`
}

// budgetRows is the maximum number of items of a section in text output; -o json has all.
const budgetRows = 12

// BudgetText writes a budget for the terminal.
func BudgetText(w io.Writer, p Palette, b Budget) error {
	var out strings.Builder
	about := ""
	if b.IssueNumber > 0 {
		about = fmt.Sprintf(", issue %d", b.IssueNumber)
	}
	title := fmt.Sprintf("Context of %s%s: window of %s tokens", b.Agent, about, Grouped(b.ContextWindow))
	out.WriteString(p.Paint(Bold, Line(title)) + "\n\n")
	t := Table{Palette: p, Indent: "  "}
	for _, s := range b.Sections {
		budgetSection(&t, s)
	}
	total := fmt.Sprintf("%s of %s", percentText(b.Percent), Grouped(b.ContextWindow))
	t.Cells(Cell{Text: "total", Color: Bold}, Cell{Text: padLeft(Grouped(b.TotalTokens), budgetDigits)}, Cell{Text: total})
	t.Write(&out) // a buffer does not fail
	fmt.Fprintf(&out, "\n  %s\n", p.Paint(levelColor(b.Level), budgetBar(b.Percent)))
	if b.DisplacedTokens > 0 {
		fmt.Fprintf(&out, "  Memory recall displaced %s tokens of manual re-read\n", Grouped(b.DisplacedTokens))
	}
	if text := levelText(b); text != "" {
		fmt.Fprintf(&out, "  %s\n", p.Paint(levelColor(b.Level), text))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// budgetDigits is the width of numbers of tokens: the largest window has nine digits.
const budgetDigits = 11

func budgetSection(t *Table, s BudgetSection) {
	t.Cells(Cell{Text: s.Name, Color: Bold}, Cell{Text: padLeft(Grouped(s.Tokens), budgetDigits)},
		Cell{Text: percentText(s.Percent)})
	shown := s.Items[:min(len(s.Items), budgetRows)]
	for _, it := range shown {
		size := Grouped(it.Tokens)
		if it.Estimated {
			size = "~" + size
		}
		t.Cells(Cell{Text: "  " + Cut(Line(it.Name), 60)}, Cell{Text: padLeft(size, budgetDigits)},
			Cell{Text: it.Note, Color: Dim})
	}
	if more := s.Items[len(shown):]; len(more) > 0 {
		sum := 0
		for _, it := range more {
			sum += it.Tokens
		}
		t.Cells(Cell{Text: fmt.Sprintf("  and %d more", len(more))}, Cell{Text: padLeft(Grouped(sum), budgetDigits)})
	}
}

// budgetBar returns [########------] for the used share.
func budgetBar(percent float64) string {
	const width = 50
	filled := min(max(int(percent/100*width+0.5), 0), width)
	return "[" + strings.Repeat("#", filled) + strings.Repeat("-", width-filled) + "] " + percentText(percent)
}

func levelText(b Budget) string {
	switch b.Level {
	case BudgetCompact:
		return "compaction recommended: from 70 % on, an agent should sum up what it has in its context"
	case BudgetCritical:
		return "critical: from 90 % on, there is hardly room left to work"
	}
	return ""
}

func levelColor(level string) Color {
	switch level {
	case BudgetCompact:
		return Yellow
	case BudgetCritical:
		return Red
	}
	return Green
}

func percentText(p float64) string { return strconv.FormatFloat(p, 'f', 1, 64) + " %" }

// Prompt writes the parts of a prompt, each below a line with its name and its size.
func Prompt(w io.Writer, p Palette, parts []agentio.SizedPart) error {
	var out strings.Builder
	for _, part := range parts {
		out.WriteString(p.Paint(Dim, fmt.Sprintf("== %s: %s", part.Name, GroupedPlural(part.Tokens, "token"))) + "\n")
		out.WriteString(Text(strings.Trim(part.Text, "\n")) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// AgentTable writes a table of agents, a row for each, with its status, issue, clarification, and whom it waits for or
// responds to.
func AgentTable(w io.Writer, p Palette, rows []schemas.NamedActivity, now time.Time) error {
	t := NewTable(p, "AGENT", "STATUS", "ISSUE", "CLARIFICATION", "WAITING ON", "RESPONDING TO", "LAST ACTIVITY")
	for _, r := range rows {
		status := r.Status
		if status == "" {
			status = "unknown"
		}
		t.Cells(Cell{Text: r.Name}, Cell{Text: status, Color: stateColor(status)}, Cell{Text: issueOf(r.Issue)},
			Cell{Text: orNone(r.ClarificationID)}, Cell{Text: orNone(r.WaitingOn)}, Cell{Text: orNone(r.RespondingTo)},
			Cell{Text: ageOf(r.LastActivity, now)})
	}
	return t.Write(w)
}
