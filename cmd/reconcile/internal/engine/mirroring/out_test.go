package mirroring

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const testRepo = "octo/widgets"

// run is one process: it opens the tree anew, and mirrors issues until it is done or killed.
func run(t testing.TB, dir string, w *world, issues []mirror.Issue) (Report, error) {
	t.Helper()
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now, Agent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // everything is on disk
	warn := func(s string) { t.Log(s) }
	m := &Mirror{Remote: w, Records: NewRecords(store, testRepo, false, warn), Now: func() time.Time { return w.clock }}
	if m.Keys, err = m.Records.Keys(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	return m.Out(t.Context(), numbered(t, m.Records, issues))
}

// numbered are issues as Project has them: with the numbers of those that were made.
func numbered(t testing.TB, r *GitHubRecords, issues []mirror.Issue) []mirror.Issue {
	t.Helper()
	out := slices.Clone(issues)
	for i := range out {
		if out[i].Number > 0 {
			continue
		}
		n, err := r.Made(t.Context(), out[i].Object)
		if err != nil {
			t.Fatal(err)
		}
		out[i].Number = n
	}
	return out
}

// done runs until nothing is left, at most some times, and checks that one more run makes no call.
func done(t testing.TB, dir string, w *world, issues []mirror.Issue) {
	t.Helper()
	for n := 0; ; n++ {
		r, err := run(t, dir, w, issues)
		if err == nil && r.Left == 0 {
			break
		}
		if n == 20 {
			t.Fatalf("it does not come to an end: %+v, %v", r, err)
		}
	}
	calls, reads := len(w.calls), w.reads
	if r, err := run(t, dir, w, issues); err != nil || r.calls() != 0 || len(w.calls) != calls || w.reads != reads {
		t.Fatalf("a run without news calls: %+v, %v, %q and %d reads", r, err, w.calls[calls:], w.reads-reads)
	}
}

// check checks that everything wanted stands there once, and nothing else of ours but what may.
func check(t testing.TB, w *world, issues []mirror.Issue, keys mirror.Keys, others map[int64]bool) {
	t.Helper()
	made := map[string]int{}
	for n, i := range w.issues {
		if key, ok := keys.Open(i.Body); ok && i.Author == w.viewer {
			if made[key] != 0 {
				t.Errorf("%s was made twice: #%d and #%d", key, made[key], n)
			}
			made[key] = n
		}
	}
	stands := map[string]string{}
	for id, c := range w.comments {
		key, ok := keys.Open(c.Body)
		if others[id] || c.Author != w.viewer {
			continue
		}
		if !ok {
			t.Errorf("comment %d of ours has no marker: %q", id, c.Body)
		}
		place := fmt.Sprintf("%d %s", c.Issue, key)
		if _, twice := stands[place]; twice {
			t.Errorf("%s stands there twice", place)
		}
		stands[place] = c.Body
	}
	for _, i := range issues {
		n := i.Number
		if n == 0 {
			if n = made[i.Key]; n == 0 {
				t.Errorf("no issue was made for %s", i.Object)
				continue
			}
		}
		if now := w.issues[n]; i.Key != "" && (now.Title != i.Title || now.Body != keys.Seal(i.Key, i.Body)) {
			t.Errorf("#%d is %q: %q, want %q: %q", n, now.Title, now.Body, i.Title, i.Body)
		}
		for _, c := range i.Comments {
			if got := stands[fmt.Sprintf("%d %s", n, c.Key)]; got != keys.Seal(c.Key, c.Body) {
				t.Errorf("%s on #%d is %q, want %q", c.Key, n, got, c.Body)
			}
		}
		for _, l := range []string{"clarification:active", "clarification:stale"} {
			if want := slices.Contains(i.Labels, l); slices.Contains(w.issues[n].Labels, l) != want {
				t.Errorf("#%d has the labels %q, want %q", n, w.issues[n].Labels, i.Labels)
			}
		}
	}
}

func keysOf(t testing.TB, dir string) mirror.Keys {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "state/github/keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	var k schemas.MirrorKeys
	if err := state.DecodeMirror(data, &k); err != nil {
		t.Fatal(err)
	}
	return k.Keys
}

func dagRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.DAGKind.Name, Name: name} }

