// Package storetest is what every [memstore.Store] has to do: one suite for whatever implements it.
package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
)

// Env is the world that a store is opened in.
type Env struct {
	Now time.Time
	// WriteFile changes a file of the tree that observations can be about; nil content removes it.
	WriteFile func(path string, content []byte)
	// Digest is that of a file's content, as a store records it.
	Digest func(path string) string
}

// Opened is an empty store and its world.
type Opened struct {
	memstore.Store
	*Env
}

// Run runs the suite. open makes an empty store, which the test's cleanup closes; its clock is Env.Now as it is when it is
// asked.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	for name, test := range map[string]func(*suite){
		"empty": (*suite).empty, "capture": (*suite).capture, "refused": (*suite).refused, "list": (*suite).list,
		"search": (*suite).search, "superseded": (*suite).superseded, "repeated": (*suite).repeated,
		"removed": (*suite).removed, "stale": (*suite).stale, "recall": (*suite).recall, "budget": (*suite).budget,
		"compact": (*suite).compact, "stats": (*suite).stats, "together": (*suite).together, "texts": (*suite).texts,
	} {
		t.Run(name, func(t *testing.T) { test(&suite{T: t, Opened: open(t)}) })
	}
}

// suite is one test with a store of its own.
type suite struct {
	*testing.T
	Opened
}

// noon is when most is learned.
func noon() time.Time { return time.Date(2026, 2, 27, 12, 0, 0, 0, time.UTC) }

func entry(content string) schemas.ObservationEntry {
	summary, _, _ := strings.Cut(content, ".")
	return schemas.ObservationEntry{Category: schemas.CategoryDecision, Content: content, Summary: summary[:min(len(summary), 200)]}
}

func observation(agent string, issue int, at time.Time, entries ...schemas.ObservationEntry) *schemas.ObservationSpec {
	return &schemas.ObservationSpec{Agent: agent, Issue: issue, Session: "s", Timestamp: schemas.NewTime(at), Entries: entries}
}

func (s *suite) learn(spec *schemas.ObservationSpec) []string {
	s.Helper()
	c, err := s.Capture(s.Context(), spec)
	if err != nil || c.Held {
		s.Fatalf("capture: %+v, %v", c, err)
	}
	var ids []string
	for _, o := range c.Observations {
		ids = append(ids, o.ID)
	}
	return ids
}

func (s *suite) listed(f memstore.Filter) []string {
	s.Helper()
	rows, err := s.List(s.Context(), f)
	if err != nil {
		s.Fatal(err)
	}
	return idsOf(rows)
}

func (s *suite) found(q memstore.Query) []string {
	s.Helper()
	rows, err := s.Search(s.Context(), q)
	if err != nil {
		s.Fatal(err)
	}
	return idsOf(rows)
}

func idsOf(rows []memstore.Row) []string {
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func (s *suite) want(what string, got, want []string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (s *suite) wantErr(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: %v, want %v", what, err, want)
	}
}

const unknown = "obs-engineer-1-1772193600000-zzzzzz"

func (s *suite) empty() {
	s.want("listed", s.listed(memstore.Filter{}), nil)
	s.want("found", s.found(memstore.Query{Text: "anything"}), nil)
	r, err := s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "anything"})
	if err != nil || r.Text != "" || r.Tokens != 0 || len(r.IDs) != 0 {
		s.Errorf("recalled %+v, %v", r, err)
	}
	if all, err := s.ByIssue(s.Context(), 1); err != nil || len(all) != 0 {
		s.Errorf("issue 1: %+v, %v", all, err)
	}
	_, err = s.ByID(s.Context(), unknown)
	s.wantErr("by id", err, memstore.ErrUnknown)
	st, err := s.Stats(s.Context())
	if err != nil || st.TotalObservations != 0 || st.IssueCount != 0 || !st.OldestTimestamp.IsZero() {
		s.Errorf("%+v, %v", st, err)
	}
}

