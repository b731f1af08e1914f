package workspaces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// passes is a checker without checks.
func passes(context.Context, string, string) (string, string, error) { return "", "", nil }

// work has an agent write files in a workspace, and returns the landing of that.
func (f *fixture) work(node string, files map[string]string) *settle.Land {
	f.Helper()
	q := request(node, "1", schemas.WorkspaceClone)
	w := f.open(q)
	for name, text := range files {
		f.put(w, name, text)
	}
	run, err := w.Commit(f.Context(), f.now, nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	return &settle.Land{Run: q.Effect.Key, Workspace: run.Name, Base: run.Base, Commit: run.Commit, Files: run.Files, Whole: true}
}

func (f *fixture) land(l *settle.Land, check checker) outcome {
	f.Helper()
	o, err := f.m.land(f.Context(), l, check)
	if err != nil {
		f.Fatal(err)
	}
	return o
}

func (f *fixture) read(name string) string {
	f.Helper()
	data, err := os.ReadFile(filepath.Join(f.tree, name))
	if err != nil {
		f.Fatal(err)
	}
	return string(data)
}

// TestLandsOnce: a landing that is repeated, as after a kill before its record, finds its commit.
func TestLandsOnce(t *testing.T) {
	f := newFixture(t)
	l := f.work("a", map[string]string{"new": "new\n"})
	first := f.land(l, passes)
	if first.reason != schemas.LandedUnchecked || f.read("new") != "new\n" || f.git("status", "--porcelain") != "" {
		t.Fatalf("%+v; %s", first, f.git("status", "--porcelain"))
	}
	f.write("new", "changed since\n")
	f.git("commit", "-qam", "on top")
	if again := f.land(l, passes); again.commit != first.commit {
		t.Errorf("%+v, then %+v", first, again)
	}
	if n := f.git("rev-list", "--count", "HEAD"); n != "3" || f.read("new") != "changed since\n" {
		t.Errorf("%s commits, %q", n, f.read("new"))
	}
	same := f.work("b", map[string]string{"new": "equal\n"})
	f.write("new", "equal\n")
	f.git("commit", "-qam", "the same by hand")
	if o := f.land(same, passes); o.commit != f.git("rev-parse", "HEAD") {
		t.Errorf("%+v", o)
	}
}

// TestLandingLosesNoOtherCommit: the branch moves during the checks. Nothing of it is lost, and what lands was checked as
// it lands.
func TestLandingLosesNoOtherCommit(t *testing.T) {
	for _, target := range []string{"", "elsewhere"} {
		f := newFixture(t)
		if target != "" {
			f.git("branch", target)
		}
		l := f.work("a", map[string]string{"new": "new\n"})
		l.Target = target
		var checked []string
		o := f.land(l, func(_ context.Context, commit, _ string) (string, string, error) {
			if checked = append(checked, commit); len(checked) == 1 {
				if target != "" {
					f.git("checkout", "-q", target)
				}
				f.write("theirs", "theirs\n")
				f.git("add", "theirs")
				f.git("commit", "-qm", "theirs")
				if target != "" {
					f.git("checkout", "-q", "main")
				}
			}
			return "", "", nil
		})
		branch := "main"
		if target != "" {
			branch = target
		}
		if got := f.git("log", "--format=%s", branch); got != "Do a of dag/d\ntheirs\nstart" {
			t.Errorf("%s: %s", branch, got)
		}
		if len(checked) != 2 || checked[1] != o.commit || o.commit != f.git("rev-parse", branch) {
			t.Errorf("%s: checked %v, landed %+v", branch, checked, o)
		}
		if _, err := os.Stat(filepath.Join(f.tree, "new")); (err == nil) != (target == "") {
			t.Errorf("%s: %v", branch, err)
		}
	}
}

// TestFoldersAndFilesReplaceEachOther: a file that becomes a folder lands in the branch that is checked out, and the reverse. A file of
// the user in such a folder is in the way.
func TestFoldersAndFilesReplaceEachOther(t *testing.T) {
	f := newFixture(t)
	f.write("folder/a", "a\n")
	f.git("add", ".")
	f.git("commit", "-qm", "a folder")
	q := request("a", "1", schemas.WorkspaceClone)
	w := f.open(q)
	if err := errors.Join(os.Remove(filepath.Join(w.Dir(), "file")), os.RemoveAll(filepath.Join(w.Dir(), "folder")),
		os.Mkdir(filepath.Join(w.Dir(), "file"), 0o755)); err != nil {
		t.Fatal(err)
	}
	f.put(w, "file/b", "b\n")
	f.put(w, "folder", "file\n")
	run, err := w.Commit(t.Context(), f.now, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &settle.Land{Run: q.Effect.Key, Workspace: run.Name, Base: run.Base, Commit: run.Commit, Files: run.Files, Whole: true}
	f.write("folder/ignored/mine", "mine\n")
	if o := f.land(l, passes); o.waits == "" || f.read("folder/ignored/mine") != "mine\n" || f.read("file") != "one\n" {
		t.Errorf("%+v", o)
	}
	if err := os.RemoveAll(filepath.Join(f.tree, "folder/ignored")); err != nil {
		t.Fatal(err)
	}
	if why, err := f.m.NotReady(t.Context(), l); err != nil || why != "" {
		t.Errorf("%q, %v", why, err)
	}
	if o := f.land(l, passes); o.commit == "" || f.read("file/b")+f.read("folder") != "b\nfile\n" || f.git("status", "--porcelain") != "" {
		t.Errorf("%+v; %s", o, f.git("status", "--porcelain"))
	}
}

// TestUsersFilesStay: a changed, a staged, a deleted and an untracked file of the user are in the way. Nothing of them
// changes, and the landing waits.
func TestUsersFilesStay(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"changed":   func(f *fixture) { f.write("file", "mine\n") },
		"staged":    func(f *fixture) { f.write("file", "mine\n"); f.git("add", "file") },
		"untracked": func(f *fixture) { f.write("new", "mine\n") },
		"deleted":   func(f *fixture) { f.git("rm", "-q", "file") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			l := f.work("a", map[string]string{"file": "two\n", "new": "new\n"})
			change(f)
			before, tip := f.git("status", "--porcelain"), f.git("rev-parse", "HEAD")
			if why, err := f.m.NotReady(f.Context(), l); err != nil || why == "" {
				t.Errorf("%q, %v", why, err)
			}
			if o := f.land(l, passes); o.waits == "" || o.commit != "" {
				t.Errorf("%+v", o)
			}
			if after := f.git("status", "--porcelain"); after != before || f.git("rev-parse", "HEAD") != tip {
				t.Errorf("%q, then %q", before, after)
			}
			f.git("reset", "-q", "--hard")
			f.git("clean", "-qf")
			if why, err := f.m.NotReady(f.Context(), l); err != nil || why != "" {
				t.Errorf("%q, %v", why, err)
			}
			if o := f.land(l, passes); o.commit == "" || f.read("file") != "two\n" {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestConflictNamesBothSides, and a failed check, and what must not land.
func TestConflictNamesBothSides(t *testing.T) {
	f := newFixture(t)
	a, b := f.work("a", map[string]string{"file": "from a\n"}), f.work("b", map[string]string{"file": "from b\n"})
	f.land(a, passes)
	o := f.land(b, passes)
	if o.reason != schemas.LandedConflict || o.commit != "" || !strings.Contains(o.message, "(Do a of dag/d) on main in file") {
		t.Errorf("%+v", o)
	}
	for _, want := range []string{"<<<<<<< the branch\nfrom a\n=======\nfrom b\n>>>>>>> this task\n", "Do a of dag/d", "git show " + b.Commit[:10]} {
		if !strings.Contains(o.output, want) {
			t.Errorf("%q is not in %s", want, o.output)
		}
	}
	c := f.work("c", map[string]string{"other": "x"})
	c.Checks = [][]string{{"make"}}
	o = f.land(c, func(context.Context, string, string) (string, string, error) { return "it failed", "log", nil })
	if o.reason != schemas.LandedFailed || o.message != "it failed" || f.git("log", "-1", "--format=%s") != "Do a of dag/d" {
		t.Errorf("%+v", o)
	}
	secret := *c
	secret.Run, secret.Commit = "dags/d/secret", f.side("key", keyText)
	f.write("specs/dags/old.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: old}\nspec: {session: mine, nodes: [{name: a, run: [x]}]}\n")
	f.write("specs/workflows/w.toml", "[workflow]\nname = \"w\"\n\n[[steps]]\nid = \"a\"\nagent = \"coder\"\n\n[steps.approve]\ncount = 2\n")
	f.write("specs/dags/broken.yaml", "kind: DAG\nmetadata: {name: broken}\nspec: {sesion: s}\n")
	f.git("add", ".")
	f.git("commit", "-qm", "Do a of dag/d")
	broken := f.work("broken", map[string]string{"specs/dags/broken.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: broken}\nspec: {session: mine, nodes: []}\n"})
	bound := func(name, file, text string) *settle.Land {
		l := f.work(name, map[string]string{file: text})
		l.Bounds = &schemas.Bounds{Agent: "coder", Session: "mine", Beside: "the budget of dag/plan"}
		return l
	}
	preference := f.work("preference", map[string]string{"specs/preferences/p.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Preference\nmetadata: {name: p}\n" +
		"spec: {domain: tools, key: python/test-framework, value: unittest}\n"})
	for node, l := range map[string]*settle.Land{"preference": preference, "state": f.work("state", map[string]string{"state/dags/d.json": "{}"}), "secret": &secret, "broken": broken,
		"dag":        bound("dag", "specs/dags/free.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: free}\nspec: {session: mine, nodes: [{name: a, run: [x]}]}\n"),
		"replaced":   bound("replaced", "specs/dags/old.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: new}\nspec: {session: mine, nodes: [{name: a, run: [x]}]}\n"),
		"workflow":   bound("workflow", "specs/workflows/w.toml", "[workflow]\nname = \"w\"\n\n[[steps]]\nid = \"a\"\nagent = \"coder\"\n"),
		"reply":      bound("reply", "specs/replies/r.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Reply\nmetadata: {name: r}\nspec: {clarification: CLR-7-001, type: answer, from: lead, body: Yes.}\n"),
		"proof":      bound("proof", "specs/replies/p.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Reply\nmetadata: {name: p}\nspec: {clarification: CLR-7-001, type: answer, from: coder, body: Yes., proof: github}\n"),
		"planchange": bound("planchange", "specs/planchanges/r.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: PlanChange\nmetadata: {name: r}\nspec: {target: dag/d, change: extend, reason: R., by: lead, suggestions: {add: [{name: x, run: [x]}]}}\n"),
		"session":    bound("session", "specs/sessions/free.json", `{"apiVersion": "reconcile.dev/v1alpha1", "kind": "Session", "metadata": {"name": "free"}, "spec": {}}`)} {
		if o := f.land(l, passes); o.reason != schemas.LandedRefused || o.message == "" {
			t.Errorf("%s: %+v", node, o)
		}
	}
	if tip := f.git("log", "-1", "--format=%s"); tip != "Do a of dag/d" {
		t.Error(tip)
	}
}

// keyText looks like a secret.
var keyText = "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7bq98cPb1Zr5hR3kJ4n0\n", 20) + "-----END RSA PRIVATE KEY-----\n"

// side commits a file without moving the branch, and returns the commit.
func (f *fixture) side(name, text string) string {
	f.Helper()
	tip := f.git("rev-parse", "HEAD")
	f.write(name, text)
	f.git("add", name)
	f.git("commit", "-qm", "side")
	commit := f.git("rev-parse", "HEAD")
	f.git("reset", "-q", "--hard", tip)
	return commit
}

// TestLandAtOnce: several processes land at the same time. Every commit is on the branch once.
func TestLandAtOnce(t *testing.T) {
	f := newFixture(t)
	var lands []*settle.Land
	for _, node := range []string{"a", "b", "c", "d", "e"} {
		lands = append(lands, f.work(node, map[string]string{"by-" + node: node}))
	}
	var all sync.WaitGroup
	for range 2 {
		m, err := New(f.m.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lands {
			all.Go(func() {
				for range 20 {
					o, err := m.land(t.Context(), l, passes)
					if err != nil {
						t.Error(err)
						return
					}
					if o.waits == "" {
						return
					}
				}
				t.Errorf("%s does not land", l.Run)
			})
		}
	}
	all.Wait()
	if n := f.git("rev-list", "--count", "HEAD"); n != "6" || f.git("status", "--porcelain") != "" {
		t.Errorf("%s commits\n%s", n, f.git("log", "--format=%s"))
	}
}

// TestVerifiedAgain: what a pipeline verified is verified once more exactly if the branch would have other files, and lands only if it passes.
func TestVerifiedAgain(t *testing.T) {
	f := newFixture(t)
	f.m.o.Self = "reconcile"
	l := f.work("a", map[string]string{"new": "new\n"})
	l.Checks = [][]string{{"make"}}
	l.Verify = []settle.Verification{{Step: schemas.StepInspect, Args: []string{"inspect"}}, {Step: schemas.StepTest, Args: []string{"test"}}}
	l.Tree = f.git("rev-parse", l.Commit+"^{tree}")
	var ran []string
	check := func(ctx context.Context, commit, onto string) (string, string, error) {
		all, err := f.m.checksOf(ctx, l, commit, onto)
		for _, c := range all {
			ran = append(ran, strings.Join(c.command.Argv, " "))
		}
		return "not now", "", err
	}
	if f.land(l, check); !slices.Equal(ran, []string{"make"}) {
		t.Errorf("the same files: %q", ran)
	}
	f.write("other", "x")
	f.git("add", ".")
	f.git("commit", "-qm", "another")
	base := " --base " + f.git("rev-parse", "HEAD")
	ran = nil
	if f.land(l, check); !slices.Equal(ran, []string{"make", "reconcile inspect" + base, "reconcile test" + base}) {
		t.Errorf("other files: %q", ran)
	}
	for _, c := range []struct {
		result string
		none   bool
		lets   bool
	}{{`{"outcome":"passed"}`, false, true}, {`{"outcome":"failed"}`, true, false}, {`{"outcome":"unknown"}`, false, false}, {`{"outcome":"unknown"}`, true, true},
		{`{"outcome":"unknown","tools":[{"tool":"make"}]}`, true, false}, {`{}`, true, false}} {
		step := landingCheck{step: &settle.Verification{Step: schemas.StepTest, AllowNone: c.none}}
		if message, _ := step.failure(&schemas.Run{Outcome: schemas.OutcomeSucceeded, Result: json.RawMessage(c.result)}); (message == "") != c.lets {
			t.Errorf("%s: %q", c.result, message)
		}
	}
}

// TestLandsWithin: a task that may change only some files may change tests, too, and nothing else.
func TestLandsWithin(t *testing.T) {
	f := newFixture(t)
	for i, c := range [][2]string{{"a[1].go", ""}, {"a_test.go", ""}, {"b.go", "b.go: the task is to change only a?1?.go, and tests; take the change out"}} {
		l := f.work(fmt.Sprintf("n%d", i), map[string]string{c[0]: "package a\n"})
		l.Within = []string{"a?1?.go"}
		if o := f.land(l, passes); o.message != c[1] || (o.reason == schemas.LandedRefused) != (c[1] != "") {
			t.Errorf("%s: %+v", c[0], o)
		}
	}
}
