package slash

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var update = flag.Bool("update", false, "rewrite the expected verdicts in testdata")

var now = time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)

// TestDecide runs testdata/decide/*.txtar. Files of an archive:
//
//	specs/…                              the tree
//	ledger                               the ledger of an issue, where other programs wrote
//	issue ISSUE OBJECT…                  what an issue stands for; its content are our comments on it: key and id
//	comment ISSUE ID LOGIN ROLE [edited] a comment that was not read before; a LOGIN with [bot] is an app
//	out                                  what is decided: the last file
func TestDecide(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/decide/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, a)
			all := Decide(w.input())
			compare(t, file, a, trace(t, all))
			w.checkKilled(t, all)
		})
	}
}

// world is a tree with issues.
type world struct {
	t       testing.TB
	entries map[schemas.Ref]*state.Entry
	set     *schemas.SettingsSpec
	issues  []Issue
	ledgers []*state.Ledger
}

var decoder = schemas.NewDecoder(controllers.Schemas(), 0)

func newWorld(t testing.TB, a *txtar.Archive) *world {
	w := &world{t: t, entries: map[schemas.Ref]*state.Entry{}}
	for _, f := range a.Files {
		words := strings.Fields(f.Name)
		switch {
		case strings.HasPrefix(f.Name, "specs/") || f.Name == schemas.SettingsPath:
			w.put(f.Name, f.Data)
		case words[0] == "run":
			w.run(words[1], f.Data)
		case f.Name == "ledger":
			l, err := state.ParseLedger("state/clarifications/issue-42.json", f.Data)
			if err != nil {
				t.Fatal(err)
			}
			w.ledgers = append(w.ledgers, l)
		case words[0] == "issue":
			w.issue(words[1:], string(f.Data))
		case words[0] == "text": // of the issue before it
			w.issues[len(w.issues)-1].Text = string(f.Data)
		case words[0] == "comment":
			w.comment(words[1:], string(f.Data))
		}
	}
	return w
}

func (w *world) put(path string, src []byte) {
	w.t.Helper()
	d := decoder.Decode(path, src)
	if d.Object == nil {
		w.t.Fatalf("%s: %v", path, d.Problems)
	}
	if set, ok := d.Object.Spec().(*schemas.SettingsSpec); ok {
		w.set = set
		return
	}
	e := &state.Entry{Ref: d.Ref}
	if old := w.entries[d.Ref]; old != nil {
		*e = *old
	}
	e.Object = d.Object
	w.entries[d.Ref] = e
}

// run adds a record to an object.
func (w *world) run(owner string, src []byte) {
	w.t.Helper()
	ref, err := controllers.Schemas().ParseRef(owner)
	r := new(schemas.Run)
	if err = errors.Join(err, json.Unmarshal(src, r)); err != nil || w.entries[ref] == nil {
		w.t.Fatalf("a run of %s: %v", owner, err)
	}
	e := w.entries[ref]
	e.SetRuns(append(slices.Clone(e.Runs()), r))
}

func (w *world) issue(words []string, comments string) {
	n := w.number(words[0])
	i := Issue{File: &schemas.MirrorFile{Repo: "octo/widgets", Issue: int(n)}}
	for _, word := range words[1:] {
		ref, err := controllers.Schemas().ParseRef(word)
		if err != nil {
			w.t.Fatal(err)
		}
		i.Objects = append(i.Objects, ref)
	}
	for line := range strings.Lines(comments) {
		key, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		i.File.Comments = append(i.File.Comments, schemas.MirrorComment{Key: key, ID: w.number(id)})
	}
	w.issues = append(w.issues, i)
}

func (w *world) number(word string) int64 {
	w.t.Helper()
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) comment(words []string, body string) {
	c := Comment{ID: w.number(words[1]), Body: strings.TrimSuffix(body, "\n"), Edited: slices.Contains(words, "edited"),
		Author: Actor{Login: words[2], Association: words[3], Bot: strings.HasSuffix(words[2], "[bot]")}}
	c.Created = now.Add(-time.Hour + time.Duration(c.ID)*time.Second)
	for k := range w.issues {
		if i := &w.issues[k]; i.File.Issue == int(w.number(words[0])) {
			i.Comments = append(i.Comments, c)
			return
		}
	}
	w.t.Fatalf("no issue %s", words[0])
}

