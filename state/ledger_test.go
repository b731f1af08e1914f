package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/lock"
)

// ledgerOf is the text of a ledger with one record for each of the given states, numbered from 1.
func ledgerOf(issue int, states ...string) string {
	l := schemas.Ledger{IssueNumber: issue, Clarifications: []schemas.Clarification{}}
	for i, state := range states {
		l.Clarifications = append(l.Clarifications, schemas.Clarification{
			ID: fmt.Sprintf("CLR-%d-%03d", issue, i+1), From: "engineer", To: "architect", Topic: "Schema", Status: state,
			Round: 1, MaxRounds: 5, Thread: []schemas.ClarificationTurn{{Round: 1, From: "engineer", Type: "question", Body: "Which?"}},
		})
	}
	data, err := Encode(l)
	if err != nil {
		panic(err) // of a test
	}
	return string(data)
}

const ledger42 = "state/clarifications/issue-42.json"

func ledgerRefs(issues ...int) []schemas.Ref {
	refs := []schemas.Ref{}
	for _, n := range issues {
		refs = append(refs, ledgerRef(n))
	}
	return refs
}

func TestLedgersAreRead(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		ledger42:                                ledgerOf(42, "resolved", "pending", "abandoned", "postponed"),
		"state/clarifications/issue-7.json":     ledgerOf(7),
		"state/clarifications/issue-07.json":    "no ledger, and nobody's",
		"state/clarifications/notes.json":       "nobody's",
		"state/clarifications/sub/issue-8.json": ledgerOf(8, "pending"),
	})
	for what, s := range map[string]*Store{"cold": open(t, dir), "warm": open(t, dir)} {
		tree := load(t, s)
		all := tree.Ledgers()
		if len(all) != 2 || all[0] != tree.Ledger(7) || all[1] != tree.Ledger(42) || tree.Ledger(8) != nil || len(tree.Problems()) != 0 {
			t.Fatalf("%s: %d ledgers, problems %v", what, len(all), tree.Problems())
		}
		l := tree.Ledger(42)
		if l.Issue != 42 || l.Last != 4 || l.Open != 2 || l.Path != ledger42 || l.Ref().Name != "issue-42" {
			t.Errorf("%s: %+v", what, l)
		}
		if got := l.Records(); len(got) != 4 || got[3].Status != "postponed" || got[1].Thread[0].Body != "Which?" {
			t.Errorf("%s: %+v", what, got)
		}
		if len(tree.Ledger(7).Records()) != 0 || tree.Len() != 0 {
			t.Errorf("%s: %d objects", what, tree.Len())
		}
	}
}

func TestDamagedLedgers(t *testing.T) {
	whole := ledgerOf(42, "pending")
	for name, c := range map[string]struct{ text, want string }{
		"cut":           {whole[:len(whole)/2], "not JSON"},
		"empty":         {"", "not JSON"},
		"null":          {"null", "missing"},
		"no list":       {`{"issueNumber": 42}`, "missing"},
		"no number":     {`{"clarifications": []}`, "missing"},
		"another issue": {ledgerOf(43), "of issue 43"},
		"a list":        {"[]", "the file holds one array"},
		"merge":         {"<<<<<<< HEAD\n" + whole, "conflict markers"},
	} {
		dir := t.TempDir()
		put(t, dir, map[string]string{ledger42: c.text})
		for range 2 { // the second time through the cache
			tree := load(t, open(t, dir))
			ps := tree.Problems()
			if tree.Ledger(42) != nil || len(ps) != 1 || ps[0].Code != DamagedState || ps[0].Ref != ledgerRef(42) ||
				ps[0].Path != ledger42 || !strings.Contains(ps[0].Message, c.want) {
				t.Errorf("%s: %v, ledger %v", name, ps, tree.Ledger(42))
			}
		}
	}
}