func (s *suite) capture() {
	spec := observation("engineer", 29, noon(), entry("Chose files for storage. SQLite was too much."), entry("Locks are taken in order"))
	c, err := s.Capture(s.Context(), spec)
	if err != nil || len(c.Observations) != 2 || c.Known || c.Tokens != c.Observations[0].Tokens+c.Observations[1].Tokens {
		s.Fatalf("%+v, %v", c, err)
	}
	for i, o := range c.Observations {
		if !schemas.IsObservationID(o.ID) || o.Agent != "engineer" || o.IssueNumber != 29 || o.SessionID != "s" || o.Source != c.Name ||
			o.Tokens != tokens.Count(o.Content) || !o.Timestamp.Equal(noon()) {
			s.Errorf("%+v", o)
		}
		if got, err := s.ByID(s.Context(), o.ID); err != nil || got.Content != c.Observations[i].Content {
			s.Errorf("%s: %+v, %v", o.ID, got, err)
		}
	}
	all, err := s.ByIssue(s.Context(), 29)
	if err != nil || len(all) != 2 {
		s.Errorf("%+v, %v", all, err)
	}
	again, err := s.Capture(s.Context(), spec)
	if err != nil || !again.Known || again.Name != c.Name || len(again.Observations) != 0 {
		s.Errorf("captured again: %+v, %v", again, err)
	}
	if got := s.listed(memstore.Filter{}); len(got) != 2 {
		s.Errorf("listed %q", got)
	}
}

func (s *suite) refused() {
	for _, agent := range []string{"", "../x", "A", "a/b", "con"} {
		_, err := s.Capture(s.Context(), observation(agent, 1, noon(), entry("text")))
		s.wantErr("agent "+agent, err, memstore.ErrInvalid)
	}
	_, err := s.Capture(s.Context(), observation("a", -1, noon(), entry("text")))
	s.wantErr("issue -1", err, memstore.ErrInvalid)
	_, err = s.Capture(s.Context(), observation("a", 1, noon()))
	s.wantErr("no entries", err, memstore.ErrInvalid)
	_, err = s.Capture(s.Context(), observation("a", 1, noon(), slices.Repeat([]schemas.ObservationEntry{entry("text")}, 51)...))
	s.wantErr("51 entries", err, memstore.ErrInvalid)
	_, err = s.Capture(s.Context(), observation("a", 1, noon(), schemas.ObservationEntry{Category: "gossip", Content: "x"}))
	s.wantErr("a bad category", err, memstore.ErrInvalid)
	_, err = s.ByIssue(s.Context(), -1)
	s.wantErr("by issue", err, memstore.ErrInvalid)
	_, err = s.List(s.Context(), memstore.Filter{Category: "gossip"})
	s.wantErr("list", err, memstore.ErrInvalid)
	for _, id := range []string{"", "x", "obs-a-1-1-../../"} {
		_, err = s.ByID(s.Context(), id)
		s.wantErr("by id "+id, err, memstore.ErrInvalid)
		s.wantErr("remove "+id, s.Remove(s.Context(), []string{id}, "me", ""), memstore.ErrInvalid)
		s.wantErr("verify "+id, s.Verify(s.Context(), []string{id}, "me"), memstore.ErrInvalid)
	}
	s.wantErr("remove", s.Remove(s.Context(), []string{unknown}, "me", ""), memstore.ErrUnknown)
	s.wantErr("verify", s.Verify(s.Context(), []string{unknown}, "me"), memstore.ErrUnknown)
	s.want("listed", s.listed(memstore.Filter{}), nil)
}

func (s *suite) list() {
	fact := entry("A fact")
	fact.Category = schemas.CategoryKeyFact
	b := s.learn(observation("tester", 2, noon(), entry("Second issue")))
	a := s.learn(observation("engineer", 1, noon().Add(time.Hour), entry("Later")))
	c := s.learn(observation("engineer", 1, noon(), fact))
	two := 2
	s.want("all", s.listed(memstore.Filter{}), slices.Concat(c, a, b))
	s.want("by agent", s.listed(memstore.Filter{Agent: "tester"}), b)
	s.want("by issue", s.listed(memstore.Filter{Issue: &two}), b)
	s.want("by category", s.listed(memstore.Filter{Category: schemas.CategoryKeyFact}), c)
	s.want("since", s.listed(memstore.Filter{Since: noon().Add(time.Hour)}), a)
	s.want("until", s.listed(memstore.Filter{Until: noon().Add(time.Hour)}), slices.Concat(c, b))
	s.want("nothing is superseded", s.listed(memstore.Filter{Superseded: memstore.Only}), nil)
	s.want("nothing is archived", s.listed(memstore.Filter{Archived: memstore.Only}), nil)
}