func (w *world) input() Input {
	var list []*state.Entry
	for _, e := range w.entries {
		list = append(list, e)
	}
	tree := settle.Tree(state.NewTree(controllers.Schemas(), w.set, nil, list...).WithLedgers(w.ledgers...), now, nil).Tree
	return Input{Tree: tree, Now: now, Issues: w.issues, Known: memory.Source{}, Show: func(_ *state.Tree, v View) string {
		return fmt.Sprintf("(%s %d %v %s)", v.Verb, v.Issue, v.Objects, v.Node)
	}}
}

// trace writes verdicts for people.
func trace(t *testing.T, all []Decision) string {
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintf(&b, "> comment %d on issue %d: %s\n", v.Handled.Comment, v.Issue, v.Handled.Outcome)
		for _, s := range v.Specs {
			o := decoder.Decode(s.Path, encode(t, s)).Object
			if settle.FromComment(o) != (s.Ref.Kind != schemas.ObservationKind.Name) {
				t.Errorf("%s: heard is %v", s.Path, settle.FromComment(o))
			}
			src, err := json.Marshal(s.Spec)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s\n", s.Path, src)
		}
		if v.Handled.Reply != "" {
			fmt.Fprintf(&b, "%s\n", strings.TrimSpace(v.Handled.Reply))
		}
	}
	return b.String()
}

func compare(t *testing.T, file string, a *txtar.Archive, got string) {
	t.Helper()
	last := len(a.Files) - 1
	if last < 0 || a.Files[last].Name != "out" {
		t.Fatalf("%s: the last file is not out", file)
	}
	if string(a.Files[last].Data) == got {
		return
	}
	if !*update {
		t.Errorf("%s: decided:\n%swant:\n%s", file, got, a.Files[last].Data)
		return
	}
	a.Files[last].Data = []byte(got)
	if err := writeFile(file, txtar.Format(a)); err != nil {
		t.Fatal(err)
	}
}

// checkKilled reads the comments once more after somebody who was killed: the verdicts before one are on record, and some
// of its files are written and decided. The same comes of the rest as if nobody had been killed.
func (w *world) checkKilled(t *testing.T, first []Decision) {
	t.Helper()
	for i, v := range first {
		for n := range len(v.Specs) + 1 {
			next := w.after(first[:i], v, v.Specs[:n])
			got := Decide(next.input())
			if len(got) != len(first)-i {
				t.Fatalf("killed at comment %d after %d files: %d verdicts, want %d", v.Handled.Comment, n, len(got), len(first)-i)
			}
			want := slices.Clone(first[i:])
			want[0].Specs = v.Specs[n:]
			if a, b := trace(t, got), trace(t, want); a != b {
				t.Fatalf("killed at comment %d after %d files:\n%swant:\n%s", v.Handled.Comment, n, a, b)
			}
			for k := range got {
				if !slices.Equal(got[k].Handled.Specs, want[k].Handled.Specs) {
					t.Fatalf("killed at comment %d: files %q, want %q", v.Handled.Comment, got[k].Handled.Specs, want[k].Handled.Specs)
				}
			}
		}
	}
}

// after is the world with verdicts on record, their files, and some of those of the next one. Comments before that were
// read.
func (w *world) after(done []Decision, v Decision, more []derive.Spec) *world {
	next := &world{t: w.t, entries: maps.Clone(w.entries), set: w.set, issues: slices.Clone(w.issues),
		ledgers: w.ledgers}
	for i := range next.issues {
		file := *next.issues[i].File
		for _, d := range done {
			if d.Issue == file.Issue {
				file.Handled = append(slices.Clip(file.Handled), d.Handled)
			}
		}
		next.issues[i].File = &file
		next.issues[i].Comments = slices.DeleteFunc(slices.Clone(next.issues[i].Comments), func(c Comment) bool {
			return file.Issue < v.Issue || file.Issue == v.Issue && c.ID < v.Handled.Comment
		})
	}
	for _, d := range done {
		more = append(slices.Clip(d.Specs), more...)
	}
	for _, s := range more {
		next.put(s.Path, encode(w.t, s))
	}
	return next
}

func encode(t testing.TB, s derive.Spec) []byte {
	t.Helper()
	src, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": s.Ref.Kind,
		"metadata": schemas.Metadata{Name: s.Ref.Name}, "spec": s.Spec})
	if err != nil {
		t.Fatal(err)
	}
	return src
}