// TestRejectedRecords: of a ledger with a record that cannot be used, that one is reported, and all others are read.
func TestRejectedRecords(t *testing.T) {
	whole := ledgerOf(42, "pending", "pending", "resolved")
	for name, c := range map[string]struct {
		old, new, want string
		last, line     int
	}{
		"another's id":      {"CLR-42-003", "CLR-43-003", `record 3 cannot be used: its id "CLR-43-003" is not one of issue 42`, 2, 48},
		"no id":             {"CLR-42-003", "", `record 3 cannot be used: its id "" is not one of issue 42`, 2, 48},
		"no sequence":       {"CLR-42-001", "CLR-42-1", `record 1 cannot be used: its id "CLR-42-1"`, 3, 4},
		"text as round":     {`"round": 1`, `"round": "one"`, "record 1 cannot be used: round cannot be of the type string", 3, 4},
		"a date that is no": {`"created": null`, `"created": "yesterday"`, `record 1 cannot be used: time: "yesterday" is not RFC 3339`, 3, 4},
	} {
		dir := t.TempDir()
		text := strings.Replace(whole, c.old, c.new, 1)
		put(t, dir, map[string]string{ledger42: text})
		for range 2 { // the second time through the cache
			tree := load(t, open(t, dir))
			ps, l := tree.Problems(), tree.Ledger(42)
			if l == nil || len(l.Records()) != 2 || l.Last != c.last || len(l.Rejected) != 1 {
				t.Fatalf("%s: %+v", name, l)
			}
			if len(ps) != 1 || ps[0].Code != rejectedRecordCode || ps[0].Ref != ledgerRef(42) || ps[0].Path != ledger42 ||
				ps[0].Line != c.line || !strings.Contains(ps[0].Message, c.want) {
				t.Errorf("%s: %v in line %d of\n%s", name, ps, ps[0].Line, text)
			}
		}
	}
}

// TestDoubledNumbers: a ledger says that records have one number, through the cache, too.
func TestDoubledNumbers(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{ledger42: strings.Replace(ledgerOf(42, "pending", "pending"), "CLR-42-002", "CLR-42-001", 1),
		"state/clarifications/issue-7.json": ledgerOf(7, "pending", "pending")})
	for range 2 {
		tree := load(t, open(t, dir))
		if !tree.Ledger(42).Doubled || tree.Ledger(7).Doubled {
			t.Errorf("doubled: %t and %t", tree.Ledger(42).Doubled, tree.Ledger(7).Doubled)
		}
	}
}

// TestPlaceOfDamage checks that a ledger that cannot be read is reported with its place, through the cache, too.
func TestPlaceOfDamage(t *testing.T) {
	dir := t.TempDir()
	text := "{\n  \"issueNumber\": 42,\n  \"clarifications\": [\n    {\"id\": 1}]}"
	put(t, dir, map[string]string{ledger42: text, "state/clarifications/issue-1.json": "{\n  ]"})
	for range 2 {
		ps := load(t, open(t, dir)).Problems()
		if len(ps) != 2 || ps[0].Place.String() != "state/clarifications/issue-1.json:2:3" || ps[1].Line != 4 {
			t.Errorf("%v", ps)
		}
	}
}

// TestTruncatedLedger cuts a ledger at every length: none but the whole is taken for a ledger, so none is overwritten as
// if there had been nothing.
func TestTruncatedLedger(t *testing.T) {
	whole := strings.TrimSpace(ledgerOf(42, "pending", "resolved"))
	for n := range len(whole) {
		if l, err := ParseLedger(ledger42, []byte(whole[:n])); err == nil {
			t.Fatalf("cut to %d of %d bytes it has %d records", n, len(whole), len(l.Records()))
		}
	}
}

func TestForeignLedgerFields(t *testing.T) {
	text := "\ufeff" + strings.Replace(ledgerOf(42, "pending"), `"topic"`, `"priority": {"a": [1]}, "topic"`, 1)
	l, err := ParseLedger(ledger42, []byte(text))
	if err != nil || l.Open != 1 || l.Records()[0].Topic != "Schema" {
		t.Errorf("%+v, %v", l, err)
	}
}

// noneLeft is a salvage that finds nothing.
func noneLeft([]byte, int) []byte { return nil }

// TestSalvageLedger: what is left of a damaged ledger stands in its place, and is told as a change.
func TestSalvageLedger(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{ledger42: "{"})
	s := open(t, dir)
	tree := load(t, s)
	left := strings.Replace(ledgerOf(42, "resolved"), "{", `{"lastId": "CLR-42-007", `, 1)
	locked(t, s, func() {
		moved, err := s.MoveAside(t.Context(), func(damaged []byte, issue int) []byte {
			if string(damaged) != "{" || issue != 42 {
				t.Errorf("%q of issue %d", damaged, issue)
			}
			return []byte(left)
		})
		if err != nil || !slices.Equal(moved, []string{ledger42}) {
			t.Errorf("moved %v, %v", moved, err)
		}
	})
	tree, refs := refresh(t, s, tree)
	l := tree.Ledger(42)
	if !slices.Equal(refs, ledgerRefs(42)) || len(tree.Problems()) != 0 || l == nil || len(l.Records()) != 1 || l.Last != 7 {
		t.Fatalf("refs %v, problems %v, %+v", refs, tree.Problems(), l)
	}
	if aside, err := os.ReadFile(filepath.Join(dir, damagedDir, ledger42+".1")); string(aside) != "{" {
		t.Errorf("set aside: %q, %v", aside, err)
	}
	if again := load(t, open(t, dir)).Ledger(42); again == nil || again.Last != 7 {
		t.Errorf("read anew: %+v", again)
	}
}

