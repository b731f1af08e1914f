package permits

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestDecide decides about the requests in the archives of testdata: specs, records of the node as lines of JSON, and requests, each
// with the verdict that follows it.
func TestDecide(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			decideAll(t, a)
		})
	}
}

func decideAll(t *testing.T, a *txtar.Archive) {
	kinds := schemas.Kinds{schemas.SettingsKind, schemas.SessionKind, schemas.AgentKind, schemas.DAGKind, schemas.ActionKind}
	decoder := schemas.NewDecoder(kinds, 0)
	settings := new(schemas.SettingsSpec)
	settings.Default()
	entries := map[schemas.Ref]*state.Entry{}
	var asked, want string
	work := schemas.DAGKind.Ref("work")
	for _, f := range a.Files {
		switch {
		case f.Name == "records":
			var runs []*schemas.Run
			for line := range strings.Lines(string(f.Data)) {
				r := new(schemas.Run)
				if err := json.Unmarshal([]byte(line), r); err != nil {
					t.Fatal(err)
				}
				runs = append(runs, r)
			}
			entries[work].SetRuns(runs)
		case f.Name == "distrusted": // actions that a program may have written
			for _, name := range strings.Fields(string(f.Data)) {
				e := entries[schemas.ActionKind.Ref(name)]
				e.SetStatus(&schemas.ActionStatus{Common: schemas.Common{ObservedDigest: e.Object.Digest}, During: "dags/work/m-1"})
			}
		case f.Name == "asked":
			asked = string(f.Data)
		case f.Name == "want":
			want = string(f.Data)
		default:
			d := decoder.Decode(f.Name, f.Data)
			if d.Object == nil {
				t.Fatalf("%s: %v", f.Name, d.Problems)
			}
			if set, ok := d.Object.Spec().(*schemas.SettingsSpec); ok {
				settings = set
				continue
			}
			entries[d.Ref] = &state.Entry{Ref: d.Ref, Object: d.Object}
		}
	}
	var list []*state.Entry
	for _, e := range entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *state.Entry) int { return a.Ref.Compare(b.Ref) })
	tree := state.NewTree(kinds, settings, nil, list...)
	var got strings.Builder
	for line := range strings.Lines(asked) {
		p := schemas.Permission{Argv: strings.Fields(line)}
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "tool "); ok {
			p = schemas.Permission{Title: title}
		}
		v := Decide(tree, Request{DAG: work, Node: "n", Agent: "engineer", Asked: &p}, Used(tree.Entry(work), "n"))
		word := "a person decides"
		if v.Decided {
			word = map[bool]string{true: "allowed", false: "refused"}[v.Allow] + " by " + v.By
		}
		if v.Once != "" {
			word += ", once"
		}
		fmt.Fprintf(&got, "%s: %s\n", strings.TrimSpace(line), word)
	}
	if got.String() != want {
		t.Errorf("got:\n%swant:\n%s", got.String(), want)
	}
}

// TestExpired: an answer for one request is over when an attempt has ended after it, and not before.
func TestExpired(t *testing.T) {
	at := func(minute int) schemas.Time {
		return schemas.NewTime(time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC))
	}
	limited := &schemas.Turn{Failure: &schemas.TurnFailure{Class: schemas.FailureLimit, Until: at(50)}}
	for _, c := range []struct {
		name string
		run  schemas.Run
		want bool
	}{
		{"it succeeded after the answer", schemas.Run{Node: "n", Outcome: schemas.OutcomeSucceeded, FinishedAt: at(20)}, true},
		{"it failed after the answer", schemas.Run{Node: "n", Outcome: schemas.OutcomeFailed, FinishedAt: at(20)}, true},
		{"it failed before the answer", schemas.Run{Node: "n", Outcome: schemas.OutcomeFailed, FinishedAt: at(5)}, false},
		{"another node", schemas.Run{Node: "m", Outcome: schemas.OutcomeFailed, FinishedAt: at(20)}, false},
		{"it waits for another permission", schemas.Run{Node: "n", Outcome: schemas.OutcomeNotPermitted, FinishedAt: at(20)}, false},
		{"it was killed", schemas.Run{Node: "n", Outcome: schemas.OutcomeInterrupted, FinishedAt: at(20)}, false},
		{"it waits for the end of a limit", schemas.Run{Node: "n", Outcome: schemas.OutcomeFailed, FinishedAt: at(20), Turn: limited}, false},
		{"a landing", schemas.Run{Node: "n", Outcome: schemas.OutcomeSucceeded, FinishedAt: at(20), Lands: "x"}, false},
	} {
		e := &state.Entry{Ref: schemas.DAGKind.Ref("work")}
		e.SetRuns([]*schemas.Run{&c.run})
		tree := state.NewTree(schemas.Kinds{schemas.DAGKind}, new(schemas.SettingsSpec), nil, e)
		if got := expired(tree, Request{DAG: e.Ref, Node: "n"}, at(10)); got != c.want {
			t.Errorf("%s: expired %v, want %v", c.name, got, c.want)
		}
	}
}
