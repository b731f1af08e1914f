// Package ledgers relates clarifications to the ledgers that other programs also write: what belongs into a ledger, and which of its
// records cannot be asked, or have lost their request.
package ledgers

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// LedgersOf returns what belongs into the ledgers that the changed objects bear on: for each such issue the records of
// all our requests that have a number, by name.
func LedgersOf(t *state.Tree, changed []schemas.Ref) map[int][]schemas.Clarification {
	out := map[int][]schemas.Clarification{}
	for _, ref := range changed {
		if issue, ok := issueOfRef(t, ref); ok {
			out[issue] = nil
		}
	}
	if len(out) == 0 {
		return out
	}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st := clarifications.Status(e)
		issue, _, ok := clarify.ParseID(st.ID)
		if _, touched := out[issue]; !ok || !touched {
			continue
		}
		if spec := clarifications.Spec(e); spec != nil && e.Object.Digest == st.ObservedDigest {
			out[issue] = append(out[issue], clarify.Record(e.Name, spec, st))
			settle.Release(e, settle.Out{})
		}
	}
	return out
}

// IsFolded reports whether a ledger, nil for none, has each of our records in its current form.
func IsFolded(ledger *state.Ledger, ours []schemas.Clarification) bool {
	if ledger == nil {
		return len(ours) == 0
	}
	have := ledger.Records()
	byID := make(map[string]*schemas.Clarification, len(have))
	for i := range have {
		byID[have[i].ID] = &have[i]
	}
	return !slices.ContainsFunc(ours, func(c schemas.Clarification) bool {
		old := byID[c.ID]
		return old == nil || !reflect.DeepEqual(*old, c)
	})
}

// Carry is [clarify.Carry] for the ledger of an issue, with what the tree knows of its requests.
func Carry(t *state.Tree, issue int, base, there, next []byte) ([]byte, error) {
	var ours []schemas.Clarification
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		spec, st := clarifications.Spec(e), clarifications.Status(e)
		if of, _, ok := clarify.ParseID(st.ID); !ok || of != issue || spec == nil {
			continue
		}
		own := *st
		own.Thread = slices.DeleteFunc(slices.Clone(st.Thread), func(t schemas.ThreadEntry) bool { return t.Source == clarify.SourceLedger })
		ours = append(ours, clarify.Record(e.Name, spec, &own))
	}
	return clarify.Carry(base, there, next, issue, ours)
}

// Under lists the issues of the ledgers that a request, or a node of a DAG that asked, rests on.
func Under(t *state.Tree, owner schemas.Ref, node string) []int {
	if issue, ok := issueOfRef(t, owner); ok {
		return []int{issue}
	}
	if owner.Kind != schemas.DAGKind.Name {
		return nil
	}
	var out []int
	for _, q := range clarifications.NewIndex(t).QuestionsOf(owner.Name) {
		if q.Node == node {
			out = append(out, q.Spec.Issue)
		}
	}
	return out
}

// Behind returns the issues whose ledgers lack one of our records: no run could write it yet.
func Behind(t *state.Tree) map[int]bool {
	var requests []schemas.Ref
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		requests = append(requests, e.Ref)
	}
	behind := map[int]bool{}
	for issue, ours := range LedgersOf(t, requests) {
		if !IsFolded(t.Ledger(issue), ours) {
			behind[issue] = true
		}
	}
	return behind
}

// issueOfRef is the issue whose ledger an object bears on.
func issueOfRef(t *state.Tree, ref schemas.Ref) (int, bool) {
	switch ref.Kind {
	case schemas.ClarificationRequestKind.Name:
		issue, _, ok := clarify.ParseID(clarifications.Status(t.Entry(ref)).ID)
		return issue, ok
	case state.LedgerKind:
		issue, err := strconv.Atoi(strings.TrimPrefix(ref.Name, "issue-"))
		return issue, err == nil
	}
	return 0, false
}

// Orphaned reports whether the request of a ledger's record is missing from the tree, or its name belongs to another
// question now. The record stays, and blocks nothing.
func Orphaned(t *state.Tree, c *schemas.Clarification) bool {
	if c.Request == "" {
		return false // another program wrote it
	}
	e := t.Entry(schemas.ClarificationRequestKind.Ref(c.Request))
	if e == nil || e.Gone() {
		return true
	}
	id := clarifications.Status(e).ID
	return id != "" && id != c.ID
}