func (s *suite) search() {
	a := s.learn(observation("engineer", 1, noon(), entry("The adapter retries three times. It waits between.")))
	b := s.learn(observation("engineer", 2, noon(), entry("The adapter is written in Go")))
	s.learn(observation("tester", 3, noon(), entry("Colours are blue")))
	s.want("one word", s.found(memstore.Query{Text: "retries"}), a)
	if got := s.found(memstore.Query{Text: "adapter retries"}); len(got) != 2 || got[0] != a[0] || got[1] != b[0] {
		s.Errorf("best first: %q", got)
	}
	s.want("limit", s.found(memstore.Query{Text: "adapter retries", Limit: 1}), a)
	one := 1
	s.want("filter", s.found(memstore.Query{Text: "adapter", Filter: memstore.Filter{Issue: &one}}), a)
	s.want("nothing", s.found(memstore.Query{Text: "zebra"}), nil)
	s.want("no words", s.found(memstore.Query{}), nil)
}

func (s *suite) superseded() {
	old := s.learn(observation("engineer", 1, noon(), entry("Use MySQL for the store")))
	e := entry("Use Postgres for the store")
	e.Supersedes = old
	now := s.learn(observation("architect", 2, noon().Add(time.Hour), e))
	s.want("listed", s.listed(memstore.Filter{}), now)
	s.want("with", s.listed(memstore.Filter{Superseded: memstore.With}), slices.Concat(old, now))
	s.want("only", s.listed(memstore.Filter{Superseded: memstore.Only}), old)
	s.want("found", s.found(memstore.Query{Text: "store"}), now)
	o, err := s.ByID(s.Context(), old[0])
	if err != nil || o.SupersededBy != now[0] {
		s.Errorf("%+v, %v", o, err)
	}
	r, err := s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "store"})
	if err != nil || !slices.Equal(r.IDs, now) {
		s.Errorf("recalled %q, %v", r.IDs, err)
	}
	if err := s.Remove(s.Context(), now, "me", "it is wrong"); err != nil {
		s.Fatal(err)
	}
	s.want("after the newer one is removed", s.listed(memstore.Filter{}), nil)
	s.want("still superseded", s.listed(memstore.Filter{Superseded: memstore.Only}), old)
}

func (s *suite) repeated() {
	first := s.learn(observation("engineer", 1, noon(), entry("The build needs Go 1.26")))
	again := entry("The build needs Go 1.26")
	again.Repeats = first[0]
	c, err := s.Capture(s.Context(), observation("tester", 2, noon().Add(time.Hour), again, entry("Something else")))
	if err != nil || len(c.Observations) != 1 || !slices.Equal(c.Repeats, first) {
		s.Errorf("%+v, %v", c, err)
	}
	if o, err := s.ByID(s.Context(), first[0]); err != nil || o.SeenCount != 2 {
		s.Errorf("%+v, %v", o, err)
	}
}

func (s *suite) removed() {
	spec := observation("engineer", 1, noon(), entry("To be removed"), entry("To stay"))
	ids := s.learn(spec)
	gone := ids[0]
	if o, _ := s.ByID(s.Context(), gone); o.Content != "To be removed" {
		gone = ids[1]
	}
	if err := s.Remove(s.Context(), []string{gone}, "me", "it was wrong"); err != nil {
		s.Fatal(err)
	}
	_, err := s.ByID(s.Context(), gone)
	s.wantErr("removed", err, memstore.ErrUnknown)
	if got := s.listed(memstore.Filter{}); len(got) != 1 || got[0] == gone {
		s.Errorf("left: %q", got)
	}
	s.learn(spec)
	s.want("found after capturing it again", s.found(memstore.Query{Text: "removed"}), nil)
	s.wantErr("removed twice", s.Remove(s.Context(), []string{gone}, "me", ""), memstore.ErrUnknown)
}

