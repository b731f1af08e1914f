package memory

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

// captured is a world with one issue and so many observations, each in a capture of its own.
func captured(t *testing.T, seed uint64, n int) *world {
	w := newWorld(t, seed)
	for range n {
		w.capture(pick(w.r, schemas.Categories()), w.text(40), w.text(10))
	}
	w.fold()
	return w
}

// capture adds an observation of issue 0, and returns its id.
func (w *world) capture(category, content, summary string) string {
	w.n++
	e := schemas.ObservationEntry{Category: category, Content: content, Summary: summary}
	s := Spec{Name: fmt.Sprintf("cap-%d", w.n), Digest: fmt.Sprintf("sha256:%064x", w.n),
		ObservationSpec: &schemas.ObservationSpec{
			Agent: "engineer", Timestamp: schemas.NewTime(w.tick()), Entries: []schemas.ObservationEntry{e}}}
	w.specs[s.Name] = s
	return idsOf(s)[0]
}

// compact compacts issue 0 and folds; false: there was nothing to do.
func (w *world) compact() bool {
	f := w.folded[0]
	r, ok := NewFacts(w.truth()).Compact(&f)
	if ok {
		w.record(r)
		w.fold()
	}
	return ok
}

func (w *world) undo() {
	r, ok := NewFacts(w.truth()).Undo(0, schemas.StampOfTime(w.tick()), "me", "")
	if !ok {
		w.t.Fatal("there is nothing to undo")
	}
	w.record(r)
	w.fold()
}

// TestT11_CompactionMerges: an issue of n observations has at most n/2 after it, all originals are in the archive, what
// was decided is still said, and undoing it brings back every byte.
func TestT11_CompactionMerges(t *testing.T) {
	for n := range 40 {
		w := captured(t, uint64(n), n)
		before, originals := w.files[0], w.folded[0].Observations
		if did := w.compact(); did != (n >= 2) {
			t.Fatalf("%d observations: compacted %t", n, did)
		}
		if n < 2 {
			continue
		}
		after := w.folded[0]
		if len(after.Observations) > n/2 {
			t.Errorf("%d observations became %d", n, len(after.Observations))
		}
		checkKept(t, originals, &after)
		if w.compact() {
			t.Error("it is compacted twice")
		}
		w.undo()
		if !bytes.Equal(w.files[0], before) || w.archives[0] != nil {
			t.Errorf("undone it is\n%s\nbefore\n%s", w.files[0], before)
		}
		if !w.compact() || !slices.EqualFunc(w.folded[0].Observations, after.Observations, sameText) {
			t.Error("compacted again it is another one")
		}
	}
}

func sameText(a, b schemas.Observation) bool { return a.ID == b.ID && a.Content == b.Content }

// checkKept checks that nothing of the originals is lost.
func checkKept(t *testing.T, originals []schemas.Observation, after *Folded) {
	t.Helper()
	byID := map[string]schemas.Observation{}
	for _, o := range slices.Concat(after.Archived, after.Observations) {
		byID[o.ID] = o
	}
	all := ""
	for _, o := range after.Observations {
		all += o.Content + "\n"
		if n := utf8.RuneCountInString(o.Content); n > contentLimit || utf8.RuneCountInString(o.Summary) > 500 ||
			!schemas.IsObservationID(o.ID) {
			t.Errorf("%s has %d characters and the summary %q", o.ID, n, o.Summary)
		}
		if len(o.Compacts) > 0 && (o.Tokens == 0 || o.Timestamp.IsZero() || o.Agent == "") {
			t.Errorf("%s is not whole", o.ID)
		}
	}
	for _, o := range originals {
		if kept, ok := byID[o.ID]; !ok || kept.Content != o.Content {
			t.Errorf("%s is not kept", o.ID)
		}
		if !byID[o.ID].Archived {
			continue
		}
		said := strings.TrimSuffix(cutFlat(flat(o.Summary), statedLimit), ellipsis)
		if !strings.Contains(flat(all), said) {
			t.Errorf("nothing says %.60q", said)
		}
		if o.Category == schemas.CategoryDecision && !strings.Contains(all, o.ID) {
			t.Errorf("the decision %s is not named", o.ID)
		}
	}
}

