package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

const oneTheirs = `{"id":"obs-a-29-1-aaaaaa","agent":"A","issueNumber":29,"category":"error","content":"c","summary":"s","tokens":1,` +
	`"timestamp":"2026-02-27T10:00:00.000Z","sessionId":"s"}`

// TestParseRefuses tells what is wrong with a file; it never takes the beginning for the whole.
func TestParseRefuses(t *testing.T) {
	whole := `{"version":1,"issueNumber":29,"observations":[` + oneTheirs + `]}`
	for name, c := range map[string]struct {
		data string
		err  error
		says string
	}{
		"whole":      {whole, nil, ""},
		"marked":     {"\ufeff" + whole, nil, ""},
		"no version": {strings.Replace(whole, `"version":1,`, "", 1), nil, ""},
		"empty":      {"", ErrDamaged, "unexpected"},
		"a list":     {"[]", ErrDamaged, ""},
		"more":       {whole + "x", ErrDamaged, ""},
		"null":       {"null", ErrDamaged, "no issueNumber"},
		"bytes":      {whole + "\xff", ErrDamaged, "UTF-8"},
		"merge":      {"{\n<<<<<<< HEAD\n" + whole[1:], ErrDamaged, "conflict markers"},
		"newer":      {strings.Replace(whole, `"version":1`, `"version":2`, 1), ErrNewer, "version is 2"},
		"issue": {strings.Replace(whole, `"issueNumber":29`, `"issueNumber":30`, 1), ErrDamaged,
			"not about issue 30"},
		"its issue": {strings.Replace(whole, `"A","issueNumber":29`, `"A","issueNumber":30`, 1), ErrDamaged,
			"not about issue 29"},
		"id":      {strings.Replace(whole, "obs-a", "../obs-a", 1), ErrDamaged, "does not have the form"},
		"time":    {strings.Replace(whole, "2026-02-27T", "yesterday", 1), ErrDamaged, "observations"},
		"tokens":  {strings.Replace(whole, `"tokens":1`, `"tokens":"1"`, 1), ErrDamaged, "observations"},
		"no list": {`{"version":1,"issueNumber":29}`, ErrDamaged, "no observations"},
	} {
		_, err := Parse([]byte(c.data))
		if !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readFile([]byte(whole), 30); !errors.Is(err, ErrDamaged) {
		t.Error("the file of another issue is taken")
	}
	deep := strings.Replace(whole, `"sessionId":"s"`, `"sessionId":"s","deep":`+strings.Repeat("[",
		200)+strings.Repeat("]", 200), 1)
	if _, err := readFile([]byte(deep), 29); !errors.Is(err, ErrDamaged) {
		t.Error("a value of any depth is taken")
	}
	for n := range len(whole) {
		if _, err := Parse([]byte(whole[:n])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("broken off after %d bytes: %v", n, err)
		}
	}
}

// TestT2StoreAndRetrieve: what is captured is in its issue's file with all that was said, and nothing else is; the
// manifest has its line.
func TestT2StoreAndRetrieve(t *testing.T) {
	at := time.Date(2026, 2, 27, 10, 0, 0, 123e6, time.UTC)
	s := Spec{Name: "cap", Digest: "sha256:1", ObservationSpec: &schemas.ObservationSpec{Agent: "engineer", Issue: 29,
		Session:   "health",
		Timestamp: schemas.NewTime(at), Entries: []schemas.ObservationEntry{
			{Category: schemas.CategoryDecision, Content: "Chose per-issue JSON files for observation storage.",
				Summary: "Per-issue\nJSON files"},
			{Category: schemas.CategoryKeyFact, Content: strings.Repeat("word ", 300)}}}}
	f, err := NewFacts(Truth{Specs: []Spec{s}}).Fold(29, nil, nil)
	if err != nil || f.Archive != nil || len(f.Added) != 2 {
		t.Fatalf("%v %+v", err, f)
	}
	m, err := Parse(f.File)
	if err != nil || m.Sources["cap"] != "sha256:1" || m.UpdatedAt != schemas.StampOfTime(at) {
		t.Fatalf("%v %+v", err, m)
	}
	i := slices.IndexFunc(m.Observations,
		func(o schemas.Observation) bool { return o.Category == schemas.CategoryDecision })
	want := schemas.Observation{ID: NewID("engineer", 29, at, "cap", 0, s.Entries[0].Content), Agent: "engineer",
		IssueNumber: 29,
		Category:    "decision", Content: s.Entries[0].Content, Summary: "Per-issue JSON files", Tokens: 11,
		Timestamp: schemas.StampOfTime(at), SessionID: "health", Source: "cap"}
	if got := m.Observations[i]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stored %+v\nwant %+v", got, want)
	}
	if other := m.Observations[1-i]; len(other.Summary) > summaryLimit+3 || !strings.HasSuffix(other.Summary,
		" word…") {
		t.Errorf("the summary that is made is %q", other.Summary)
	}
	manifest, err := ParseManifest(Manifest(f.Index()))
	if err != nil || !slices.Equal(manifest.Entries, indexOf(m.Observations)) {
		t.Errorf("%v: the manifest is out of step", err)
	}
	for _, issue := range []int{0, 30} {
		if f, err := NewFacts(Truth{Specs: []Spec{s}}).Fold(issue, nil, nil); err != nil || f.File != nil {
			t.Errorf("issue %d has a file: %v", issue, err)
		}
	}
}