func (s *suite) stale() {
	s.WriteFile("src/a.go", []byte("one"))
	e := entry("a.go has one function")
	e.Anchors, e.Digests = []string{"src/a.go", "src/b.go"}, map[string]string{"src/a.go": s.Digest("src/a.go"), "src/b.go": schemas.AnchorAbsent}
	ids := s.learn(observation("engineer", 1, noon(), e))
	s.want("stale", s.listed(memstore.Filter{Stale: true}), nil)
	s.WriteFile("src/a.go", []byte("two"))
	s.want("stale after a change", s.listed(memstore.Filter{Stale: true}), ids)
	r, err := s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: 1})
	if err != nil || !strings.Contains(r.Text, "may be stale: src/a.go changed since") {
		s.Errorf("%s, %v", r.Text, err)
	}
	if err := s.Verify(s.Context(), ids, "me"); err != nil {
		s.Fatal(err)
	}
	s.want("stale after verifying", s.listed(memstore.Filter{Stale: true}), nil)
	if o, err := s.ByID(s.Context(), ids[0]); err != nil || o.VerifiedAt.IsZero() || o.Anchors[0].Digest != s.Digest("src/a.go") {
		s.Errorf("%+v, %v", o, err)
	}
	s.WriteFile("src/a.go", nil)
	s.WriteFile("src/b.go", []byte("new"))
	rows, err := s.List(s.Context(), memstore.Filter{})
	if err != nil || len(rows) != 1 || rows[0].Stale != "src/a.go is gone since, src/b.go exists since" {
		s.Errorf("%+v, %v", rows, err)
	}
}

func (s *suite) recall() {
	s.learn(observation("tester", 2, noon(), entry("Colours are blue")))
	a := s.learn(observation("engineer", 1, noon(), entry("The adapter retries three times")))
	s.Env.Now = noon().Add(48 * time.Hour)
	r, err := s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "adapter retries of blue"})
	if err != nil || len(r.IDs) != 2 || r.IDs[0] != a[0] || r.Total != 2 || r.Tokens != tokens.Count(r.Text) {
		s.Fatalf("%+v, %v", r, err)
	}
	if !strings.HasPrefix(r.Text, "## Memory Recall\n") || !strings.Contains(r.Text, "| The adapter retries three times\n") {
		s.Errorf("%s", r.Text)
	}
	_, err = s.Recall(s.Context(), memstore.Request{Agent: "../x", Issue: 1})
	s.wantErr("agent", err, memstore.ErrInvalid)
	_, err = s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: -1})
	s.wantErr("issue", err, memstore.ErrInvalid)
	// The number of recalls counts: with all else equal the recalled one comes first.
	b := s.learn(observation("engineer", 1, noon(), entry("Zebras have stripes")))
	for range 3 {
		if _, err := s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "stripes"}); err != nil {
			s.Fatal(err)
		}
		s.Env.Now = s.Env.Now.Add(time.Second)
	}
	r, err = s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "stripes", Dry: true})
	if err != nil || len(r.IDs) != 2 || r.IDs[0] != b[0] {
		s.Errorf("%+v, %v", r, err)
	}
}

func (s *suite) budget() {
	var entries []schemas.ObservationEntry
	for i := range 50 {
		entries = append(entries, entry(fmt.Sprintf("Fact %d: %s", i, strings.Repeat("the adapter waits. ", i))))
	}
	s.learn(observation("engineer", 1, noon(), entries...))
	for _, budget := range []int{0, 1, 10, 60, 100, 500, 5000} {
		r, err := s.Recall(s.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "adapter", Budget: &budget, Dry: true})
		if err != nil || r.Tokens > budget || tokens.Count(r.Text) > budget || (budget >= 100) != (len(r.IDs) > 0) {
			s.Errorf("%d tokens: %d in %q, %v", budget, r.Tokens, r.IDs, err)
		}
	}
}

