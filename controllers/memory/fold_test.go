package memory

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// world is a store and its truth, as random steps make it. Its files are kept in step by folding.
type world struct {
	t        *testing.T
	r        *rand.Rand
	specs    map[string]Spec
	broken   map[string]bool
	records  map[string]schemas.MemoryRecord
	files    map[int][]byte
	archives map[int][]byte
	folded   map[int]Folded
	clock    time.Time
	n        int
	edited   bool // an Observation was edited or broken
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, r: rand.New(rand.NewPCG(seed, 4)), specs: map[string]Spec{}, broken: map[string]bool{},
		records: map[string]schemas.MemoryRecord{}, files: map[int][]byte{}, archives: map[int][]byte{},
		folded: map[int]Folded{}, clock: time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

var (
	testWords = strings.Fields(`store manifest lock cache retry adapter timeout session parser "quoted" back\slash naïve 数据库 <tag>
		emoji🙂 src/db/adapter.go readConfig snake_case tests failed chose because per-issue files instead of SQLite`)
	testAgents = []string{"engineer", "architect", "qa-bot", "a"}
)

func (w *world) text(words int) string {
	var out []string
	for range 1 + w.r.IntN(words) {
		out = append(out, pick(w.r, testWords))
	}
	return strings.Join(out, pick(w.r, []string{" ", " ", "\n", " \t"}))
}

func (w *world) tick() time.Time {
	w.clock = w.clock.Add(time.Duration(w.r.IntN(3*86400)) * time.Second / 2)
	return w.clock
}

// ids are all ids in the store, with one that is in none.
func (w *world) ids() []string {
	out := []string{"obs-nobody-1-1709035200000-zzzzzz"}
	for _, n := range slices.Sorted(maps.Keys(w.folded)) {
		f := w.folded[n]
		for _, o := range slices.Concat(f.Observations, f.Archived) {
			out = append(out, o.ID)
		}
	}
	return out
}

func (w *world) spec() Spec {
	w.n++
	s := Spec{Name: fmt.Sprintf("cap-%d", w.n), Digest: fmt.Sprintf("sha256:%064x", w.n),
		ObservationSpec: &schemas.ObservationSpec{
			Agent: pick(w.r, testAgents), Issue: w.r.IntN(3), Session: pick(w.r, []string{"", "s1"}),
			Timestamp: schemas.NewTime(w.tick())}}
	for range 1 + w.r.IntN(6) {
		e := schemas.ObservationEntry{Category: pick(w.r, schemas.Categories()), Content: w.text(30)}
		if w.r.IntN(2) == 0 {
			e.Summary = w.text(8)
		}
		if w.r.IntN(3) == 0 {
			e.Anchors = []string{pick(w.r, []string{"a.go", "b/c.go"}), "d.md"}
			e.Digests = map[string]string{"d.md": schemas.AnchorAbsent}
		}
		if w.r.IntN(6) == 0 {
			e.Repeats = pick(w.r, w.ids())
		}
		if w.r.IntN(5) == 0 {
			e.Supersedes = []string{pick(w.r, w.ids()), pick(w.r, w.ids())}
		}
		s.Entries = append(s.Entries, e)
	}
	return s
}

func (w *world) truth() Truth {
	t := Truth{Records: w.records, Taken: map[string]Taken{},
		Exists: func(name string) bool { _, ok := w.specs[name]; return ok || w.broken[name] }}
	for _, s := range w.specs {
		if !w.broken[s.Name] {
			t.Specs = append(t.Specs, s)
		}
	}
	w.r.Shuffle(len(t.Specs), func(i, j int) { t.Specs[i], t.Specs[j] = t.Specs[j], t.Specs[i] })
	for _, data := range w.files {
		if data != nil {
			m, err := Parse(data)
			if err != nil {
				w.t.Fatal(err)
			}
			TakenIn(m, t.Taken)
		}
	}
	return t
}

// fold brings all files in step, and checks that doing it again changes nothing.
func (w *world) fold() {
	w.t.Helper()
	for round := range 2 {
		facts := NewFacts(w.truth())
		for issue := range 3 {
			f, err := facts.Fold(issue, w.files[issue], w.archives[issue])
			if err != nil {
				w.t.Fatal(err)
			}
			if round == 1 && (!bytes.Equal(f.File, w.files[issue]) || !bytes.Equal(f.Archive, w.archives[issue])) {
				w.t.Fatalf("folding again changes issue %d:\n%s\n%s", issue, w.files[issue], f.File)
			}
			w.files[issue], w.archives[issue], w.folded[issue] = f.File, f.Archive, f
		}
	}
}

func (w *world) record(r schemas.MemoryRecord) {
	name, data, err := EncodeRecord(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.records[name], err = ParseRecord(data); err != nil {
		w.t.Fatal(err)
	}
}

// foreign puts an observation of another program into an issue file, which may be new.
func (w *world) foreign(issue int) {
	w.n++
	id := NewID("theirs", issue, w.tick(), "", w.n, "")
	obs := fmt.Sprintf(`{"id":%q,"agent":"Theirs","issueNumber":%d,"category":"insight","content":"They say <so> %d.","summary":"so",
		"tokens":5,"timestamp":%q,"sessionId":"x","recallCount":%d,"relevanceScore":0.50,"more":{"b":[1,{}],"a":"é"}}`,
		id, issue, w.n, w.clock.Format(time.RFC3339), w.r.IntN(3))
	if w.files[issue] == nil {
		w.files[issue] = fmt.Appendf(nil, `{"issueNumber":%d,"observations":[%s],"version":1,"theirs":true}`, issue,
			obs)
		return
	}
	w.files[issue] = bytes.Replace(w.files[issue], []byte(`"observations": [`), []byte(`"observations": [`+obs+","), 1)
	w.files[issue] = bytes.Replace(w.files[issue], []byte(`,]`), []byte(`]`), 1)
}

// step changes the truth in some way.
func (w *world) step() {
	issue := w.r.IntN(3)
	names := slices.Sorted(maps.Keys(w.specs))
	switch n := w.r.IntN(20); {
	case n < 8 || len(names) == 0:
		s := w.spec()
		w.specs[s.Name] = s
	case n < 9:
		w.foreign(issue)
	case n < 14:
		r := schemas.MemoryRecord{Issue: issue, At: schemas.StampOfTime(w.tick()), By: "me", IDs: []string{pick(w.r,
			w.ids())},
			Type: pick(w.r, []string{schemas.RecordRemoved, schemas.RecordVerified, schemas.RecordRecalled})}
		if r.Type == schemas.RecordVerified {
			r.Anchors = map[string][]schemas.Anchor{r.IDs[0]: {{Path: "v.go", Digest: "sha256:1"}}}
		}
		w.record(r)
	case n < 16:
		f := w.folded[issue]
		if r, ok := NewFacts(w.truth()).Compact(&f); ok {
			w.record(r)
		}
	case n < 17:
		if r, ok := NewFacts(w.truth()).Undo(issue, schemas.StampOfTime(w.tick()), "me", "why"); ok {
			w.record(r)
		}
	case n < 18:
		delete(w.specs, pick(w.r, names))
	case n < 19:
		w.edit(pick(w.r, names))
	default:
		w.broken[pick(w.r, names)] = true
		w.edited = true
	}
}

// edit changes an Observation that was accepted.
func (w *world) edit(name string) {
	s, changed := w.specs[name], w.spec()
	s.Digest, s.ObservationSpec = changed.Digest, changed.ObservationSpec
	w.specs[name], w.edited = s, true
}

// TestFoldGrowsAsItRebuilds: a store that grew step by step has the bytes of one that is made anew, and any order or
// damage by hand of what is ours comes out the same.
func TestFoldGrowsAsItRebuilds(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(t, seed)
		for range 30 {
			w.step()
			w.fold()
		}
		facts := NewFacts(w.truth())
		for issue := range 3 {
			file, archive := w.scrambled(issue, facts)
			got, err := facts.Fold(issue, file, archive)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.File, w.files[issue]) || !bytes.Equal(got.Archive, w.archives[issue]) {
				t.Fatalf("seed %d, issue %d: made anew\n%s\nwant\n%s", seed, issue, got.File, w.files[issue])
			}
		}
		w.checkInvariants()
	}
}

