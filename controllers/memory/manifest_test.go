package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// someEntries are entries of several issues in any order.
func someEntries(w *world, n int) []schemas.ObservationIndex {
	out := make([]schemas.ObservationIndex, n)
	for i := range out {
		at, issue := w.tick(), w.r.IntN(12)*7
		agent := pick(w.r, testAgents)
		out[i] = schemas.ObservationIndex{ID: NewID(agent, issue, at, "n", i, ""), Agent: agent, IssueNumber: issue,
			Category: pick(w.r, schemas.Categories()), Summary: w.text(12), Tokens: w.r.IntN(500),
			Timestamp: schemas.StampOfTime(at)}
	}
	w.r.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// TestManifestForm: it has the specified schema, is what state.Encode writes but for line breaks in entries, and reads
// back whatever the order of what it is made of.
func TestManifestForm(t *testing.T) {
	w := newWorld(t, 5)
	for n := range 40 {
		entries := someEntries(w, n)
		data := Manifest(entries)
		m, err := ParseManifest(data)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(entries, compareEntries)
		if !slices.Equal(m.Entries, entries) || m.Version != 1 {
			t.Fatalf("%v is read as %v", entries, m.Entries)
		}
		var plain schemas.MemoryManifest
		if err := json.Unmarshal(data, &plain); err != nil || !slices.Equal(plain.Entries, entries) ||
			plain.UpdatedAt != m.UpdatedAt {
			t.Fatalf("%v: other programs read %v", err, plain)
		}
		loose, err := state.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			loose = bytes.Replace(loose, []byte("null\n"), []byte("[]\n"), 1)
		}
		if !bytes.Equal(compacted(t, data), compacted(t, loose)) {
			t.Fatalf("it writes\n%s\nnot\n%s", data, loose)
		}
		if again, err := ParseManifest(loose); err != nil || !slices.Equal(again.Entries, m.Entries) {
			t.Fatalf("the form of other programs: %v", err)
		}
	}
}

func compacted(t *testing.T, data []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestT8BrokenManifestIsNoticed: wherever a manifest breaks off, it is an error (the last line break says nothing), as
// are a merge's conflict markers; and what is made of the issue files anew is what was there.
func TestT8BrokenManifestIsNoticed(t *testing.T) {
	entries := someEntries(newWorld(t, 6), 12)
	data := Manifest(entries)
	for n := range len(data) - 1 {
		if _, err := ParseManifest(data[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("broken off after %d bytes: %v", n, err)
		}
		if _, err := splice(data[:n], 7, nil); !errors.Is(err, ErrDamaged) {
			t.Fatalf("broken off after %d bytes and spliced: %v", n, err)
		}
	}
	merged := bytes.Replace(data, []byte("    {"), []byte("<<<<<<< HEAD\n    {"), 1)
	if _, err := ParseManifest(merged); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	slices.Reverse(entries)
	if !bytes.Equal(Manifest(entries), data) {
		t.Error("made anew it is another one")
	}
	if _, err := ParseManifest([]byte(`{"version":2,"entries":[]}`)); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
	if _, err := ParseManifest([]byte(`{"version":1,"entries":[{"id":"../x"}]}`)); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestSpliceIsManifest: replacing the entries of an issue gives what writing all anew does.
func TestSpliceIsManifest(t *testing.T) {
	w := newWorld(t, 8)
	for range 300 {
		entries := someEntries(w, w.r.IntN(30))
		issue := w.r.IntN(90)
		others := slices.DeleteFunc(slices.Clone(entries),
			func(e schemas.ObservationIndex) bool { return e.IssueNumber == issue })
		next := someEntries(w, w.r.IntN(4))
		for i := range next {
			next[i].IssueNumber = issue
			next[i].ID = NewID("a", issue, next[i].Timestamp.Time, "m", i, "")
		}
		got, err := splice(Manifest(entries), issue, next)
		if err != nil {
			t.Fatal(err)
		}
		if want := Manifest(slices.Concat(others, next)); !bytes.Equal(got, want) {
			t.Fatalf("issue %d: spliced\n%s\nwant\n%s", issue, got, want)
		}
	}
}

// TestSpliceRefusesOtherForms: what is not written by Manifest is not spliced.
func TestSpliceRefusesOtherForms(t *testing.T) {
	data := Manifest(someEntries(newWorld(t, 9), 8))
	for name, bad := range map[string][]byte{
		"empty": nil, "other": []byte("{}\n"), "spaces": bytes.ReplaceAll(data, []byte("    {"), []byte("\t{")),
		"no comma": bytes.ReplaceAll(data, []byte("},\n"), []byte("}\n")), "id": bytes.ReplaceAll(data,
			[]byte("obs-"), []byte("ops-")),
	} {
		if _, err := splice(bad, 21, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// manyEntries are realistic ones, ten an issue.
func manyEntries(n int) []schemas.ObservationIndex {
	r := rand.New(rand.NewPCG(2, 3))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	out := make([]schemas.ObservationIndex, n)
	for i := range out {
		at := start.Add(time.Duration(i) * time.Minute)
		agent := pick(r, []string{"engineer", "architect", "product-manager", "reviewer"})
		out[i] = schemas.ObservationIndex{ID: NewID(agent, i/10, at, "n", i, ""), Agent: agent, IssueNumber: i / 10,
			Category: pick(r, schemas.Categories()), Tokens: 40 + r.IntN(300), Timestamp: schemas.StampOfTime(at),
			Summary: fmt.Sprintf("Chose per-issue JSON files for observation storage over %d rows of SQLite in src/store/adapter%d.go", i, i%97)}
	}
	return out
}

// TestManifestSize: 50,000 entries stay under 17 MB.
func TestManifestSize(t *testing.T) {
	if n := len(Manifest(manyEntries(50_000))); n > 17_000_000 {
		t.Errorf("%d bytes", n)
	}
}

func BenchmarkParseManifest(b *testing.B) {
	data := Manifest(manyEntries(10_000))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := ParseManifest(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkManifest(b *testing.B) {
	entries := manyEntries(50_000)
	for b.Loop() {
		Manifest(entries)
	}
}

func BenchmarkSplice(b *testing.B) {
	entries := manyEntries(50_000)
	data := Manifest(entries)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := splice(data, 2500, entries[25_000:25_010]); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	data := Manifest(someEntries(newWorld(new(testing.T), 3), 6))
	f.Add(data, 7)
	f.Add(Manifest(nil), 0)
	f.Add(bytes.ReplaceAll(data, []byte("},\n"), []byte(":null},\n")), 14)
	f.Fuzz(func(t *testing.T, data []byte, issue int) {
		m, err := ParseManifest(data)
		if err == nil && slices.IsSortedFunc(m.Entries, compareEntries) {
			if again, err := ParseManifest(Manifest(m.Entries)); err != nil || len(again.Entries) != len(m.Entries) {
				t.Errorf("%v: what was read cannot be written", err)
			}
		}
		_, _ = splice(data, issue, nil)
	})
}

// splice is all parts in one.
func splice(manifest []byte, issue int, entries []schemas.ObservationIndex) ([]byte, error) {
	parts, err := SpliceParts(manifest, issue, entries)
	return bytes.Join(parts, nil), err
}
