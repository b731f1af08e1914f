package render

import (
	"fmt"
	"io"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ObjectTables prints objects, one table for each kind with objects, in the order of the table of kinds.
func ObjectTables(w io.Writer, p Palette, table controllers.Table, entries []*state.Entry, now time.Time) error {
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
		if err := kindTable(w, p, &k, byKind[k.Name], now); err != nil {
			return err
		}
	}
	return nil
}

func kindTable(w io.Writer, p Palette, k *controllers.Kind, entries []*state.Entry, now time.Time) error {
	heads := []string{"NAME"}
	for _, c := range k.ColumnsOrDefault() {
		heads = append(heads, c.Head)
	}
	t := NewTable(p, heads...)
	for _, e := range entries {
		row := []Cell{{Text: e.Name}}
		for _, c := range k.ColumnsOrDefault() {
			if c.Text != nil {
				row = append(row, Word(c.Text(e)))
			} else {
				row = append(row, Cell{Text: ageOf(c.Time(e), now)})
			}
		}
		t.Cells(row...)
	}
	return t.Write(w)
}

// Word returns a cell with a word in the color of its state, or a dash for "".
func Word(s string) Cell {
	if s == "" {
		return Cell{Text: none}
	}
	return Cell{Text: s, Color: StateColor(s)}
}

// StandingTable lists at most rows objects with their state.
func StandingTable(w io.Writer, p Palette, list []*state.Entry, rows int) error {
	t := NewTable(p, "OBJECT", "READY", "PHASE", "STATUS")
	for _, e := range list[:min(rows, len(list))] {
		t.Cells(Cell{Text: e.Ref.String()}, Word(controllers.ReadyWord(e)), Word(controllers.PhaseWord(e)),
			Cell{Text: controllers.Because(e)})
	}
	if err := t.Write(w); err != nil || len(list) <= rows {
		return err
	}
	_, err := fmt.Fprintf(w, "… and %d more; \"reconcile get\" lists them\n", len(list)-rows)
	return err
}

// Took returns how long the last attempt of a node ran; "" if it has not ended.
func Took(n schemas.NodeStatus) string {
	if n.StartedAt.IsZero() || n.FinishedAt.IsZero() {
		return ""
	}
	return Age(n.FinishedAt.Sub(n.StartedAt.Time))
}