// scrambled are the files of an issue with what can be made anew taken out or changed, in another order, and archived
// ones in the other file.
func (w *world) scrambled(issue int, facts *Facts) (data, archive []byte) {
	files := [2]*memoryFile{}
	for i, data := range [][]byte{w.files[issue], w.archives[issue]} {
		f, err := readFile(data, issue)
		if err != nil {
			w.t.Fatal(err)
		}
		files[i] = f
	}
	frozen := facts.frozen[issue]
	all := slices.Concat(files[0].entries, files[1].entries)
	files[0].entries, files[1].entries = nil, nil
	w.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, s := range all {
		ours := !foreign(&s.Observation) && !slices.Contains(frozen, s.Source)
		if ours && w.r.IntN(2) == 0 {
			continue
		}
		if ours {
			s.Content, s.Summary, s.Category, s.Tokens = "changed by hand", "hand", "error", 3
		}
		s.SupersededBy, s.SeenCount, s.Archived = "obs-x-1-1-abcdef", 7, w.r.IntN(2) == 0
		at := files[w.r.IntN(2)]
		at.entries = append(at.entries, s)
	}
	for name := range files[0].Sources {
		if !slices.Contains(frozen, name) {
			delete(files[0].Sources, name)
			delete(files[0].Links, name)
		}
	}
	return files[0].encode(), files[1].encode()
}

