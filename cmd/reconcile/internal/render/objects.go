package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/util/jsonpath"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ObjectTables prints objects, one table for each kind with objects, in the order of the table of kinds. wide adds the labels,
// the file of the spec, and why an object is as it is.
func ObjectTables(w io.Writer, p Palette, table settle.Table, entries []*state.Entry, wide bool, now time.Time) error {
	byKind := map[string][]*state.Entry{}
	for _, e := range entries {
		byKind[e.Kind] = append(byKind[e.Kind], e)
	}
	printed := false
	for _, k := range table {
		if len(byKind[k.Name]) == 0 {
			continue
		}
		if printed {
			fmt.Fprintln(w)
		}
		printed = true
		if err := kindTable(w, p, &k, byKind[k.Name], wide, now); err != nil {
			return err
		}
	}
	return nil
}

func kindTable(w io.Writer, p Palette, k *settle.Kind, entries []*state.Entry, wide bool, now time.Time) error {
	heads := []string{"NAME"}
	for _, c := range readiness.ColumnsOf(k) {
		heads = append(heads, c.Head)
	}
	if wide {
		heads = append(heads, "LABELS", "FILE", "STATUS")
	}
	t := NewTable(p, heads...)
	for _, e := range entries {
		row := []Cell{{Text: e.Name}}
		for _, c := range readiness.ColumnsOf(k) {
			if c.Text != nil {
				row = append(row, Word(c.Text(e)))
			} else {
				row = append(row, Cell{Text: ageOf(c.Time(e), now)})
			}
		}
		if wide {
			row = append(row, wideCells(e)...)
		}
		t.Cells(row...)
	}
	return t.Write(w)
}

func wideCells(e *state.Entry) []Cell {
	labels, file := "", ""
	if e.Object != nil {
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(e.Object.Metadata.Labels)) {
			pairs = append(pairs, k+"="+e.Object.Metadata.Labels[k])
		}
		labels, file = strings.Join(pairs, ","), e.Object.Path
	}
	return []Cell{{Text: cmp.Or(labels, none)}, {Text: cmp.Or(file, none)}, {Text: readiness.Because(e)}}
}

// ObjectLines writes a line for each entry, with the object's reference, ready condition, phase and reason in columns
// of fixed width, as they come. wide adds the labels and the file of the spec before the reason.
func ObjectLines(w io.Writer, p Palette, entries []*state.Entry, wide bool) error {
	var b strings.Builder
	for _, e := range entries {
		ready, phase := Word(readiness.ReadyWord(e)), Word(readiness.PhaseWord(e))
		more := ""
		if wide {
			cells := wideCells(e)
			more = Line(cells[0].Text) + "  " + Line(cells[1].Text) + "  "
		}
		fmt.Fprintf(&b, "%-32s  %s  %s  %s%s\n", Line(e.Ref.String()), p.Paint(ready.Color, fmt.Sprintf("%-7s", ready.Text)),
			p.Paint(phase.Color, fmt.Sprintf("%-10s", phase.Text)), more, Line(readiness.Because(e)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// KindCounts counts the objects of each kind that has some.
func KindCounts(w io.Writer, p Palette, table settle.Table, counts map[string]readiness.StandingCount) error {
	t := NewTable(p, "KIND", "TOTAL", "READY", "WAITING", "FAILED", "INVALID")
	for _, k := range table {
		if c := counts[k.Name]; c.Total() > 0 {
			t.Row(k.Plural, strconv.Itoa(c.Total()), strconv.Itoa(c.Ready), strconv.Itoa(c.Waiting), strconv.Itoa(c.Failed), strconv.Itoa(c.Invalid))
		}
	}
	return t.Write(w)
}

// JSONPath returns what a template of kubectl picks of a value's JSON form. Missing fields are empty.
func JSONPath(v any, template string) (string, error) {
	parsed := jsonpath.New("template").AllowMissingKeys(true)
	if err := parsed.Parse(template); err != nil {
		return "", err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var fields any
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", err
	}
	var b strings.Builder
	err = parsed.Execute(&b, fields)
	return b.String(), err
}

// StandingTable lists objects with their state, the first of a number of them.
func StandingTable(w io.Writer, p Palette, rows []readiness.Row, total int) error {
	t := NewTable(p, "OBJECT", "READY", "PHASE", "STATUS")
	for _, row := range rows {
		t.Cells(Cell{Text: row.Ref.String()}, Word(row.Ready), Word(row.Phase), Cell{Text: row.Because})
	}
	if err := t.Write(w); err != nil || total <= len(rows) {
		return err
	}
	_, err := fmt.Fprintf(w, "… and %d more; \"reconcile get\" lists them\n", total-len(rows))
	return err
}

func ageOf(t schemas.Time, now time.Time) string {
	if t.IsZero() {
		return none
	}
	return Age(now.Sub(t.Time))
}

// whyBeside returns the reasons that are not among the problems shown below them.
func whyBeside(why []string, problems []schemas.Problem) []string {
	return slices.DeleteFunc(slices.Clone(why), func(line string) bool {
		return slices.ContainsFunc(problems, func(p schemas.Problem) bool { return strings.Contains(line, p.Error()) })
	})
}

// none is shown in an empty cell.
const none = "-"

func issueWord(issue int) string {
	if issue == 0 {
		return "no issue"
	}
	return "#" + strconv.Itoa(issue)
}