func (s *suite) compact() {
	_, err := s.Compact(s.Context(), 1)
	s.wantErr("nothing to compact", err, memstore.ErrNothing)
	var entries []schemas.ObservationEntry
	for i := range 10 {
		entries = append(entries, entry(fmt.Sprintf("Decision %d about the adapter. ", i)+strings.Repeat("It was weighed with care. ", 60)))
	}
	ids := s.learn(observation("engineer", 1, noon(), entries...))
	other := s.learn(observation("engineer", 2, noon(), entry("Another issue")))
	before := s.listed(memstore.Filter{})
	c, err := s.Compact(s.Context(), 1)
	if err != nil || c.Before != 10 || c.After > 5 || c.Archived != 10 {
		s.Fatalf("%+v, %v", c, err)
	}
	if got := s.listed(memstore.Filter{}); len(got) != c.After+1 || !slices.Contains(got, other[0]) {
		s.Errorf("left %q", got)
	}
	if got := s.listed(memstore.Filter{Archived: memstore.Only}); len(got) != 10 {
		s.Errorf("archived %q", got)
	}
	for _, id := range ids {
		if o, err := s.ByID(s.Context(), id); err != nil || !o.Archived {
			s.Errorf("%+v, %v", o, err)
		}
	}
	if got := s.found(memstore.Query{Text: "Decision 7 adapter"}); len(got) == 0 {
		s.Error("what was merged is not found")
	}
	s.Env.Now = s.Env.Now.Add(time.Minute)
	s.Env.Now = s.Env.Now.Add(time.Hour)
	u, err := s.Undo(s.Context(), 1)
	if err != nil || u.After != 10 || u.Archived != 0 {
		s.Fatalf("%+v, %v", u, err)
	}
	s.want("after undoing", s.listed(memstore.Filter{}), before)
	_, err = s.Undo(s.Context(), 1)
	s.wantErr("nothing to undo", err, memstore.ErrNothing)
}

func (s *suite) stats() {
	s.learn(observation("engineer", 1, noon(), entry("One"), entry("Two")))
	fact := entry("Three")
	fact.Category = schemas.CategoryError
	s.learn(observation("tester", 2, noon().Add(time.Hour), fact))
	st, err := s.Stats(s.Context())
	if err != nil || st.TotalObservations != 3 || st.IssueCount != 2 || st.ByAgent["engineer"] != 2 || st.ByCategory[schemas.CategoryError] != 1 ||
		!st.OldestTimestamp.Equal(noon()) || !st.NewestTimestamp.Equal(noon().Add(time.Hour)) || st.TotalTokens != 3 {
		s.Errorf("%+v, %v", st, err)
	}
}

// together: what goroutines capture at once, into one issue, is all there.
func (s *suite) together() {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 5 {
				at := noon().Add(time.Duration(g) * time.Minute)
				if _, err := s.Capture(s.Context(), observation("engineer", 1, at, entry(fmt.Sprintf("Goroutine %d says %d", g, i)))); err != nil {
					s.Error(err)
				}
				if _, err := s.Search(s.Context(), memstore.Query{Text: "goroutine"}); err != nil {
					s.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := s.listed(memstore.Filter{}); len(got) != 20 {
		s.Errorf("%d of 20 captures are there", len(got))
	}
}

// texts: what people write comes back as it was written.
func (s *suite) texts() {
	for _, text := range []string{
		"Emoji 👩‍👩‍👧 stay", "עברית נשארת", "two\nlines\n\nand more", "quotes \" and \\ and <tags> & 'so'", "- a: [list]", "ends with a newline\n",
		"  begins with blanks", "tab\there", "#hash", "\u2028 separators", strings.Repeat("long ", 390),
	} {
		ids := s.learn(observation("engineer", 5, noon(), schemas.ObservationEntry{Category: schemas.CategoryKeyFact, Content: text}))
		o, err := s.ByID(s.Context(), ids[0])
		if err != nil || o.Content != text {
			s.Errorf("%q became %q, %v", text, o.Content, err)
		}
	}
}
