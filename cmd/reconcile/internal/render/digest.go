package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/digest"
	"reconcile.dev/reconcile/schemas"
)

// digestTop is the number of topics and agents that a digest shows.
const digestTop = 10

// DigestText writes a digest for the terminal.
func DigestText(w io.Writer, p Palette, d digest.Digest) error {
	var b strings.Builder
	b.WriteString(p.Paint(Bold, digestTitle(d)) + "\n\n")
	t := Table{Palette: p, Indent: "  "}
	for _, f := range digestFigures(d) {
		t.Row(f.name, f.value)
	}
	t.Write(&b) // a buffer does not fail
	for _, l := range digestLists(d) {
		if len(l.tallies) == 0 {
			continue
		}
		b.WriteString("\n")
		tallyTable(p, l).Write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// DigestMarkdown writes a digest as Markdown, for a comment or a report.
func DigestMarkdown(w io.Writer, d digest.Digest) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n| | |\n|---|--:|\n", digestTitle(d))
	for _, f := range digestFigures(d) {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, f.value)
	}
	for _, l := range digestLists(d) {
		if len(l.tallies) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n| %s | Count |\n|---|--:|\n", l.title)
		for _, t := range l.tallies {
			fmt.Fprintf(&b, "| %s | %d |\n", markdownCell(t.Name), t.Count)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func digestTitle(d digest.Digest) string {
	if d.Since.IsZero() {
		return "Clarifications until " + digestTime(d.Until)
	}
	return fmt.Sprintf("Clarifications from %s to %s", digestTime(d.Since), digestTime(d.Until))
}

func digestTime(t schemas.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// figure is one number of a digest, in words.
type figure struct{ name, value string }

func digestFigures(d digest.Digest) []figure {
	count := func(name string, n int) figure { return figure{name, strconv.Itoa(n)} }
	return []figure{
		count("total", d.Total),
		count("resolved", d.Resolved),
		count("escalated", d.Escalated),
		count("stale", d.Stale),
		count("abandoned", d.Abandoned),
		count("pending", d.Pending),
		count("answered", d.Answered),
		count("escalated at some time", d.EverEscalated),
		count("blocking", d.Blocking),
		{"resolved without a human", aloneText(d)},
		{"average rounds", digestDecimal(d.AverageRounds)},
		{"median time to answer", secondsText(d.MedianAnswer)},
	}
}

// aloneText is "80% (8 of 10)".
func aloneText(d digest.Digest) string {
	if d.AloneRate == nil {
		return none
	}
	return fmt.Sprintf("%.0f%% (%d of %d)", 100**d.AloneRate, d.Alone, d.Resolved+d.Escalated)
}

func digestDecimal(f *float64) string {
	if f == nil {
		return none
	}
	return strconv.FormatFloat(*f, 'f', 1, 64)
}

func secondsText(s *float64) string {
	if s == nil {
		return none
	}
	return Age(time.Duration(*s * float64(time.Second)))
}

// tallyList is a list of a digest with its head.
type tallyList struct {
	title   string
	tallies []digest.Tally
}

// digestLists are the lists of a digest, each with its first entries.
func digestLists(d digest.Digest) []tallyList {
	lists := []tallyList{{"Topic", d.Topics}, {"Asks", d.Askers}, {"Is asked", d.Asked}}
	for i := range lists {
		lists[i].tallies = lists[i].tallies[:min(digestTop, len(lists[i].tallies))]
	}
	return lists
}

// markdownCell escapes text for a cell of a Markdown table.
func markdownCell(s string) string {
	var b strings.Builder
	for _, r := range Line(s) {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|~@&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func digestTimes(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