// wanted is a projection: an issue of a person, and one that is to be made.
func wanted(text string, labels ...string) []mirror.Issue {
	return []mirror.Issue{
		{Number: 42, Labels: labels, Comments: []mirror.Comment{{Key: "status/dag/x", Body: text}, {Key: "round/CLR-42-001/1", Body: "asked " + text}}},
		{Object: dagRef("y"), Key: "issue/dag/y", Title: "y " + text, Body: "made for y " + text, Comments: []mirror.Comment{{Key: "status/dag/y", Body: text}}},
	}
}

func TestOutMakesEditsAndRests(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	said := w.say(42, github.User{Login: "ann", ID: 2}, "hello")
	done(t, dir, w, wanted("one", "clarification:active"))
	check(t, w, wanted("one", "clarification:active"), keysOf(t, dir), nil)
	r, err := run(t, dir, w, wanted("two", "clarification:stale"))
	if err != nil || r.Edits != 4 || r.Comments != 0 || r.Issues != 0 || r.Labels != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	done(t, dir, w, wanted("two", "clarification:stale"))
	check(t, w, wanted("two", "clarification:stale"), keysOf(t, dir), nil)
	if got := w.comments[said.ID].Body; got != "hello" {
		t.Errorf("somebody's comment became %q", got)
	}
	data, err := os.ReadFile(filepath.Join(dir, "state/github/issue-42.json"))
	if err != nil || !strings.Contains(string(data), `"id": 5000000`) || strings.Contains(string(data), "intended") {
		t.Errorf("%v\n%s", err, data)
	}
}

// TestKilledAtEachCall: killed before or after any call, and with or without its answer being lost for good, the next run
// finds what there is, and everything is there once.
func TestKilledAtEachCall(t *testing.T) {
	t.Parallel()
	uncertain := &github.Uncertain{Err: errors.New("reset")}
	for name, fault := range map[string]func() (before, after error){
		"killed before":      func() (error, error) { return errKilled, nil },
		"killed after":       func() (error, error) { return nil, errKilled },
		"answer lost, not":   func() (error, error) { return uncertain, nil },
		"answer lost, done":  func() (error, error) { return nil, uncertain },
		"limited":            func() (error, error) { return &github.Limited{Until: time.Unix(1, 0)}, nil },
		"server fails":       func() (error, error) { return github.ErrServer, nil },
		"server fails after": func() (error, error) { return nil, github.ErrServer },
		"away":               func() (error, error) { return github.ErrUnreachable, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			struck := true
			for k := 1; struck; k++ {
				dir, w := t.TempDir(), newWorld(42)
				struck = false
				w.fail = func(n int, call string, changes bool) (before, after error) {
					if n != k || struck {
						return nil, nil
					}
					struck = true
					return fault()
				}
				last := wanted("two", "clarification:stale")
				_, _ = run(t, dir, w, wanted("one", "clarification:active"))
				_, _ = run(t, dir, w, last)
				done(t, dir, w, last)
				check(t, w, last, keysOf(t, dir), nil)
				if t.Failed() {
					t.Fatalf("call %d: %q", k, w.calls)
				}
			}
		})
	}
}

func TestLostRecordsMakeNothingTwice(t *testing.T) {
	t.Parallel()
	for _, lose := range []string{"issue-42.json", "objects", "all but the keys"} {
		dir, w := t.TempDir(), newWorld(42)
		done(t, dir, w, wanted("one", "clarification:active"))
		folder := filepath.Join(dir, "state/github")
		keys, err := os.ReadFile(filepath.Join(folder, "keys.json"))
		if err != nil {
			t.Fatal(err)
		}
		if lose == "all but the keys" {
			lose = ""
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(folder, lose)), os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, "keys.json"), keys, 0o644)); err != nil {
			t.Fatal(err)
		}
		calls := len(w.calls)
		if r, err := run(t, dir, w, wanted("one", "clarification:active")); err != nil || r.Comments+r.Issues+r.Edits != 0 {
			t.Errorf("without %q: %+v, %v, %q", lose, r, err, w.calls[calls:])
		}
		check(t, w, wanted("one", "clarification:active"), keysOf(t, dir), nil)
	}
}