func TestMoveLedgerAside(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{ledger42: "{"})
	s := open(t, dir)
	tree := load(t, s)
	locked(t, s, func() {
		moved, err := s.MoveAside(t.Context(), noneLeft)
		if err != nil || !slices.Equal(moved, []string{ledger42}) {
			t.Errorf("moved %v, %v", moved, err)
		}
	})
	tree, refs := refresh(t, s, tree)
	if !slices.Equal(refs, ledgerRefs(42)) || len(tree.Problems()) != 0 || tree.Ledger(42) != nil {
		t.Errorf("refs %v, problems %v", refs, tree.Problems())
	}
	if _, err := os.Stat(filepath.Join(dir, damagedDir, ledger42+".1")); err != nil {
		t.Error(err)
	}
	if _, refs = refresh(t, s, tree); len(refs) != 0 {
		t.Errorf("told again: %v", refs)
	}
}

func TestLedgersAreRefreshed(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{ledger42: ledgerOf(42, "pending"), "specs/health.yaml": sessionYAML})
	s := open(t, dir)
	tree := load(t, s)
	step := func(what string, want []schemas.Ref, last int) {
		t.Helper()
		next, refs, err := s.Refresh(t.Context(), tree, nil)
		must(t, err)
		got := 0
		if l := next.Ledger(42); l != nil {
			got = l.Last
		}
		if !slices.Equal(refs, want) || got != last || next.Entry(health) == nil {
			t.Errorf("%s: %v, the last is %d", what, refs, got)
		}
		tree = next
	}
	step("nothing", nil, 1)
	put(t, dir, map[string]string{ledger42: ledgerOf(42, "pending", "pending")})
	step("changed", ledgerRefs(42), 2)
	put(t, dir, map[string]string{"state/clarifications/issue-1.json": ledgerOf(1)})
	step("another", ledgerRefs(1), 2)
	put(t, dir, map[string]string{"specs/health.yaml": strings.Replace(sessionYAML, "Health", "H", 1)})
	step("no ledger", []schemas.Ref{health}, 2)
	must(t, os.Remove(filepath.Join(dir, ledger42)))
	step("removed", ledgerRefs(42), 0)
	put(t, dir, map[string]string{ledger42: "{"})
	step("damaged", nil, 0)
	put(t, dir, map[string]string{ledger42: ledgerOf(42, "pending")})
	step("repaired", ledgerRefs(42), 1)
}

// TestOwnFoldsAreNoNews checks that what this process folds is in the next tree without being reported, and that what
// another writes after it is.
func TestOwnFoldsAreNoNews(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	tree := load(t, s)
	fold := func(s *Store, states ...string) {
		t.Helper()
		must(t, s.Fold(t.Context(), ledger42, func([]byte) ([]byte, error) { return []byte(ledgerOf(42, states...)), nil }))
	}
	for _, hints := range [][]string{{}, nil, {ledger42}, {"state"}} {
		states := make([]string, len(tree.Ledgers())+len(hints)+1)
		fold(s, states...)
		next, refs, err := s.Refresh(t.Context(), tree, hints)
		must(t, err)
		if l := next.Ledger(42); len(refs) != 0 || l == nil || l.Last != len(states) {
			t.Errorf("hints %v: %v, %+v", hints, refs, l)
		}
		tree = next
	}
	fold(s, "pending")
	fold(other, "pending", "resolved")
	next, refs := refresh(t, s, tree)
	if !slices.Equal(refs, ledgerRefs(42)) || next.Ledger(42).Last != 2 {
		t.Errorf("after another's: %v, %+v", refs, next.Ledger(42))
	}
	next, refs = refresh(t, s, next)
	if len(refs) != 0 || next.Ledger(42).Last != 2 {
		t.Errorf("told again: %v", refs)
	}
}

func TestLedgersInTrees(t *testing.T) {
	parse := func(issue int, states ...string) *Ledger {
		l, err := ParseLedger((&layout{state: "state"}).ledgerPath(ledgerRef(issue).Name), []byte(ledgerOf(issue, states...)))
		must(t, err)
		return l
	}
	one, two, newer := parse(1), parse(2, "pending"), parse(1, "resolved")
	a := NewTree(nil, nil, nil).WithLedgers(two, one)
	e := &Entry{Ref: health}
	e.SetStatus(&schemas.SessionStatus{})
	b := a.WithLedgers(newer).With(e).withSettings(a.Settings(), nil)
	if a.Ledger(1) != one || b.Ledger(1) != newer || b.Ledger(2) != two || len(b.Ledgers()) != 2 || b.Ledger(3) != nil {
		t.Errorf("%v and %v", a.Ledgers(), b.Ledgers())
	}
	if got := diffModels(a, b); !slices.Equal(got, append(ledgerRefs(1), health)) {
		t.Errorf("different: %v", got)
	}
	if got := diffModels(b, a.withoutLedgers(map[int]bool{2: true})); !slices.Equal(got, append(ledgerRefs(1, 2), health)) {
		t.Errorf("different: %v", got)
	}
	if l, err := ParseLedger("state/clarifications/other.json", []byte(ledgerOf(1))); err == nil {
		t.Errorf("%+v", l)
	}
}

