package permissions

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const head = "apiVersion: reconcile.dev/v1alpha1\nkind: "

var kinds = schemas.Kinds{schemas.SettingsKind, schemas.SessionKind, schemas.AgentKind, schemas.DAGKind, schemas.ActionKind}

// treeOf is a tree with one agent at work, settings, and actions.
func treeOf(t *testing.T, settings string, actions ...string) *state.Tree {
	t.Helper()
	set := new(schemas.SettingsSpec)
	set.Default()
	texts := map[string]string{
		"reconcile.yaml":          "Settings\nmetadata: {name: settings}\nspec: {" + settings + "}\n",
		"specs/agents/coder.yaml": "Agent\nmetadata: {name: coder}\nspec: {runner: {acp: {argv: [agent]}}}\n",
		"specs/dags/work.yaml":    "DAG\nmetadata: {name: work}\nspec: {session: s, nodes: [{name: n, agent: coder, prompt: Work.}]}\n",
	}
	for i, a := range actions {
		name := "act" + string(rune('a'+i))
		texts["specs/actions/"+name+".yaml"] = "Action\nmetadata: {name: " + name + "}\nspec: {target: dag/work, node: n, " + a + "}\n"
	}
	decoder := schemas.NewDecoder(kinds, 0)
	var entries []*state.Entry
	for path, text := range texts {
		d := decoder.Decode(path, []byte(head+text))
		if d.Object == nil || len(d.Problems) > 0 {
			t.Fatalf("%s: %v", path, d.Problems)
		}
		if s, ok := d.Object.Spec().(*schemas.SettingsSpec); ok {
			set = s
			continue
		}
		entries = append(entries, &state.Entry{Ref: d.Ref, Object: d.Object})
	}
	return state.NewTree(kinds, set, nil, entries...)
}

// ask is the request for a command, or for a tool with files.
func ask(dir, kind string, argv []string, paths ...string) runner.PermissionRequest {
	return runner.PermissionRequest{
		Effect:  settle.Effect{Owner: schemas.DAGKind.Ref("work"), Node: "n", Agent: "coder"},
		Request: acp.PermissionRequest{Title: "do it", Kind: kind, Command: argv, Paths: paths},
		Asked:   schemas.Permission{Title: "do it", Argv: argv}, Dir: dir, Wait: func() {},
	}
}

func word(p runner.Permit) string {
	switch {
	case p.Unanswered:
		return "unanswered"
	case len(p.Kinds) == 0:
		return "cancelled"
	case p.Kinds[0] == acp.AllowOnce:
		return "allowed by " + p.By
	}
	return "refused by " + p.By
}

// TestPermit: rules and answers decide at once, and an answer for one request is given once. In a run that nobody attends, nobody is
// waited for.
func TestPermit(t *testing.T) {
	d := New(false)
	d.Observe(treeOf(t, "commands: {allow: [make test], block: [make clean]}",
		"verb: approve, by: ada, at: 2026-03-01T12:00:00Z, permission: {command: make deploy}",
		"verb: deny, at: 2026-03-01T12:00:00Z, permission: {command: make drop}"))
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"make", "test"}, "allowed by rule"},
		{[]string{"make", "clean"}, "refused by rule: make clean"},
		{[]string{"make", "deploy"}, "allowed by action/acta by ada"},
		{[]string{"make", "deploy"}, "unanswered"},
		{[]string{"make", "drop"}, "refused by action/actb"},
		{[]string{"make", "other"}, "unanswered"},
	} {
		if got := word(d.Permit(t.Context(), ask(t.TempDir(), "execute", c.argv))); got != c.want {
			t.Errorf("%q: %s, want %s", c.argv, got, c.want)
		}
	}
	q := ask(t.TempDir(), "execute", []string{"make", "other"})
	q.Effect.Owner = schemas.ClarificationRequestKind.Ref("q")
	if got := word(d.Permit(t.Context(), q)); got != "refused by rule: nobody is asked while an agent answers a question" {
		t.Errorf("in an answer: %s", got)
	}
}

// TestOwnFiles: an agent reads and changes the files of its folder, but not those of git, of people and of reconcile, also not by
// another name.
func TestOwnFiles(t *testing.T) {
	d, dir, outside := New(false), t.TempDir(), t.TempDir()
	d.Observe(treeOf(t, ""))
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for path, own := range map[string]bool{
		"a.go": true, "deep/new/a.go": true, filepath.Join(dir, "b.go"): true, "gitignore": true,
		".git/hooks/pre-commit": false, "GIT~1/config": false, ".git./config": false, "sub/.GIT/config": false, "specs/agents/coder.yaml": false, "Specs/x.yaml": false, "state/x.json": false,
		".reconcile/leases": false, "reconcile.yaml": false, "../x": false, "link/x": false, "a/../../x": false, ".": false, outside: false,
	} {
		want := "unanswered"
		if own {
			want = "allowed by rule: files of its folder"
		}
		if got := word(d.Permit(t.Context(), ask(dir, "edit", nil, path))); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := word(d.Permit(t.Context(), ask(dir, "edit", nil, "a.go", "reconcile.yaml"))); got != "unanswered" {
		t.Errorf("one of two: %s", got)
	}
	if got := word(d.Permit(t.Context(), ask(dir, "fetch", nil, "a.go"))); got != "unanswered" {
		t.Errorf("another tool: %s", got)
	}
}

// TestWaiting: where somebody attends, a request waits for a tree with an answer, until its time is over, or the turn.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, waits := New(true), 0
		d.Observe(treeOf(t, "commands: {wait: 1m}"))
		q := ask(t.TempDir(), "execute", []string{"make", "deploy"})
		q.Wait = func() { waits++ }
		begun := time.Now()
		if got := word(d.Permit(t.Context(), q)); got != "unanswered" || time.Since(begun) != time.Minute || waits != 1 {
			t.Errorf("%s after %s, %d waits", got, time.Since(begun), waits)
		}
		time.AfterFunc(30*time.Second, func() {
			d.Observe(treeOf(t, "commands: {wait: 1m}", "verb: approve, at: 2026-03-01T12:00:00Z, permission: {command: make deploy}"))
		})
		begun = time.Now()
		if got := word(d.Permit(t.Context(), q)); got != "allowed by action/acta" || time.Since(begun) != 30*time.Second {
			t.Errorf("%s after %s", got, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := word(d.Permit(ctx, q)); got != "cancelled" {
			t.Errorf("when the turn is over: %s", got)
		}
	})
}