// TestFoldWithoutTaken: an edit is noticed in the capture's own issue even if nobody says what other files hold.
func TestFoldWithoutTaken(t *testing.T) {
	w := newWorld(t, 1)
	w.capture(schemas.CategoryDecision, "Accepted.", "")
	w.fold()
	s := w.specs["cap-1"]
	s.Digest = "sha256:2"
	f, err := NewFacts(Truth{Specs: []Spec{s}}).Fold(0, w.files[0], nil)
	if err != nil || !bytes.Equal(f.File, w.files[0]) || f.Edited["cap-1"] != w.specs["cap-1"].Digest {
		t.Errorf("%v: %v\n%s", err, f.Edited, f.File)
	}
	if _, _, err := Open(w.files[0], s.Issue).Grow(w.files[0], s); !errors.Is(err, ErrEdited) {
		t.Error(err)
	}
}

// TestCircles: of observations that replace each other, the newest stands.
func TestCircles(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("obs-a-1-%d-aaaaaa", n) }
	f := NewFacts(Truth{Taken: map[string]Taken{"x": {Issue: 1,
		Links: schemas.MemoryLinks{Supersedes: map[string][]string{
			id(1): {id(2)}, id(2): {id(3), id(2)}, id(3): {id(1), id(9)}, id(5): {id(1)}}}}},
		Exists: func(string) bool { return true }})
	if len(f.superseded) != 4 || f.superseded[id(1)] != id(5) || f.superseded[id(3)] != id(2) {
		t.Errorf("with a newer one beside the circle: %v", f.superseded)
	}
	f = NewFacts(Truth{Taken: map[string]Taken{"x": {Issue: 1,
		Links: schemas.MemoryLinks{Supersedes: map[string][]string{
			id(1): {id(2)}, id(2): {id(3)}, id(3): {id(1), id(9)}}}}}, Exists: func(string) bool { return true }})
	if len(f.superseded) != 3 || f.superseded[id(3)] != "" || f.superseded[id(9)] != id(3) {
		t.Errorf("%v", f.superseded)
	}
}