// TestATreeThatKeepsNothingMakesNothingTwice: in a clone that is thrown away, not even the key is left.
func TestATreeThatKeepsNothingMakesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(42)
	done(t, t.TempDir(), w, wanted("one", "clarification:active"))
	forged := w.say(42, github.User{Login: "eve", ID: 9}, mirror.Keys{"x"}.Seal("status/dag/x", "mine"))
	dir := t.TempDir()
	if r, err := run(t, dir, w, wanted("two", "clarification:active")); err != nil || r.Comments+r.Issues != 0 || r.Edits != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	check(t, w, wanted("two", "clarification:active")[:1], keysOf(t, dir), nil)
	if !strings.HasPrefix(w.comments[forged.ID].Body, "mine") || len(w.issues) != 2 {
		t.Errorf("somebody else's comment was edited, or there are %d issues", len(w.issues))
	}
}

// TestAFreshTreeThatIsBrokenOff: a tree without records that is limited or killed before it has seen everything goes on as
// it began.
func TestAFreshTreeThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"limited": &github.Limited{Until: time.Unix(1, 0)}, "killed": errKilled, "no token": github.ErrUnauthorized} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			struck := true
			for k := 1; struck; k++ {
				w, dir := newWorld(42), t.TempDir()
				last := wanted("one", "clarification:active")
				done(t, t.TempDir(), w, last)
				before, made := len(w.calls)+w.reads, w.next
				struck = false
				w.fail = func(n int, _ string, _ bool) (error, error) {
					struck = struck || n == before+k
					return map[bool]error{true: fault}[n == before+k], nil
				}
				_, _ = run(t, dir, w, last)
				w.fail = nil
				done(t, dir, w, last)
				check(t, w, last, keysOf(t, dir), nil)
				if w.next != made || t.Failed() {
					t.Fatalf("call %d: %q", k, w.calls)
				}
			}
		})
	}
}

// TestLabelsOfLostRecordsComeOff: in a tree that is thrown away after each run, what an earlier one labelled is ours, too.
func TestLabelsOfLostRecordsComeOff(t *testing.T) {
	t.Parallel()
	w := newWorld(42)
	w.issues[42].Labels = []string{"bug"}
	done(t, t.TempDir(), w, wanted("one", "clarification:active"))
	done(t, t.TempDir(), w, wanted("two", "clarification:stale"))
	done(t, t.TempDir(), w, wanted("three"))
	if got := w.issues[42].Labels; !slices.Equal(got, []string{"bug"}) {
		t.Errorf("the labels are %q", got)
	}
}

// TestLabelsOfOthersAreAskedForOnce: that somebody else put a label where it should be is on record.
func TestLabelsOfOthersAreAskedForOnce(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	w.issues[42].Labels = []string{"clarification:active"}
	done(t, dir, w, wanted("one", "clarification:active"))
	done(t, dir, w, wanted("two"))
	if got := w.issues[42].Labels; !slices.Equal(got, []string{"clarification:active"}) {
		t.Errorf("the labels are %q", got)
	}
	w.issues[42].Labels = nil // now it is ours
	done(t, dir, w, wanted("three", "clarification:active"))
	done(t, dir, w, wanted("four"))
	if got := w.issues[42].Labels; len(got) != 0 {
		t.Errorf("the labels are %q", got)
	}
}

