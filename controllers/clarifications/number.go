package clarifications

import (
	"slices"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// numberOf is the number that a request has, or gets now: "" where it cannot have any.
func (w *Requests) numberOf(e *state.Entry) string {
	spec := Spec(e)
	if id := Status(e).ID; id != "" && !w.lost(e, spec, id) {
		return id
	}
	if w.numbers == nil {
		w.giveNumbers()
	}
	return w.numbers[e.Name]
}

// lost reports whether the ledger gives the number to another clarification, or this one another number. Where two
// branches gave it, the request that the ledger knows by it keeps it; else, or if it knows both, the first by name.
func (w *Requests) lost(e *state.Entry, spec *schemas.ClarificationRequestSpec, id string) bool {
	l, first := w.Tree.Ledger(spec.Issue), w.twin(e, id)
	switch {
	case l == nil:
		return first != nil
	case recordOf(l, e.Name, id, spec) != nil:
		return first != nil && recordOf(l, first.Name, id, Spec(first)) != nil
	}
	known := recordedAs(l, e.Name, spec)
	return first != nil || known != "" && w.free(known, e) ||
		slices.ContainsFunc(l.Records(), func(c schemas.Clarification) bool { return c.ID == id })
}

// twin returns the first clarification request by name that has the same number, if that is another one.
func (w *Requests) twin(e *state.Entry, id string) *state.Entry {
	first := w.Index.WithID(id)
	if first == nil || first.Name == e.Name || Spec(first) == nil {
		return nil
	}
	return first
}

// giveNumbers numbers the requests that have no number and may have one. Some know theirs: their ledger, or another
// program, gave it. The others follow by name: each issue counts on from the highest number that there is.
func (w *Requests) giveNumbers() {
	w.numbers = map[string]string{}
	w.Index.number()
	last := map[int]int{}
	var rest []*state.Entry
	for _, e := range w.Tree.Entries(schemas.ClarificationRequestKind.Name) {
		spec := Spec(e)
		if spec == nil || !w.numberless(e, spec) {
			continue
		}
		w.count(last, spec.Issue)
		if id, ok := w.knownNumber(e, spec); ok {
			w.give(e, id, last)
		} else {
			rest = append(rest, e)
		}
	}
	for _, e := range rest {
		issue := Spec(e).Issue
		w.give(e, clarify.FormatID(issue, last[issue]+1), last)
	}
}

// numberless reports whether a request is to get a number now.
func (w *Requests) numberless(e *state.Entry, spec *schemas.ClarificationRequestSpec) bool {
	st := Status(e)
	if st.ID != "" {
		return w.lost(e, spec, st.ID)
	}
	_, refused := w.refusal(spec, st)
	return !refused
}

// count fills in the highest number of an issue.
func (w *Requests) count(last map[int]int, issue int) {
	if _, ok := last[issue]; ok {
		return
	}
	last[issue] = w.Index.last[issue]
	if l := w.Tree.Ledger(issue); l != nil {
		last[issue] = max(last[issue], l.Last)
	}
}

func (w *Requests) give(e *state.Entry, id string, last map[int]int) {
	if issue, seq, ok := clarify.ParseID(id); ok {
		w.numbers[e.Name], last[issue] = id, max(last[issue], seq)
	}
}

// knownNumber is the number under which a request is on record; "" where it names one that it cannot have.
func (w *Requests) knownNumber(e *state.Entry, spec *schemas.ClarificationRequestSpec) (string, bool) {
	if id := recordedAs(w.Tree.Ledger(spec.Issue), e.Name, spec); id != "" && w.free(id, e) {
		return id, true
	}
	if spec.Imported == "" {
		return "", false
	}
	if issue, _, ok := clarify.ParseID(spec.Imported); !ok || issue != spec.Issue || !w.free(spec.Imported, e) {
		return "", true
	}
	return spec.Imported, true
}

// free reports whether no other request has, or gets, the number.
func (w *Requests) free(id string, e *state.Entry) bool {
	for name, given := range w.numbers {
		if given == id && name != e.Name {
			return false
		}
	}
	by := w.Index.WithID(id)
	return by == nil || by.Name == e.Name
}

// recordedAs is the number under which a ledger knows the request, "" if it does not: a request of that name with another
// question is another matter.
func recordedAs(l *state.Ledger, name string, spec *schemas.ClarificationRequestSpec) string {
	if l == nil {
		return ""
	}
	for _, c := range l.Records() {
		if c.Request == name && sameQuestion(&c, spec) {
			return c.ID
		}
	}
	return ""
}

// recordOf finds the record of a request in a ledger, or nil. Other programs may have dropped the field that names the
// request.
func recordOf(l *state.Ledger, name, id string, spec *schemas.ClarificationRequestSpec) *schemas.Clarification {
	if l == nil {
		return nil
	}
	records := l.Records()
	for i := range records {
		if c := &records[i]; c.ID == id && oursInLedger(c, name, spec) {
			return c
		}
	}
	return nil
}

// oursInLedger reports whether a record is about the request. One without a name and a thread is known by its parties and topic.
func oursInLedger(c *schemas.Clarification, name string, spec *schemas.ClarificationRequestSpec) bool {
	if c.Request != "" {
		return c.Request == name
	}
	bare := len(c.Thread) == 0 && c.From == spec.From && c.To == spec.To && c.Topic == spec.Topic
	return spec.Imported == c.ID || bare || sameQuestion(c, spec)
}