// TestSalvage: of a damaged file all that is whole is kept: theirs, those of Observations that cannot be made anew, and
// what was taken in.
func TestSalvage(t *testing.T) {
	w := newWorld(t, 2)
	for range 5 {
		w.foreign(0)
		w.capture(schemas.CategoryDecision, w.text(9), "")
		w.fold()
	}
	data := w.files[0]
	for n := 0; n < len(data); n += 3 {
		checkSalvaged(t, data[:n], &w.folded[0].Observations[0], n > 2000)
	}
	conflict := bytes.Replace(data, []byte("\n    {\n"), []byte("\n<<<<<<< ours\n    {\n"), 1)
	conflict = bytes.Replace(conflict, []byte("\n    },\n"),
		[]byte("\n    },\n=======\n"+string(indented(oneTheirs))+",\n>>>>>>> theirs\n"), 1)
	got, err := readFile(Salvage(conflict, 0), 0)
	if err != nil || len(got.entries) != 10 || len(got.Sources) != 5 || got.entries[0].extra == nil &&
		got.entries[1].extra == nil {
		t.Errorf("%v: %d are left, %d sources", err, len(got.entries), len(got.Sources))
	}
	truth := w.truth()
	f, err := NewFacts(truth).Fold(0, Salvage(conflict, 0), nil)
	if err != nil || !bytes.Equal(f.File, withoutTheirs(t, data)) {
		t.Errorf("%v: folded it is\n%s", err, f.File)
	}
	for _, nothing := range []string{"", "{}", "x", strings.Repeat("{", 1<<20), `{"id":"obs-a-29-1-aaaaaa"}`} {
		if got := Salvage([]byte(nothing), 30); got != nil {
			t.Errorf("%.20q gives %s", nothing, got)
		}
	}
}

func checkSalvaged(t *testing.T, damaged []byte, first *schemas.Observation, whole bool) {
	t.Helper()
	saved := Salvage(damaged, 0)
	if saved == nil {
		if whole {
			t.Errorf("nothing is saved of %d bytes", len(damaged))
		}
		return
	}
	f, err := readFile(saved, 0)
	if err != nil {
		t.Fatalf("%d bytes: %v", len(damaged), err)
	}
	if len(f.entries) > 0 && f.entries[0].ID != first.ID {
		t.Fatalf("%d bytes: the first one is %s", len(damaged), f.entries[0].ID)
	}
}

func indented(s string) []byte {
	var b bytes.Buffer
	_ = json.Indent(&b, []byte(s), "    ", "  ")
	return b.Bytes()
}