// TestAnotherKeySignsOn: when the key is another one, what is on record tells that comments are as we left them.
func TestAnotherKeySignsOn(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	done(t, dir, w, wanted("one"))
	other := `{"version":1,"keys":["` + strings.Repeat("a", schemas.MirrorKeyLength) + `"]}`
	if err := os.WriteFile(filepath.Join(dir, "state/github/keys.json"), []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	last := wanted("two")[:1]
	if r, err := run(t, dir, w, last); err != nil || r.Comments != 0 || r.Edits != 2 || len(r.Notes) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDamagedRecordsAreSetAside(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"torn": `{"version":1,`, "conflict": "<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n", "another issue": `{"version":1,"repo":"octo/widgets","issue":41,"comments":[]}`,
		"another repository": `{"version":1,"repo":"octo/gadgets","issue":42,"comments":[{"key":"status/dag/x","id":1,"digest":"d"}]}`,
		"two of a key":       `{"version":1,"repo":"octo/widgets","issue":42,"comments":[{"key":"a"},{"key":"a"}]}`,
	} {
		dir, w := t.TempDir(), newWorld(42)
		done(t, dir, w, wanted("one"))
		p := filepath.Join(dir, "state/github/issue-42.json")
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := run(t, dir, w, wanted("one")); err != nil || r.Comments+r.Issues+r.Edits != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		check(t, w, wanted("one"), keysOf(t, dir), nil)
		aside, err := os.ReadFile(filepath.Join(dir, ".reconcile/damaged/state/github/issue-42.json.1"))
		if err != nil || string(aside) != content {
			t.Errorf("%s: what was damaged is lost: %v", name, err)
		}
	}
	dir, w := t.TempDir(), newWorld(42)
	done(t, dir, w, wanted("one"))
	p := filepath.Join(dir, "state/github/issue-42.json")
	const newer = `{"version":2,"repo":"octo/widgets","issue":42,"comments":{}}`
	if err := os.WriteFile(p, []byte(strings.Replace(newer, "{}", "[]", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, dir, w, wanted("one")); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a file of a newer program: %v", err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotOursStays(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	w.issues[42].Labels = []string{"bug", "clarification:stale"}
	done(t, dir, w, wanted("one", "clarification:active"))
	var ids []int64
	for id := range w.comments {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	edited := ids[0]
	w.comments[edited].Body = strings.Replace(w.comments[edited].Body, "one", "one, and more by Ann", 1)
	before := w.comments[edited].Body
	w.issues[42].Labels = []string{"bug", "clarification:stale"} // somebody took ours off
	w.issues[42].Open = false
	r, err := run(t, dir, w, wanted("two", "clarification:active", "clarification:stale"))
	if err != nil || r.Comments != 1 || r.Edits != 3 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "edited by somebody else") {
		t.Errorf("%+v, %v", r, err)
	}
	if got := w.comments[edited].Body; got != before {
		t.Errorf("what somebody edited became %q", got)
	}
	if got := w.issues[42].Labels; !slices.Equal(got, []string{"bug", "clarification:stale"}) || w.issues[42].Open {
		t.Errorf("labels %q, open %v", got, w.issues[42].Open)
	}
	if _, err := run(t, dir, w, wanted("two")); err != nil || !slices.Contains(w.issues[42].Labels, "clarification:stale") {
		t.Errorf("a label of somebody else was removed: %v", err)
	}
	// Another account that puts our own words there is not us.
	forged := w.say(42, github.User{Login: "eve", ID: 9}, keysOf(t, dir).Seal("status/dag/z", "x"))
	with := wanted("two")
	with[0].Comments = append(with[0].Comments, mirror.Comment{Key: "status/dag/z", Body: "z"})
	if r, err := run(t, dir, w, with); err != nil || r.Comments != 1 || w.comments[forged.ID].Body != keysOf(t, dir).Seal("status/dag/z", "x") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDeletedCommentsComeBackWhenTheyAreNews(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	done(t, dir, w, wanted("one"))
	clear(w.comments)
	if r, err := run(t, dir, w, wanted("one")); err != nil || r.calls() != 0 {
		t.Errorf("what somebody deleted came back without news: %+v, %v", r, err)
	}
	if r, err := run(t, dir, w, wanted("two")); err != nil || r.Comments != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	check(t, w, wanted("two"), keysOf(t, dir), nil)
}

func TestOneIssueDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	issues := append([]mirror.Issue{{Number: 7, Comments: []mirror.Comment{{Key: "status/dag/q", Body: "q"}}}}, wanted("one")...)
	r, err := run(t, dir, w, issues)
	if err != nil || r.Left != 1 || r.Comments != 3 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "issue #7") {
		t.Errorf("%+v, %v", r, err)
	}
	w = newWorld(1, 2, 3, 4)
	w.fail = func(int, string, bool) (error, error) { return github.ErrForbidden, nil }
	var many []mirror.Issue
	for n := range 4 {
		many = append(many, mirror.Issue{Number: n + 1, Comments: []mirror.Comment{{Key: "k", Body: "b"}}})
	}
	if r, err := run(t, t.TempDir(), w, many); !errors.Is(err, github.ErrForbidden) || len(w.calls)+w.reads != maxRefusals || r.Left != 4 {
		t.Errorf("%+v, %v, %d reads", r, err, w.reads)
	}
	w.calls, w.reads = nil, 0
	for _, of := range []error{github.ErrTransferred, github.ErrLocked, github.ErrGone, github.ErrInvalid} { // of all issues but the last
		w := newWorld(1, 2, 3, 4)
		w.fail = func(_ int, call string, _ bool) (error, error) {
			return map[bool]error{true: of}[call != "comments 4" && call != "comment on 4"], nil
		}
		if r, err := run(t, t.TempDir(), w, many); err != nil || r.Left != 3 || r.Comments != 1 || len(r.Notes) != 3 {
			t.Errorf("%v: %+v, %v", of, r, err)
		}
	}
	for _, of := range []error{github.ErrUnauthorized, github.ErrMoved, github.ErrNoIssues} { // of the repository
		w := newWorld(1, 2, 3, 4)
		w.fail = func(int, string, bool) (error, error) { return of, nil }
		if r, err := run(t, t.TempDir(), w, many); !errors.Is(err, of) || w.reads != 1 || r.Left != 4 {
			t.Errorf("%v: %+v, %v, %d reads", of, r, err, w.reads)
		}
	}
}

// TestAnIssueThatIsGone: it is said how what was shown there gets to another one; nothing is made by itself in its place,
// until its record is deleted.
func TestAnIssueThatIsGone(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	done(t, dir, w, wanted("one"))
	clear(w.issues)
	clear(w.comments)
	r, err := run(t, dir, w, wanted("two"))
	if err != nil || r.Left != 2 || len(r.Notes) != 2 || w.next != 4 || !strings.HasSuffix(r.Notes[0], "; name another one in the spec, or none") ||
		!strings.HasSuffix(r.Notes[1], "; name one in the spec of dag/y, or delete state/github/objects/dags/y.json to have one made") {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := os.Remove(filepath.Join(dir, "state/github/objects/dags/y.json")); err != nil {
		t.Fatal(err)
	}
	last := wanted("two")[1:]
	done(t, dir, w, last)
	check(t, w, last, keysOf(t, dir), nil)
}

// TestTheHeadOfAnIssueFollows: an issue that was made for an object is called what the object is called, unless somebody
// else renamed it or edited its text.
func TestTheHeadOfAnIssueFollows(t *testing.T) {
	t.Parallel()
	const number = 1001 // of the issue that is made
	for name, c := range map[string]struct {
		person      func(*github.Issue)
		title, body string // at last; the body without its marker
		edits       int
	}{
		"nobody":         {func(*github.Issue) {}, "y two", "made for y two", 1},
		"renamed":        {func(i *github.Issue) { i.Title = "Checks" }, "Checks", "made for y two", 1},
		"text edited":    {func(i *github.Issue) { i.Body = "mine" }, "y two", "mine", 1},
		"both":           {func(i *github.Issue) { i.Title, i.Body = "Checks", "mine" }, "Checks", "mine", 0},
		"as it is to be": {func(i *github.Issue) { i.Title, i.Body = "y two", "mine" }, "y two", "mine", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, w := t.TempDir(), newWorld(42)
			done(t, dir, w, wanted("one")[1:])
			i := w.issues[number]
			c.person(i)
			if r, err := run(t, dir, w, wanted("two")[1:]); err != nil || r.Edits != 1+c.edits {
				t.Errorf("%+v, %v", r, err)
			}
			done(t, dir, w, wanted("two")[1:])
			if i.Title != c.title || mirror.Unsealed(i.Body) != c.body {
				t.Errorf("it is %q: %q", i.Title, i.Body)
			}
			done(t, dir, w, wanted("three")[1:])
			if want := strings.Replace(c.title, "two", "three", 1); name != "as it is to be" && i.Title != want {
				t.Errorf("next time it is %q, want %q", i.Title, want)
			}
		})
	}
}

// TestARenamingThatWasKilledGoesOn: who is killed after the call has not made the title somebody else's.
func TestARenamingThatWasKilledGoesOn(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	done(t, dir, w, wanted("one")[1:])
	w.fail = func(_ int, call string, _ bool) (before, after error) {
		if strings.HasPrefix(call, "edit issue") {
			return nil, errKilled
		}
		return nil, nil
	}
	if _, err := run(t, dir, w, wanted("two")[1:]); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	w.fail = nil
	last := wanted("three")[1:]
	done(t, dir, w, last)
	check(t, w, last, keysOf(t, dir), nil)
}

// TestTheHeadOfAnOldRecord: of what an earlier version made, nobody knows what the title was; it stays, and that is asked
// for once.
func TestTheHeadOfAnOldRecord(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	done(t, dir, w, wanted("one")[1:])
	record := `{"version":1,"repo":"` + testRepo + `","object":"dag/y","issue":1001}`
	if err := os.WriteFile(filepath.Join(dir, "state/github/objects/dags/y.json"), []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	done(t, dir, w, wanted("two")[1:])
	if i := w.issues[1001]; i.Title != "y one" || mirror.Unsealed(i.Body) != "made for y two" {
		t.Errorf("it is %q: %q", i.Title, i.Body)
	}
	done(t, dir, w, wanted("three")[1:])
	if i := w.issues[1001]; i.Title != "y one" {
		t.Errorf("it is %q", i.Title)
	}
}

func TestLabelsGoWithWhatIsShown(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	done(t, dir, w, wanted("one", "clarification:active"))
	if r, err := run(t, dir, w, wanted("one", "clarification:active")[1:]); err != nil || r.Labels != 1 || len(w.issues[42].Labels) != 0 {
		t.Errorf("%+v, %v, %q", r, err, w.issues[42].Labels)
	}
}

// TestWhatGitHubMakesOfATextIsKnown: a server that changes what it is told has no comment made again and again.
func TestWhatGitHubMakesOfATextIsKnown(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	odd := &changing{w}
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // everything is on disk
	for n, text := range []string{"one", "two", "three"} {
		m := &Mirror{Remote: odd, Records: NewRecords(store, testRepo, false, nil), Now: func() time.Time { return w.clock }, Keys: mirror.Keys{"k"}}
		r, err := m.Out(t.Context(), wanted(text)[:1])
		if err != nil || n > 0 && (r.Comments != 0 || r.Edits != 2) || len(r.Notes) > 0 {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
}

// changing is a GitHub that keeps something else than it is told.
type changing struct{ *world }

func (c *changing) CreateComment(ctx contextType, issue int, body string) (*github.Comment, error) {
	return c.world.CreateComment(ctx, issue, strings.ReplaceAll(body, "o", "0"))
}

func (c *changing) EditComment(ctx contextType, id int64, body string) (*github.Comment, error) {
	return c.world.EditComment(ctx, id, strings.ReplaceAll(body, "o", "0"))
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld(42)
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // nothing was written
	records := NewRecords(store, testRepo, true, nil)
	keys, err := records.Keys(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	m := &Mirror{Remote: &dryWorld{w}, Records: records, Now: func() time.Time { return w.clock }, Keys: keys, Dry: true}
	r, err := m.Out(t.Context(), wanted("one", "clarification:active"))
	if err != nil || r.Issues != 1 || r.Comments != 3 || r.Labels != 1 || records.Changed() {
		t.Errorf("%+v, %v", r, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 || len(w.comments) != 0 {
		t.Errorf("%v, %v, %d comments", left, err, len(w.comments))
	}
}

// TestAnySequenceEndsWell has the tree change, calls fail and people edit, delete and label at random; in the end all is
// there once, and what people did stands.
func TestAnySequenceEndsWell(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		c := rand.New(rand.NewPCG(seed, 3))
		dir, w := t.TempDir(), newWorld(42)
		others := map[int64]bool{}
		var last []mirror.Issue
		for step := range 8 {
			labels := []string{"clarification:active", "clarification:stale"}[:c.IntN(3)]
			last = wanted(fmt.Sprintf("text %d", step/2), labels...)
			at, kind := 1+c.IntN(12), c.IntN(5)
			w.fail = func(n int, _ string, _ bool) (before, after error) {
				if at--; at != 0 {
					return nil, nil
				}
				fault := []error{errKilled, &github.Uncertain{Err: errKilled}, github.ErrServer, nil, nil}[kind]
				if c.IntN(2) == 0 {
					return fault, nil
				}
				return nil, fault
			}
			_, _ = run(t, dir, w, last)
			w.fail = nil
			if c.IntN(3) == 0 { // a person deletes or edits a comment of ours
				for id, k := range w.comments {
					if others[id] {
						continue
					}
					if c.IntN(2) == 0 {
						delete(w.comments, id)
					} else {
						k.Body, others[id] = "edited\n"+k.Body, true
					}
					break
				}
			}
		}
		last = wanted("at last", "clarification:active")
		done(t, dir, w, last)
		check(t, w, last, keysOf(t, dir), others)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