// TestMergeIsOrderless: whoever compacts, in whatever order, gets the same.
func TestMergeIsOrderless(t *testing.T) {
	for seed := range uint64(30) {
		w := captured(t, seed, 25)
		all := slices.Clone(w.folded[0].Observations)
		want := merged(all)
		w.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		got := merged(all)
		if len(got) > 12 || !slices.EqualFunc(got, want, func(a,
			b schemas.Observation) bool {
			return fmt.Sprint(a) == fmt.Sprint(b)
		}) {
			t.Fatalf("%d, not %d", len(got), len(want))
		}
		w.compact()
		if !slices.EqualFunc(w.folded[0].Observations, want, sameText) {
			t.Fatal("folding a compaction is not merging")
		}
	}
}

// TestMergeOfLongOnes: the longest that may be captured can still be halved, without losing a decision.
func TestMergeOfLongOnes(t *testing.T) {
	for n := 2; n < 12; n++ {
		w := newWorld(t, uint64(n))
		for i := range n {
			w.capture(schemas.CategoryDecision, strings.Repeat("ä", 1990)+fmt.Sprint(i), fmt.Sprintf("no. %d ",
				i)+strings.Repeat("ü", 490))
		}
		w.fold()
		originals := w.folded[0].Observations
		w.compact()
		if got := w.folded[0]; len(got.Observations) > n/2 {
			t.Errorf("%d became %d", n, len(got.Observations))
		}
		f := w.folded[0]
		checkKept(t, originals, &f)
	}
}

// TestRelatedOnesComeTogether: by words or by what they are about, within a category.
func TestRelatedOnesComeTogether(t *testing.T) {
	w := newWorld(t, 1)
	lock1 := w.capture(schemas.CategoryDecision, "The lock file is taken before the manifest is written.", "")
	retry := w.capture(schemas.CategoryDecision, "Retries wait thirty seconds, then double.", "")
	lock2 := w.capture(schemas.CategoryDecision,
		"The lock file is taken before the issue file, then the manifest is written.", "")
	double := w.capture(schemas.CategoryDecision, "Retries double their wait after thirty seconds.", "")
	w.fold()
	w.compact()
	var got [][]string
	for _, o := range w.folded[0].Observations {
		got = append(got, o.Compacts)
	}
	for _, want := range [][]string{{lock1, lock2}, {retry, double}} {
		slices.Sort(want)
		if !slices.ContainsFunc(got, func(g []string) bool { return slices.Equal(g, want) }) {
			t.Errorf("%q do not come together: %q", want, got)
		}
	}
}