// withoutTheirs is a file without the unknown fields of the file itself, which are not salvaged.
func withoutTheirs(t *testing.T, data []byte) []byte {
	f, err := readFile(data, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.extra = nil
	return f.encode()
}

func TestRecords(t *testing.T) {
	at := schemas.StampOfTime(time.UnixMilli(1772186400000))
	r := schemas.MemoryRecord{Type: schemas.RecordRemoved, Issue: 29, At: at, By: "anna",
		IDs: []string{"obs-a-29-2-bbbbbb", "obs-a-29-1-aaaaaa", "obs-a-29-1-aaaaaa"}}
	name, data, err := EncodeRecord(r)
	if err != nil || !strings.HasPrefix(name, "removed-29-1772186400000-") ||
		len(name) != len("removed-29-1772186400000-")+6 {
		t.Fatalf("%s: %v", name, err)
	}
	back, err := ParseRecord(data)
	if err != nil || back.Version != 1 || !slices.Equal(back.IDs, []string{"obs-a-29-1-aaaaaa",
		"obs-a-29-2-bbbbbb"}) || back.At != at {
		t.Errorf("%v: %+v", err, back)
	}
	slices.Reverse(r.IDs)
	if again, _, _ := EncodeRecord(r); again != name {
		t.Errorf("the same record has the names %s and %s", name, again)
	}
	for n := range len(data) - 2 {
		if _, err := ParseRecord(data[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("broken off after %d bytes: %v", n, err)
		}
	}
	for data, want := range map[string]error{`{}`: ErrDamaged, `{"type":"x","version":2}`: ErrNewer,
		`{"type":"removed","ids":["../x"]}`:                     ErrDamaged,
		`{"type":"invented later","at":"2026-02-27T10:00:00Z"}`: nil, "\xff": ErrDamaged} {
		if _, err := ParseRecord([]byte(data)); !errors.Is(err, want) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// FuzzFold: no file, whatever is in it, makes folding, salvaging or growing fail otherwise than by an error, and what
// they write can be read and is not changed by folding again.
func FuzzFold(f *testing.F) {
	w := newWorld(new(testing.T), 3)
	w.foreign(0)
	w.capture(schemas.CategoryDecision, "One.", "")
	w.capture(schemas.CategoryDecision, "Two.", "")
	w.fold()
	f.Add(w.files[0], []byte(nil))
	w.compact()
	f.Add(w.files[0], w.archives[0])
	f.Add([]byte(`{"issueNumber":0,"observations":[]}`), []byte(`{"issueNumber":0,"observations":[{}]}`))
	facts := NewFacts(w.truth())
	f.Fuzz(func(t *testing.T, data, archive []byte) {
		for _, data := range [][]byte{data, Salvage(data, 0)} {
			out, err := facts.Fold(0, data, archive)
			if err != nil {
				continue
			}
			again, err := facts.Fold(0, out.File, out.Archive)
			if err != nil || !bytes.Equal(again.File, out.File) || !bytes.Equal(again.Archive, out.Archive) {
				t.Fatalf("%v: folding\n%s\nagain gives\n%s", err, out.File, again.File)
			}
		}
		_, _, _ = Open(data, w.specs["cap-2"].Issue).Grow(data, w.specs["cap-2"])
	})
}

// bigIssue is an issue of so many realistic observations.
func bigIssue(n int) (Truth, []byte) {
	t := Truth{Taken: map[string]Taken{}}
	for i := 0; i < n; i += 50 {
		t.Specs = append(t.Specs, bigSpec(i, min(50, n-i)))
	}
	f, _ := NewFacts(t).Fold(29, nil, nil)
	return t, f.File
}

func bigSpec(from, n int) Spec {
	s := Spec{Name: fmt.Sprintf("cap-%d", from), Digest: fmt.Sprintf("sha256:%064x", from),
		ObservationSpec: &schemas.ObservationSpec{Agent: "engineer",
			Issue: 29, Session: "engineer-1709035100000-x7y8z9",
			Timestamp: schemas.NewTime(time.UnixMilli(1772186400000 + int64(from)*1e6))}}
	for i := range n {
		s.Entries = append(s.Entries, schemas.ObservationEntry{Category: schemas.CategoryDecision,
			Anchors: []string{"src/store.go"},
			Summary: fmt.Sprintf("Chose per-issue JSON files for observation storage, case %d", from+i),
			Content: fmt.Sprintf("Chose per-issue JSON files for observation storage, case %d. Evaluated SQLite, \"single JSON file\", and LevelDB.\n"+
				"JSON files match clarification ledger pattern from ADR-%d and have zero dependencies, whatever the platform is.", from+i, i)})
	}
	return s
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{50, 200} {
		_, data := bigIssue(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFold(b *testing.B) {
	t, data := bigIssue(200)
	facts := NewFacts(t)
	for b.Loop() {
		if _, err := facts.Fold(29, data, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGrow(b *testing.B) {
	_, data := bigIssue(150)
	s := bigSpec(1000, 50)
	for b.Loop() {
		if _, _, err := Open(data, s.Issue).Grow(data, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFacts is over 50,000 entries in captures of ten, one in ten of which replaces something, and 2,000 records.
func BenchmarkFacts(b *testing.B) {
	t := Truth{Records: map[string]schemas.MemoryRecord{}, Taken: map[string]Taken{}}
	for i := range 5000 {
		s := bigSpec(i*10, 10)
		if i%10 == 0 {
			s.Entries[3].Supersedes = []string{NewID("engineer", 29, time.UnixMilli(int64(i)), "n", i, "c")}
		}
		t.Specs = append(t.Specs, s)
		t.Taken[s.Name] = Taken{29, s.Digest, schemas.MemoryLinks{}}
		if i < 2000 {
			name, _, _ := EncodeRecord(schemas.MemoryRecord{Type: schemas.RecordRecalled,
				At: schemas.StampOfTime(s.Timestamp.Time), IDs: idsOf(s)})
			t.Records[name] = schemas.MemoryRecord{Type: schemas.RecordRecalled, IDs: idsOf(s)}
		}
	}
	for b.Loop() {
		NewFacts(t)
	}
}
