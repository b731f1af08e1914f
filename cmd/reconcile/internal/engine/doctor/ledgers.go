package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// checkLedgers examines the invariants of ledgers: each number is used once, without gaps, and the records match the
// requests' statuses. The check "state" reports unreadable ledgers.
func checkLedgers(_ context.Context, e *Patient) []Finding {
	if e.tree == nil {
		return skipped("the tree cannot be read")
	}
	var found []Finding
	records := 0
	for _, l := range e.tree.Ledgers() {
		records += len(l.Records())
		found = append(found, checkNumbers(l)...)
	}
	ids, why := ledgers.UnroutableRecords(e.tree)
	for _, id := range ids {
		found = append(found, warn("nobody can answer "+id, why[id]))
	}
	if behind := unledgered(e.tree); len(behind) > 0 {
		found = append(found, warn("ledgers and requests differ about "+some(behind),
			"the next run brings them together: nothing of either is lost"))
	}
	if len(found) > 0 {
		return found
	}
	return ok(fmt.Sprintf("%s, %s: numbered without a gap, and requests agree", counted(len(e.tree.Ledgers()), "ledger"),
		counted(records, "record")))
}

// checkNumbers finds duplicate ids in a ledger, and gaps.
func checkNumbers(l *state.Ledger) []Finding {
	given := map[int]bool{0: true}
	var twice []string
	for _, c := range l.Records() {
		_, seq, _ := clarify.ParseID(c.ID) // every id belongs to this issue: otherwise the ledger is unreadable
		if seq > 0 && given[seq] && !slices.Contains(twice, c.ID) {
			twice = append(twice, c.ID)
		}
		given[seq] = true
	}
	var found []Finding
	for _, r := range l.Rejected {
		if _, seq, ok := clarify.ParseID(r.ID); ok {
			given[seq] = true
		}
		found = append(found, warn(fmt.Sprintf("%s:%d: record %d cannot be used: %s", l.Path, r.Line, r.Number, r.Reason),
			"all other records are used; have the program that wrote this one correct it, or remove it"))
	}
	if len(twice) > 0 {
		found = append(found, warn(fmt.Sprintf("%s: several records have the id %s", l.Path, some(twice)),
			"two branches or programs gave it: the next run gives all but one the next numbers"))
	}
	if missing := l.Last + 1 - len(given); missing > 0 {
		first := 1
		for given[first] {
			first++
		}
		found = append(found, warn(fmt.Sprintf("%s: %s missing, the first is %s", l.Path, counted(missing, "number"),
			clarify.FormatID(l.Issue, first)), "somebody left them out or removed records; git log tells who"))
	}
	return found
}

// unledgered lists, by id, requests whose record in the ledger is missing or differs from their status.
func unledgered(t *state.Tree) []string {
	damaged := map[schemas.Ref]bool{}
	for _, p := range t.Problems() {
		damaged[p.Ref] = p.Code == damagedState || damaged[p.Ref]
	}
	byIssue := map[int]map[string]*schemas.Clarification{}
	var ids []string
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, _ := e.Status().(*schemas.ClarificationRequestStatus)
		if st == nil || e.Object == nil || e.Object.Digest != st.ObservedDigest {
			continue
		}
		issue, _, ok := clarify.ParseID(st.ID)
		if !ok || damaged[schemas.Ref{Kind: state.LedgerKind, Name: fmt.Sprintf("issue-%d", issue)}] {
			continue
		}
		if byIssue[issue] == nil {
			byIssue[issue] = recordsByID(t.Ledger(issue))
		}
		want := clarify.Record(e.Name, schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object), st)
		if have := byIssue[issue][st.ID+" "+e.Name]; have == nil || !sameRecord(have, &want) {
			ids = append(ids, st.ID)
		}
		e.Object.Release()
		e.ReleaseStatus()
	}
	slices.Sort(ids)
	return ids
}

// recordsByID indexes records by id and request. l may be nil.
func recordsByID(l *state.Ledger) map[string]*schemas.Clarification {
	index := map[string]*schemas.Clarification{}
	if l == nil {
		return index
	}
	records := l.Records()
	for i := range records {
		index[records[i].ID+" "+records[i].Request] = &records[i]
	}
	return index
}

func sameRecord(a, b *schemas.Clarification) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