// TestCompactedText: what the merged observation says and takes over.
func TestCompactedText(t *testing.T) {
	at := func(day int) schemas.Stamp { return schemas.StampOfTime(recallNow.AddDate(0, 0, day)) }
	members := map[string]*schemas.Observation{
		"obs-a-1-1-aaaaaa": {ID: "obs-a-1-1-aaaaaa", Agent: "a", IssueNumber: 1, Category: schemas.CategoryError,
			Content: "It failed:\n  no lock",
			Summary: "It failed", Timestamp: at(1), RecallCount: 7, SessionID: "s1",
			Anchors: []schemas.Anchor{{Path: "x", Digest: "sha256:1"}, {Path: "y"}}},
		"obs-b-1-2-bbbbbb": {ID: "obs-b-1-2-bbbbbb", Agent: "b", IssueNumber: 1, Category: schemas.CategoryDecision,
			Content: "Use a lock. It is cheap.",
			Summary: "Use a lock…", Timestamp: at(2), RecallCount: 7, SeenCount: 2, SessionID: "s2",
			Anchors: []schemas.Anchor{{Path: "x", Digest: "sha256:2"}}},
		"obs-c-1-3-cccccc": {ID: "obs-c-1-3-cccccc", Category: schemas.CategoryDecision, Content: "old",
			SupersededBy: "obs-b-1-2-bbbbbb", Timestamp: at(3)},
	}
	got := combine([]string{"obs-a-1-1-aaaaaa", "obs-b-1-2-bbbbbb", "obs-c-1-3-cccccc", "obs-d-1-4-dddddd"},
		func(id string) *schemas.Observation { return members[id] })
	if len(got) != 1 {
		t.Fatal(got)
	}
	o := got[0]
	want := "- Use a lock. It is cheap. (obs-b-1-2-bbbbbb)\n- [error] It failed: no lock"
	if o.Content != want || o.Summary != "Use a lock…; It failed" || o.Category != schemas.CategoryDecision {
		t.Errorf("%s: %q\n%s", o.Category, o.Summary, o.Content)
	}
	if o.Agent != "b" || o.SessionID != "s2" || o.Timestamp != at(2) || o.RecallCount != 7 ||
		o.SeenCount != 2 ||
		fmt.Sprint(o.Anchors) != "[{x sha256:2} {y }]" || len(o.Compacts) != 2 {
		t.Errorf("%+v", o)
	}
}

// TestCompactionOnCompaction: what was learned later is compacted with what was compacted before; each is undone on its
// own.
func TestCompactionOnCompaction(t *testing.T) {
	w := captured(t, 3, 9)
	w.compact()
	for range 6 {
		w.capture(schemas.CategoryDecision, w.text(30), w.text(9))
	}
	w.fold()
	first := w.files[0]
	originals := slices.DeleteFunc(slices.Concat(w.folded[0].Observations, w.folded[0].Archived),
		func(o schemas.Observation) bool { return len(o.Compacts) > 0 })
	if !w.compact() || len(w.folded[0].Archived) != 15 || len(w.folded[0].Observations) > 7 {
		t.Fatalf("%d of %d are left", len(w.folded[0].Observations), len(originals))
	}
	f := w.folded[0]
	checkKept(t, originals, &f)
	w.undo()
	if !bytes.Equal(w.files[0], first) {
		t.Error("undoing the second compaction changes the first one")
	}
	w.undo()
	if w.archives[0] != nil || len(w.folded[0].Observations) != 15 {
		t.Error("undoing both leaves something")
	}
}

