package memstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
)

// A lock that cannot be had: the capture is kept, says so, and the next run takes it in.
func TestCaptureHeldByALock(t *testing.T) {
	t.Parallel() // it waits for seconds
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Before"))
	lock := fmt.Sprintf(`{"pid":1,"timestamp":%q,"agent":"another program"}`, time.Now().Format(time.RFC3339))
	x.write("state/memory/issue-1.json.lock", []byte(lock))
	c, err := x.Capture(t.Context(), spec("engineer", 1, noon.Add(time.Hour), "While it was locked"))
	if err != nil || !c.Held || len(c.Observations) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	const skipped = "Memory capture skipped: lock timeout on state/memory/issue-1.json"
	if len(x.told) != 2 || x.told[0] != skipped || !strings.Contains(x.told[1], "is kept") {
		t.Errorf("told %q", x.told)
	}
	x.read(c.Path)
	if err := os.Remove(filepath.Join(x.dir, "state/memory/issue-1.json.lock")); err != nil {
		t.Fatal(err)
	}
	if got := x.settle(); len(got.Stored) != 1 || len(got.Stored[0].IDs) != 1 {
		t.Errorf("%+v", got)
	}
	if all := x.list(memstore.Filter{}); len(all) != 2 {
		t.Errorf("listed %q", all)
	}
	x.check()
}

func settings(memory string) []byte {
	return []byte("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {memory: {" + memory + "}}\n")
}

