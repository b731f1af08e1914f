package main

import (
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// count tells how many objects there are, and how they stand.
type count struct {
	Ready   int `json:"ready"`
	Waiting int `json:"waiting"` // for someone, or for their turn, as they should
	Failed  int `json:"failed"`  // or stalled
	Invalid int `json:"invalid"`
}

func (c count) total() int { return c.Ready + c.Waiting + c.Failed + c.Invalid }

func (c *count) add(o count) {
	c.Ready += o.Ready
	c.Waiting += o.Waiting
	c.Failed += o.Failed
	c.Invalid += o.Invalid
}

// standing counts one object: exactly one field of the result is 1, or none for an object whose spec is gone.
func standing(e *state.Entry) count {
	switch b := e.Brief(); {
	case e.Broken():
		return count{Invalid: 1}
	case e.Gone():
		return count{}
	case b.Stalled == schemas.True:
		return count{Failed: 1}
	case b.Ready == schemas.True || controllers.RefusedReply(e) || b.Ready == "" && !expectsStatus(e):
		return count{Ready: 1}
	}
	return count{Waiting: 1}
}

// expectsStatus reports whether a kind has a status at all times. Replies and observations have one only while
// something is wrong with them, settings never.
func expectsStatus(e *state.Entry) bool {
	switch e.Kind {
	case schemas.ReplyKind.Name, schemas.ObservationKind.Name, schemas.SettingsKind.Name:
		return false
	}
	return true
}

// countAll counts objects by kind.
func countAll(list []*state.Entry) map[string]count {
	counts := map[string]count{}
	for _, e := range list {
		is := standing(e)
		if is.total() > 0 {
			is.add(counts[e.Kind])
			counts[e.Kind] = is
		}
	}
	return counts
}

// addDormant counts the objects of a tree that are dormant: they are ready.
func addDormant(counts map[string]count, t *state.Tree) {
	for _, k := range kinds() {
		c := counts[k.Name]
		for range t.Dormant(k.Name) {
			c.Ready++
		}
		if c.total() > 0 {
			counts[k.Name] = c
		}
	}
}

func condition(e *state.Entry, typ string) *schemas.Condition {
	if !e.HasStatus() {
		return nil
	}
	return e.Status().Base().Condition(typ)
}

func isTrue(c *schemas.Condition) bool { return c != nil && c.Status == schemas.True }

// readyCell is the READY column: True, False, Unknown before the first run, or - where there is nothing to say.
func readyCell(e *state.Entry) render.Cell {
	word := string(schemas.Unknown)
	switch c := condition(e, schemas.Ready); {
	case e.Broken():
		word = string(schemas.False)
	case c != nil:
		word = string(c.Status)
	case e.Gone() || !expectsStatus(e):
		word = "-"
	}
	return render.Cell{Text: word, Color: render.StateColor(word)}
}

// phaseCell is the PHASE column.
func phaseCell(e *state.Entry) render.Cell {
	word := "-"
	switch {
	case e.Broken():
		return render.Cell{Text: "Invalid", Color: render.Red}
	case e.Gone():
		word = "Removed"
	case e.HasStatus() && e.Status().Base().Phase != "":
		word = e.Status().Base().Phase
	}
	return render.Cell{Text: word, Color: render.StateColor(word)}
}

// because is why an object is as it is, in a line.
func because(e *state.Entry) string {
	if e.Broken() {
		return e.Problems[0].Error()
	}
	c := condition(e, schemas.Ready)
	switch {
	case c == nil && expectsStatus(e) && !e.Gone():
		return "no run has looked at it yet"
	case c == nil:
		return ""
	case c.Message == "":
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}