// TestCompactionOfTwoBranches: what two branches compacted apart becomes one, whatever they knew.
func TestCompactionOfTwoBranches(t *testing.T) {
	w := captured(t, 4, 8)
	ours := w.folded[0]
	r, _ := NewFacts(w.truth()).Compact(&ours)
	w.capture(schemas.CategoryDecision, "Only their branch knows this.", "")
	w.fold()
	w.compact()
	w.record(r)
	w.fold()
	seen := map[string]int{}
	for _, o := range w.folded[0].Observations {
		for _, id := range o.Compacts {
			seen[id]++
		}
	}
	for _, o := range w.folded[0].Archived {
		if seen[o.ID] != 1 {
			t.Errorf("%s is in %d observations", o.ID, seen[o.ID])
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d of 9 are merged", len(seen))
	}
}

// TestCompactedStaysTrue: what is removed leaves the merged text, what is superseded is not said any more, and a merged
// observation can itself be superseded, recalled (which counts once, also beside an original) and removed.
func TestCompactedStaysTrue(t *testing.T) {
	w := newWorld(t, 5)
	secret := w.capture(schemas.CategoryDecision, "The password is xyzzy, see the lock file store.", "")
	old := w.capture(schemas.CategoryDecision, "The lock file store has a lock of ten seconds.", "")
	stays := w.capture(schemas.CategoryDecision, "The lock file store has a lock.", "")
	w.capture(schemas.CategoryDecision, "The lock file store has a lock of a minute.", "")
	w.fold()
	w.compact()
	merged := w.folded[0].Observations[0]
	at := schemas.StampOfTime(w.tick())
	w.record(schemas.MemoryRecord{Type: schemas.RecordRemoved, At: at, IDs: []string{secret}})
	w.record(schemas.MemoryRecord{Type: schemas.RecordRecalled, At: at, IDs: []string{merged.ID, stays}})
	newID := w.supersede("The store has no lock.", old)
	w.fold()
	text := string(w.files[0]) + string(w.archives[0])
	o := w.folded[0].Observations[0]
	if strings.Contains(text, "xyzzy") || strings.Contains(o.Content, "ten seconds") || !strings.Contains(o.Content,
		stays) {
		t.Errorf("it still says %s", o.Content)
	}
	if o.ID != merged.ID || o.RecallCount != 1 {
		t.Errorf("%s with %d recalls, was %s", o.ID, o.RecallCount, merged.ID)
	}
	newest := w.supersede("There is no store.", merged.ID, newID)
	w.fold()
	for _, o := range w.folded[0].Observations {
		if (o.SupersededBy == newest) != (o.ID != newest) {
			t.Errorf("%s is superseded by %q", o.ID, o.SupersededBy)
		}
	}
	w.record(schemas.MemoryRecord{Type: schemas.RecordRemoved, At: at, IDs: []string{merged.ID}})
	w.fold()
	if slices.ContainsFunc(w.folded[0].Observations, func(o schemas.Observation) bool { return o.ID == merged.ID }) {
		t.Error("a merged observation cannot be removed")
	}
}

func (w *world) supersede(content string, ids ...string) string {
	id := w.capture(schemas.CategoryDecision, content, "")
	w.specs[fmt.Sprintf("cap-%d", w.n)].Entries[0].Supersedes = ids
	return id
}

func TestDue(t *testing.T) {
	at := func(days int) schemas.Stamp { return schemas.StampOfTime(recallNow.AddDate(0, 0, -days)) }
	heads := []Head{
		{Issue: 9, Fresh: 2, Newest: at(91)},
		{Issue: 1, Fresh: 50, Newest: at(200)},
		{Issue: 2, Fresh: 50, Newest: at(89)},
		{Issue: 3, Fresh: 1, Newest: at(200)},
		{Issue: 4, Fresh: 5, Newest: at(200), Undone: at(1)},                          // a person wants them apart
		{Issue: 5, Fresh: 5, Newest: at(100), Undone: at(150)},                        // but learned more since
		{Issue: 6, Fresh: 5, Newest: schemas.StampOfTime(recallNow.AddDate(1, 0, 0))}, // a clock that goes ahead
	}
	if got := Due(heads, recallNow, 90); !slices.Equal(got, []int{1, 5, 9}) {
		t.Error(got)
	}
	if got := Due(heads, recallNow, 0); got != nil {
		t.Error(got)
	}
}

func BenchmarkCompact(b *testing.B) {
	w := captured(new(testing.T), 1, 500)
	facts, f := NewFacts(w.truth()), w.folded[0]
	for b.Loop() {
		facts.Compact(&f)
	}
}

// merged is what is left of the observations of an issue once they are compacted, sorted by time and id: it does not
// depend on their order.
func merged(originals []schemas.Observation) []schemas.Observation {
	of := Folded{Observations: slices.Clone(originals)}
	slices.SortFunc(of.Observations, compareObservations)
	var f Facts
	record, _ := f.Compact(&of)
	byID := make(map[string]*schemas.Observation, len(originals))
	for i := range of.Observations {
		byID[of.Observations[i].ID] = &of.Observations[i]
	}
	left := slices.DeleteFunc(slices.Clone(of.Observations), func(o schemas.Observation) bool {
		_, gone := slices.BinarySearch(record.IDs, o.ID)
		return gone
	})
	for _, group := range record.Groups {
		for _, o := range combine(group, func(id string) *schemas.Observation { return byID[id] }) {
			o.Tokens = countOnce(nil, o.Content)
			left = append(left, o)
		}
	}
	slices.SortFunc(left, compareObservations)
	return left
}