func (w *world) checkInvariants() {
	removed := map[string]bool{}
	for _, r := range w.records {
		for _, id := range r.IDs {
			removed[id] = removed[id] || r.Type == schemas.RecordRemoved
		}
	}
	seen := map[string]bool{}
	for _, id := range w.ids()[1:] {
		if removed[id] || seen[id] || !schemas.IsObservationID(id) {
			w.t.Errorf("%s is there: removed %t, twice %t", id, removed[id], seen[id])
		}
		seen[id] = true
	}
	for _, s := range w.specs {
		for i, id := range idsOf(s) {
			if s.Entries[i].Repeats == "" && !seen[id] && !removed[id] && !w.edited {
				w.t.Errorf("%s of %s is lost", id, s.Name)
			}
		}
	}
}

// TestGrowIsFold: adding a capture to a file that is up to date gives what folding everything does.
func TestGrowIsFold(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(t, seed+1000)
		for range 12 {
			w.step()
			w.fold()
		}
		s := w.spec()
		for i := range s.Entries {
			if s.Entries[i].Repeats != "" {
				s.Entries[i].Supersedes = nil // might close a circle, which only Fold sees
			}
		}
		grown, rest, err := Open(w.files[s.Issue], s.Issue).Grow(w.files[s.Issue], s)
		if err != nil {
			t.Fatal(err)
		}
		opened := Open(slices.Clone(w.files[s.Issue]), s.Issue)
		if lines := opened.Lines(s); !slices.Equal(lines, grown.Index()) {
			t.Fatalf("seed %d: the lines ahead are\n%v\nwant\n%v", seed, lines, grown.Index())
		}
		for range 2 { // the second time what was opened is used up
			ahead, _, err := opened.Grow(w.files[s.Issue], s)
			if err != nil || !bytes.Equal(ahead.File, grown.File) {
				t.Fatalf("seed %d: opened before it grew, it is\n%s\nwant\n%s\n%v", seed, ahead.File, grown.File, err)
			}
		}
		files := maps.Clone(w.files)
		files[s.Issue] = grown.File
		for _, issue := range rest.Issues() {
			if files[issue] == nil {
				continue
			}
			f, err := Apply(files[issue], issue, rest)
			if err != nil {
				t.Fatal(err)
			}
			files[issue] = f.File
		}
		w.specs[s.Name] = s
		again, _, err := Open(grown.File, s.Issue).Grow(grown.File, s)
		if err != nil || !bytes.Equal(again.File, grown.File) {
			t.Fatalf("growing twice: %v", err)
		}
		w.fold()
		for issue := range 3 {
			if len(w.folded[issue].Archived) == 0 && !bytes.Equal(files[issue], w.files[issue]) {
				t.Fatalf("seed %d: issue %d grew to\n%s\nwant\n%s", seed, issue, files[issue], w.files[issue])
			}
		}
	}
}

// TestEncodeAsState: files have the form of all files under state.
func TestEncodeAsState(t *testing.T) {
	w := newWorld(t, 7)
	odd := "\x00\b\f\r\n\t\"\\/<>&\u2028\u2029\x7fé🙂\xff"
	for i := range 200 {
		f := &memoryFile{MemoryFile: schemas.MemoryFile{Version: 1, IssueNumber: i % 3,
			UpdatedAt: schemas.StampOfTime(w.tick())}}
		for range w.r.IntN(4) {
			f.entries = append(f.entries, stored{Observation: schemas.Observation{
				ID: w.text(2), Agent: odd, IssueNumber: i, Category: "decision",
				Content: w.text(9) + odd[:w.r.IntN(len(odd))],
				Summary: w.text(3), Tokens: i, Timestamp: schemas.StampOfTime(w.tick()), SessionID: pick(w.r,
					[]string{"", "s"}),
				Source: pick(w.r, []string{"", "n"}), RecallCount: w.r.IntN(2), SeenCount: w.r.IntN(2),
				Anchors:    []schemas.Anchor{{Path: "p"}, {Path: "q", Digest: "d"}}[:w.r.IntN(3)],
				VerifiedAt: schemas.StampOfTime(pick(w.r, []time.Time{{}, w.clock})), SupersededBy: pick(w.r,
					[]string{"", "x"}),
				Compacts: []string{"a", "b"}[:w.r.IntN(3)], Archived: w.r.IntN(2) == 0}})
		}
		if i%2 == 0 {
			f.Sources = map[string]string{"b": "sha256:1", "a": odd[:8]}
			f.Links = map[string]schemas.MemoryLinks{"a": {Repeats: []string{"x"},
				Supersedes: map[string][]string{"y": {"z"}}}}
		}
		m := f.MemoryFile
		m.Observations = []schemas.Observation{}
		for i := range f.entries {
			m.Observations = append(m.Observations, f.entries[i].Observation)
		}
		want, err := state.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.encode(); !bytes.Equal(got, want) {
			t.Fatalf("it writes\n%s\nstate.Encode\n%s", got, want)
		}
	}
}