func TestMemoryTurnedOff(t *testing.T) {
	x := newTree(t)
	x.write(schemas.SettingsPath, settings("enabled: false"))
	if _, err := x.Capture(t.Context(), spec("engineer", 1, noon, "text")); !errors.Is(err, memstore.ErrDisabled) {
		t.Error(err)
	}
	if r, err := x.Recall(t.Context(), memstore.Request{Agent: "engineer", Issue: 1}); err != nil || r.Text != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if got := x.settle(); got.Wrote {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(x.dir, "specs")); err == nil {
		t.Error("something was written")
	}
	y := newTree(t)
	y.write(schemas.SettingsPath, settings("maxTokens: 0"))
	y.capture(spec("engineer", 1, noon, "text"))
	if r, err := y.Recall(t.Context(), memstore.Request{Agent: "engineer", Issue: 1}); err != nil || r.Text != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Nothing that must not be kept reaches the disk, even if it comes this far.
func TestCaptureKeepsNoSecrets(t *testing.T) {
	x := newTree(t)
	const canary = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	s := spec("engineer", 1, noon, "The token is "+canary, "Kept <private>my mother's name</private> here")
	s.Entries[0].Summary = "token = " + canary
	x.capture(s)
	x.list(memstore.Filter{})
	err := filepath.WalkDir(x.dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if bytes.Contains(data, []byte(canary)) || bytes.Contains(data, []byte("mother")) {
			t.Errorf("%s has it", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a recall counts is in the issue files after the next run, and counts at once.
func TestRecallsAreFolded(t *testing.T) {
	x := newTree(t)
	c := x.capture(spec("engineer", 1, noon, "The adapter retries three times"))
	x.settle()
	for range 2 {
		if _, err := x.Recall(t.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "adapter"}); err != nil {
			t.Fatal(err)
		}
		x.now = x.now.Add(time.Minute)
	}
	if got := x.settle(); !got.Wrote || len(got.Stored) != 0 {
		t.Errorf("%+v", got)
	}
	if o, err := x.ByID(t.Context(), c.Observations[0].ID); err != nil || o.RecallCount != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if stats, err := x.Stats(t.Context()); err != nil || stats.Recalls != 2 {
		t.Errorf("%+v, %v", stats, err)
	}
	if again := x.settle(); again.Wrote {
		t.Errorf("%+v", again)
	}
	x.check()
}

func TestCompactDue(t *testing.T) {
	x := newTree(t)
	old := x.capture(spec("engineer", 1, noon, olds()...))
	x.now = noon.Add(80 * 24 * time.Hour)
	x.capture(spec("engineer", 2, x.now, "New one", "New two"))
	if done, err := x.CompactDue(t.Context()); err != nil || len(done) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	x.now = noon.Add(91 * 24 * time.Hour)
	done, err := x.CompactDue(t.Context())
	if err != nil || len(done) != 1 || done[0].Issue != 1 || done[0].After > 2 || done[0].Archived != 4 {
		t.Fatalf("%+v, %v", done, err)
	}
	file := x.read("state/memory/issue-1.json")
	if got := x.settle(); got.Wrote {
		t.Errorf("settled %+v", got)
	}
	if again, err := x.CompactDue(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	if o, err := x.ByID(t.Context(), old.Observations[2].ID); err != nil || !o.Archived {
		t.Errorf("%+v, %v", o, err)
	}
	// Whoever compacts the same files writes the same bytes.
	y := newTree(t)
	y.capture(spec("engineer", 1, noon, olds()...))
	y.now = noon.Add(400 * 24 * time.Hour)
	if _, err := y.CompactDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, y.read("state/memory/issue-1.json")) {
		t.Error("the same issue was compacted otherwise")
	}
	x.check()
}

// However many issues are due, the manifest is written once.
func TestCompactDueWritesTheManifestOnce(t *testing.T) {
	const issues = 20
	x := newTree(t)
	for i := range issues {
		x.capture(spec("engineer", i+1, noon, olds()...))
	}
	x.settle()
	x.now = noon.Add(91 * 24 * time.Hour)
	before := x.Written()
	done, err := x.CompactDue(t.Context())
	if err != nil || len(done) != issues {
		t.Fatalf("%+v, %v", done, err)
	}
	// For each issue a record, its file and its archive.
	if wrote := x.Written() - before; wrote != 3*issues+1 {
		t.Errorf("%d files were written for %d issues, want three for each and the manifest", wrote, issues)
	}
	for _, c := range done {
		if c.Before != 4 || c.Archived != 4 || c.After > 2 {
			t.Errorf("%+v", c)
		}
	}
	x.check()
	if got := x.settle(); got.Wrote {
		t.Errorf("settled %+v", got)
	}
}

// A damaged record counts for nothing, and is told of; the others do.
func TestDamagedRecord(t *testing.T) {
	x := newTree(t)
	c := x.capture(spec("engineer", 1, noon, "One", "Two"))
	x.write("state/memory/records/removed-1-1-000000.json", []byte("<<<<<<< ours\n"))
	if err := x.Remove(t.Context(), []string{c.Observations[0].ID}, "me", ""); err != nil {
		t.Fatal(err)
	}
	x.settle()
	if len(x.told) != 1 || !strings.Contains(x.told[0], "removed-1-1-000000") {
		t.Errorf("told %q", x.told)
	}
	if got := x.list(memstore.Filter{}); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}

// A merge of branches brings issue files, a manifest and records that this clone has not seen.
func TestMergeOfClones(t *testing.T) {
	x, y := newTree(t), newTree(t)
	base := spec("engineer", 1, noon, "Known to both")
	x.capture(base)
	y.capture(base)
	x.settle()
	y.settle()
	x.capture(spec("engineer", 1, noon.Add(time.Hour), "Said here"))
	theirs := y.capture(spec("tester", 1, noon.Add(2*time.Hour), "Said there"))
	if err := y.Remove(t.Context(), []string{y.capture(base2()).Observations[0].ID}, "me", ""); err != nil {
		t.Fatal(err)
	}
	// Their issue file wins, as a merge by hand may leave it, with the specs and records of both.
	for _, pattern := range []string{"specs/observations/*", "state/memory/records/*", "state/memory/*.json"} {
		files, err := filepath.Glob(filepath.Join(y.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range files {
			rel, err := filepath.Rel(y.dir, p)
			if err != nil {
				t.Fatal(err)
			}
			x.write(filepath.ToSlash(rel), y.read(filepath.ToSlash(rel)))
		}
	}
	x.settle()
	all, err := x.ByIssue(t.Context(), 1)
	said := func(o schemas.Observation) bool { return o.ID == theirs.Observations[0].ID }
	if err != nil || len(all) != 3 || !slices.ContainsFunc(all, said) {
		t.Errorf("%d observations, %v", len(all), err)
	}
	x.check()
	if again := x.settle(); again.Wrote {
		t.Errorf("%+v", again)
	}
}

func base2() *schemas.ObservationSpec {
	return spec("tester", 1, noon.Add(3*time.Hour), "To be removed there")
}

// A store of 50,000 observations is made, read, searched and settled.
func TestFiftyThousandObservations(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	x := newTree(t)
	const captures, each = 1000, 50
	for i := range captures {
		s := spec("engineer", 1+i%500, noon.Add(time.Duration(i)*time.Minute))
		for j := range each {
			content := fmt.Sprintf("fact %d of capture%d", j, i)
			s.Entries = append(s.Entries, schemas.ObservationEntry{Category: schemas.CategoryKeyFact, Content: content})
		}
		src, err := document.Spec(schemas.Ref{Kind: "Observation", Name: fmt.Sprintf("c%d", i)}, s)
		if err != nil {
			t.Fatal(err)
		}
		x.write(fmt.Sprintf("specs/observations/c%d.yaml", i), src)
	}
	got := x.settle()
	if len(got.Stored) != 500 || len(got.Warnings) == 0 || got.Warnings[0] != "Memory store has 50000 observations. Consider compaction." {
		t.Fatalf("%d issues, %q", len(got.Stored), got.Warnings)
	}
	m, err := memory.ParseManifest(x.read(manifestPath))
	if err != nil || len(m.Entries) != captures*each {
		t.Fatalf("%d entries, %v", len(m.Entries), err)
	}
	y := x.another()
	rows, err := y.Search(t.Context(), memstore.Query{Text: "capture777", Limit: each})
	other := func(r memstore.Row) bool { return !strings.HasSuffix(r.Summary, "capture777") }
	if err != nil || len(rows) != each || slices.ContainsFunc(rows, other) {
		t.Errorf("%d found, %v", len(rows), err)
	}
	r, err := y.Recall(t.Context(), memstore.Request{Agent: "engineer", Issue: 3, Context: "fact 7 of capture777"})
	if err != nil || r.Total != captures*each || r.Tokens == 0 || r.Tokens > 20_000 {
		t.Errorf("%d of %d, %d tokens, %v", len(r.IDs), r.Total, r.Tokens, err)
	}
	c := y.capture(spec("tester", 1, noon.Add(time.Hour), "One more"))
	if again := x.settle(); again.Wrote != (len(r.IDs) > 0) || len(again.Stored) != 0 {
		t.Errorf("%+v", again)
	}
	if o, err := x.ByID(t.Context(), c.Observations[0].ID); err != nil || o.Content != "One more" {
		t.Errorf("%+v, %v", o, err)
	}
	if again := x.settle(); again.Wrote {
		t.Errorf("%+v", again)
	}
}

// olds are four contents that are long enough to be worth merging.
func olds() []string {
	var out []string
	for _, name := range []string{"one", "two", "three", "four"} {
		out = append(out, "Old "+name+". "+strings.Repeat("It was weighed with care, and nobody knows of anything better. ", 25))
	}
	return out
}

// What would have no fewer tokens when it is merged is not merged, by a person's word or by age, and is looked at once.
func TestNothingGrowsByCompaction(t *testing.T) {
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Chose files", "Locks have an order", "Tests use real files", "Retries wait"))
	if _, err := x.Compact(t.Context(), 1); !errors.Is(err, memstore.ErrNothing) {
		t.Errorf("%v, want that there is nothing to do", err)
	}
	x.now = noon.Add(91 * 24 * time.Hour)
	for range 2 {
		if done, err := x.CompactDue(t.Context()); err != nil || len(done) != 0 {
			t.Errorf("%+v, %v", done, err)
		}
	}
	if all := x.list(memstore.Filter{}); len(all) != 4 {
		t.Errorf("%d are left of 4", len(all))
	}
	before := tokensOf(t, x, 2, olds()...)
	if _, err := x.Compact(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if after := tokensOf(t, x, 2); after >= before {
		t.Errorf("%d tokens became %d", before, after)
	}
}

// tokensOf are those of an issue's observations, after these were captured.
func tokensOf(t *testing.T, x *tree, issue int, contents ...string) (n int) {
	t.Helper()
	if len(contents) > 0 {
		x.capture(spec("engineer", issue, noon, contents...))
	}
	all, err := x.ByIssue(t.Context(), issue)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		n += o.Tokens
	}
	return n
}