// TestLedgerRecordsOnce asks for the records of a ledger from the cache in many goroutines.
func TestLedgerRecordsOnce(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{ledger42: ledgerOf(42, "resolved", "resolved")})
	settleFiles(t, dir)
	s := open(t, dir)
	l := load(t, s).Ledger(42)
	if n := s.decoded.Load(); n != 0 {
		t.Errorf("%d files were decoded", n)
	}
	var wg sync.WaitGroup
	got := make([][]schemas.Clarification, 8)
	for i := range got {
		wg.Go(func() { got[i] = l.Records() })
	}
	wg.Wait()
	for _, r := range got {
		if len(r) != 2 || &r[0] != &got[0][0] {
			t.Fatalf("%d records", len(r))
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte(ledgerOf(42, "pending", "resolved")))
	f.Add([]byte(`{"issueNumber":42,"clarifications":[{"id":"CLR-42-001","created":"2026-02-27T10:00:00+01:00"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLedger(ledger42, data)
		if err != nil {
			return
		}
		want, _, err := decodeLedger(42, data)
		if err != nil {
			t.Fatal(err)
		}
		again := &Ledger{Issue: l.Issue, packed: l.packed}
		for _, got := range [][]schemas.Clarification{l.Records(), again.Records()} {
			if !reflect.DeepEqual(got, want) || l.Open > len(want) || len(want) > 0 && l.Last == 0 && want[0].ID != "CLR-42-000" {
				t.Errorf("%+v and %+v", got, want)
			}
		}
	})
}

// TestLedgerBeingWritten: another program writes its ledger in place, under its lock, and is seen half way. Nothing is moved
// before the lock is had, and nothing that is whole by then: its records would be lost.
func TestLedgerBeingWritten(t *testing.T) {
	dir := t.TempDir()
	whole := ledgerOf(42, "pending", "resolved")
	put(t, dir, map[string]string{ledger42: whole[:len(whole)/2]})
	s := open(t, dir)
	tree := load(t, s)
	if tree.Ledger(42) != nil {
		t.Fatal("half a ledger was taken for one")
	}
	theirs, err := lock.Acquire(t.Context(), s.root, ledger42, lock.Options{Agent: "theirs"})
	must(t, err)
	s.locks.Tries = 1
	locked(t, s, func() {
		if moved, err := s.MoveAside(t.Context(), noneLeft); !errors.Is(err, ErrBusy) || len(moved) > 0 {
			t.Errorf("while they write: moved %v, %v", moved, err)
		}
		put(t, dir, map[string]string{ledger42: whole})
		must(t, theirs.Release())
		if moved, err := s.MoveAside(t.Context(), noneLeft); err != nil || len(moved) > 0 {
			t.Errorf("when they have written: moved %v, %v", moved, err)
		}
	})
	if tree, _ = refresh(t, s, tree, ledger42); tree.Ledger(42) == nil || tree.Ledger(42).Last != 2 {
		t.Errorf("the ledger is %+v", tree.Ledger(42))
	}
}

// TestFoldWhatIsBeingWritten reads half of a file, and the whole under the lock: the fold that could make nothing of the
// half is asked again.
func TestFoldWhatIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	whole := ledgerOf(42, "pending")
	put(t, dir, map[string]string{ledger42: whole[:len(whole)/2]})
	s := open(t, dir)
	var seen []string
	fold := func(old []byte) ([]byte, error) {
		seen = append(seen, string(old))
		if _, err := ParseLedger(ledger42, old); err != nil {
			put(t, dir, map[string]string{ledger42: whole}) // they are done
			return nil, err
		}
		return append(old, '\n'), nil
	}
	must(t, s.Fold(t.Context(), ledger42, fold))
	if len(seen) != 2 || seen[1] != whole {
		t.Errorf("folded %q", seen)
	}
	put(t, dir, map[string]string{ledger42: "{}"})
	if err := s.Fold(t.Context(), ledger42, fold); err == nil || len(seen) != 3 {
		t.Errorf("what is JSON and no ledger: %v after %d calls", err, len(seen))
	}
}
