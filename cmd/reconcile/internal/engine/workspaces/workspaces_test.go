package workspaces

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
	"reconcile.dev/reconcile/state/proc"
)

// faults are those that a test of this package must notice.
var faults = []mutants.Mutant{
	{"a workspace is deleted without parking", "remove.go", "if o.State != stateCreated && o.State != stateSpare && exists(m.path(o.Name)) {", "if false {", "TestDeletingParksFirst"},
	{"work that is not done may be deleted", "owner.go", "return o.State == stateCreated || o.State == stateLanded || o.State == stateParked || o.State == stateSpare", "return true", "TestStates"},
	{"a record that was read once does not change", "owner.go", "ok && os.SameFile(was.file, is) && ", "ok || os.SameFile(was.file, is) && ", "TestDeletingParksFirst"},
	{"a failed parking is ignored", "remove.go", "if o, err = m.park(ctx, repo, o); err != nil {", "if o, err = m.park(ctx, repo, o); false {", "TestDeletingParksFirst"},
	{"the sweep loses a commit that did not land", "remove.go", "if at != o.Commit {", "if at == \"\" {", "TestSweep"},
	{"a branch moves from wherever it is", "../../gitrepo/land.go", "if a.target.Ref != from.Ref || a.target.Hash != from.Hash && (a.target.out || a.target.Hash != \"\") {", "if from.Hash = a.target.Hash; false {", "TestLandingLosesNoOtherCommit"},
	{"a file of the user is overwritten", "../../gitrepo/remote_checkout.go", "case stateModified:\n\t\t\tclash = append(clash, e.path)", "case stateModified:\n\t\t\tchanges = append(changes, c)", "TestUsersFilesStay"},
	{"a commit lands again", "land.go", "o.commit, err = landedAs(ctx, repo, l, tip.Hash); err", "o.commit, err = \"\", error(nil); err", "TestLandsOnce"},
	{"a landing with other files is not verified again", "lander.go", "err != nil || tree == task.Tree {", "err != nil || tree != \"\" {", "TestVerifiedAgain"},
	{"each landing is verified again", "lander.go", "err != nil || tree == task.Tree {", "err != nil || tree == \"\" {", "TestVerifiedAgain"},
	{"what is unknown lands", "lander.go", "if e.LetsBut(c.step.Taken, c.step.AllowNone) {", "if e.Outcome != checks.Failed {", "TestVerifiedAgain"},
	{"a commit lands that changes what its task is not about", "land.go", "if !isWithin(l, ", "if false && !isWithin(l, ", "TestLandsWithin"},
	{"another branch is verified in place of one that is not here", "lander.go", "if task.Branch != \"\" { // never", "if false { // never", "TestTip"},
	{"nobody sees that a verification runs", "lander.go", "case r.Kind == settle.Started && l.verifies[of] != nil:", "case false:", "TestStartsAreReported"},
	{"a verification outlives who killed it", "lander.go", "if !o.IsWork() {", "if o.Lands != \"\" {", "TestReapsChecks"},
	{"a commit has a preference of people", "land.go", ", schemas.PreferenceKind,\n", ",\n", "TestConflictNamesBothSides"},
	{"a commit lets others act", "land.go", ", bounds.ActsAs(is.Ref, was.Object, is.Object))", ")", "TestConflictNamesBothSides"},
	{"a new spec in an old file is not bound", "land.go", "bounds.OnlyPeople(is.Ref, nil, is.Object), ", "", "TestConflictNamesBothSides"},
	{"a secret lands", "land.go", "name, data); what != \"\" {\n\t\t\treturn what, nil", "name, data); false {\n\t\t\treturn what, nil", "TestConflictNamesBothSides"},
	{"a secret is committed", "handle.go", "changed, err := w.m.checkSecrets(ctx, w.repo, o, w.untouched(), w.below(outputs))", "changed, err := []string(nil), error(nil)", "TestSecretsAreInNoObject"},
	{"a secret is committed in a file that a person has committed in another form", "secrets.go", "|| !isAt(ctx, repo, tip.Hash, name, data) {", "|| tip.Hash == \"\" {", "TestPeopleCommitWhatLooksSecret"},
	{"the workspace of an agent becomes one that may be deleted", "owner.go", "if o.Kind != settle.CheckWorkspace {", "if false {", "TestStates"},
	{"a secret is parked", "remove.go", "changed, err := m.checkSecrets(ctx, repo, o, nil, nil)", "changed, err := []string(nil), error(nil)", "TestSecretsAreInNoObject"},
	{"a difference writes into the repository", "../../gitrepo/workspace.go", "in.objects = filepath.Join(scratch, \"objects\")", "_ = scratch", "TestSecretsAreInNoObject"},
	{"links lead out of a workspace", "prepare.go", "if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {\n\t\treturn err\n\t}\n\treturn replace(root, name, in, fi.Mode().Perm())", "root, _ = regular.Root(filepath.Dir(filepath.Join(root.Name(), name)))\n\treturn replace(root, filepath.Base(name), in, fi.Mode().Perm())", "TestLinksLeadNowhere"},
	{"links lead into a workspace", "prepare.go", "in, fi, err := regular.Open(root, filepath.FromSlash(from))", "in, fi, err := regular.OpenPath(filepath.Join(top, filepath.FromSlash(from)), os.O_RDONLY, 0)", "TestLinksLeadNowhere"},
	{"a retry begins in a new workspace", "workspaces.go", "retried := before != \"\"", "retried := false && before != \"\"", "TestAttemptsGoOn"},
	{"a checkout is used again while checks may be at work", "check.go", "if ok && clean && runner.EndsOrphans {", "if ok && runner.EndsOrphans {", "TestChecksShareCheckouts"},
	{"a checkout of a killed process is used again", "check.go", "i >= 0 && all[i].State == stateSpare, m.write(o)", "i >= 0, m.write(o)", "TestChecksShareCheckouts"},
	{"two checks work in one checkout", "check.go", "if i >= 0 && all[i].inUse() {", "if false {", "TestChecksShareCheckouts"},
	{"a checkout keeps what checks left", "check.go", "made.repo.Renew(ctx, co, o.Base, o.Branch) != nil {", "false {", "TestChecksShareCheckouts"},
	{"others get what the setup of a change made", "prepare.go", "|| w.owner.Kind ==", "|| false && w.owner.Kind ==", "TestSetupIsKept"},
	{"a workspace is made inside of the tree", "workspaces.go", "if inside(real, base) {", "if false {", "TestInsideOfTheTree"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }

// fixture is a repository with one commit, and a manager of its workspaces.
type fixture struct {
	*testing.T
	m    *Manager
	tree string
	now  time.Time
}

func newFixture(t *testing.T, change ...func(*schemas.SettingsSpec)) *fixture {
	t.Helper()
	base := t.TempDir()
	f := &fixture{T: t, tree: filepath.Join(base, "repo"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	t.Setenv("HOME", base)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	f.write(".gitignore", "ignored/\n.env\n")
	f.write("file", "one\n")
	f.git("init", "-q", "-b", "main", ".")
	f.git("config", "user.name", "Ada")
	f.git("config", "user.email", "ada@example.com")
	f.git("add", ".")
	f.git("commit", "-qm", "start")
	settings := new(schemas.SettingsSpec)
	settings.Default()
	for _, c := range change {
		c(settings)
	}
	var err error
	env := map[string]string{"XDG_STATE_HOME": filepath.Join(base, "state"), "HOME": base}
	f.m, err = New(Options{Dir: f.tree, Settings: settings, Now: func() time.Time { return f.now }, Getenv: func(k string) string { return env[k] }})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) write(name, text string) {
	f.Helper()
	path := filepath.Join(f.tree, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) git(args ...string) string {
	f.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = f.tree
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func request(node string, seq string, kind string) runner.WorkspaceRequest {
	attempts := "dags/d/" + node + "-0123456789abcdef-"
	e := settle.Effect{Key: attempts + seq, Owner: schemas.Ref{Kind: "DAG", Name: "d"}, Node: node, Agent: "coder"}
	return runner.WorkspaceRequest{Effect: e, Task: &settle.Command{Workspace: &settle.Workspace{Kind: kind, Declared: true,
		Branch: "reconcile/s/d/" + node, Spec: "file", Attempts: attempts}}}
}

func (f *fixture) open(q runner.WorkspaceRequest) runner.Workspace {
	f.Helper()
	w, why, err := f.m.Open(f.Context(), q)
	if err != nil || w == nil {
		f.Fatalf("%v, %q, %v", w, why, err)
	}
	return w
}

func (f *fixture) put(w runner.Workspace, name, text string) {
	f.Helper()
	path := filepath.Join(w.Dir(), name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) only() Workspace {
	f.Helper()
	list, err := f.m.List()
	if err != nil || len(list) != 1 {
		f.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

// TestStates tries every event in every state. Only a workspace that nobody has worked in, or that was given up, may be
// deleted.
func TestStates(t *testing.T) {
	events := map[string]event{"opened": opened("k", "a", proc.ID{}), "succeeded": succeeded("c"), "landed": landed, "parked": parked(""), "spared": spared}
	next := map[State]map[string]State{
		stateCreated: {"opened": stateWorking},
		stateWorking: {"opened": stateWorking, "succeeded": stateDone, "parked": stateParked},
		stateDone:    {"opened": stateWorking, "landed": stateLanded, "parked": stateParked},
		stateLanded:  {"landed": stateLanded, "parked": stateLanded},
		stateParked:  {"parked": stateParked},
		stateSpare:   {"parked": stateParked},
	}
	if is, err := spared(Owner{Kind: settle.CheckWorkspace, State: stateCreated}); err != nil || is.State != stateSpare {
		t.Errorf("a checkout for checks: %s, %v", is.State, err)
	}
	for from, want := range next {
		for name, e := range events {
			is, err := e(Owner{Name: "w", State: from})
			if to, ok := want[name]; ok != (err == nil) || ok && is.State != to {
				t.Errorf("%s, %s: %s, %v; want %q", from, name, is.State, err, to)
			}
		}
		o := Owner{State: from}
		if o.removable() != (from == stateCreated || from == stateLanded || from == stateParked || from == stateSpare) {
			t.Errorf("%s: removable is %v", from, o.removable())
		}
	}
}

// TestDeletingParksFirst deletes workspaces with work that is in no commit: it is in a reference afterwards, and where it
// cannot be put there, the workspace stays.
func TestDeletingParksFirst(t *testing.T) {
	for _, kind := range []string{schemas.WorkspaceClone, schemas.WorkspaceWorktree} {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			w := f.open(request("a", "1", kind))
			f.put(w, "new/file", "precious\n")
			if _, err := f.m.Drop(f.Context(), f.only().Name); err == nil {
				t.Error("it was deleted under a run")
			}
			if err := w.Close(); err != nil || f.only().InUse {
				t.Fatal(err, f.only())
			}
			ref, err := f.m.Drop(f.Context(), f.only().Name)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.git("show", ref+":new/file"); got != "precious" {
				t.Errorf("%s: %q", ref, got)
			}
			if left, err := filepath.Glob(filepath.Join(f.m.dir, "d.*")); err != nil || len(left) > 0 {
				t.Errorf("%v, %v", left, err)
			}
			if trees := f.git("worktree", "list"); strings.Contains(trees, "\n") {
				t.Error(trees)
			}
		})
	}
	f := newFixture(t)
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	f.put(w, "inner/file", "precious\n")
	inner := exec.Command("sh", "-c", "cd inner && git init -q && git add . && git -c user.name=A -c user.email=a@b commit -qm x")
	inner.Dir = w.Dir()
	if out, err := inner.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_ = w.Close()
	if _, err := f.m.Drop(f.Context(), f.only().Name); err == nil || !strings.Contains(err.Error(), "inner is a git repository of its own") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(filepath.Join(w.Dir(), "inner", "file")); err != nil || string(data) != "precious\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestAttemptsGoOn: the next attempt finds what the last one left, and an unfinished checkout is made anew.
func TestAttemptsGoOn(t *testing.T) {
	f := newFixture(t)
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	f.put(w, "half", "work\n")
	_ = w.Close()
	again := f.open(request("a", "2", schemas.WorkspaceClone))
	if _, err := os.Stat(filepath.Join(again.Dir(), "half")); err != nil || again.Dir() != w.Dir() {
		t.Errorf("%s, then %s: %v", w.Dir(), again.Dir(), err)
	}
	_ = again.Close()
	retried := request("a", "3", schemas.WorkspaceClone)
	retried.Task.Workspace.Before, retried.Task.Workspace.Attempts = retried.Task.Workspace.Attempts, "after a retry"
	if again = f.open(retried); again.Dir() != w.Dir() {
		t.Errorf("a retry works in %s, the attempts before it in %s", again.Dir(), w.Dir())
	}
	run, err := again.Commit(f.Context(), f.now, nil, nil)
	if err != nil || run.Changed != 1 || f.git("show", "reconcile/s/d/a:half") != "work" {
		t.Fatalf("%+v, %v", run, err)
	}
	third := f.open(request("a", "3", schemas.WorkspaceClone))
	if third.Dir() == w.Dir() {
		t.Error("a run after a success works in the old workspace")
	}
	_ = third.Close()
	o, err := f.m.read(filepath.Base(third.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	o.State = stateCreated // as a process leaves it that was killed while it made the checkout
	if err := f.m.write(o); err != nil {
		t.Fatal(err)
	}
	f.put(third, "torn", "")
	fresh := f.open(request("a", "3", schemas.WorkspaceClone))
	if _, err := os.Stat(filepath.Join(fresh.Dir(), "torn")); err == nil {
		t.Error("a checkout that was not finished is used")
	}
}

// TestSetupIsKept: what setup makes is copied while the lock files stay the same.
func TestSetupIsKept(t *testing.T) {
	f := newFixture(t, func(s *schemas.SettingsSpec) {
		s.Workspaces.Setup = []string{"sh", "-c", ""}
		s.Workspaces.LockFiles = []string{"file"}
	})
	runs := filepath.Join(filepath.Dir(f.tree), "runs")
	f.m.o.Settings.Workspaces.Setup[2] = "mkdir -p ignored/deep && echo made > ignored/deep/x && echo run >> '" + runs + "'"
	for i, node := range []string{"a", "b", "c"} {
		if i == 2 {
			f.write("file", "two\n")
			f.git("commit", "-qam", "next")
		}
		w := f.open(request(node, "1", schemas.WorkspaceClone))
		if data, err := os.ReadFile(filepath.Join(w.Dir(), "ignored", "deep", "x")); err != nil || string(data) != "made\n" {
			t.Errorf("%s: %q, %v", node, data, err)
		}
	}
	if data, err := os.ReadFile(runs); err != nil || string(data) != "run\nrun\n" {
		t.Errorf("%q, %v", data, err)
	}
	// The setup of a commit that nobody has checked makes nothing for others.
	f.write("file", "three\n")
	f.git("commit", "-qam", "of an agent")
	e := checkEffect(settle.Effect{Key: "dags/d/check"}, strings.TrimSpace(f.git("rev-parse", "HEAD")), settle.Command{}, nil)
	f.open(runner.WorkspaceRequest{Effect: e, Task: e.Command()})
	f.open(request("f", "1", schemas.WorkspaceClone))
	if data, err := os.ReadFile(runs); err != nil || string(data) != "run\nrun\nrun\nrun\n" {
		t.Errorf("%q, %v", data, err)
	}
	f.m.o.Settings.Workspaces.Setup = []string{"sh", "-c", "echo broken; exit 3"}
	_, _, err := f.m.Open(f.Context(), request("e", "1", schemas.WorkspaceClone))
	if err == nil || !strings.Contains(err.Error(), "workspaces.setup (sh): exit status 3: broken") {
		t.Error(err)
	}
	if list, err := f.m.List(); err != nil || len(list) != 5 {
		t.Errorf("%d workspaces, %v", len(list), err)
	}
	f.m.o.Settings.Workspaces = schemas.WorkspaceSettings{Share: []string{"ignored/absent"}, Ports: 1}
	if _, _, err := f.m.Open(f.Context(), request("g", "1", schemas.WorkspaceClone)); err == nil || !strings.Contains(err.Error(), "ignored/absent is not in the tree") {
		t.Error(err)
	}
}

// TestSweep removes what has landed or is parked, by age and then by size, and parks what nobody has used for long.
func TestSweep(t *testing.T) {
	f := newFixture(t)
	states := map[string]State{}
	for _, node := range []string{"done", "working", "landed", "parked", "replaced"} {
		w := f.open(request(node, "1", schemas.WorkspaceClone))
		f.put(w, node, "x")
		if node == "done" || node == "landed" || node == "replaced" {
			if _, err := w.Commit(f.Context(), f.now, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if node == "replaced" { // by the commit of a later attempt
			f.git("branch", "-f", "reconcile/s/d/replaced", "HEAD")
		}
		_ = w.Close()
		var err error
		switch name := filepath.Base(w.Dir()); node {
		case "landed":
			_, err = f.m.change(name, landed)
		case "parked":
			_, err = f.m.change(name, parked(""))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(want string) {
		t.Helper()
		if err := f.m.Sweep(f.Context()); err != nil {
			t.Fatal(err)
		}
		clear(states)
		list, err := f.m.List()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range list {
			names = append(names, w.Node)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("left: %s; want %s", got, want)
		}
	}
	sweep("done landed parked replaced working")
	f.now = f.now.Add(73 * time.Hour)
	sweep("")
	if f.git("show", "reconcile/s/d/done:done") != "x" || f.git("show", parkedRefs+"d.replaced-0123456789abcdef-1:replaced") != "x" {
		t.Error("what was committed is lost")
	}
	if f.git("show", parkedRefs+"d.working-0123456789abcdef-1:working") != "x" {
		t.Error("what was in the abandoned workspace is lost")
	}
	f.now = f.now.Add(time.Hour)
	w := f.open(request("small", "1", schemas.WorkspaceClone))
	_ = w.Close()
	if _, err := f.m.change(filepath.Base(w.Dir()), parked("")); err != nil {
		t.Fatal(err)
	}
	*f.m.o.Settings.Workspaces.KeepBytes = 0
	sweep("")
}

// TestInsideOfTheTree: no workspace is made inside of the tree.
func TestInsideOfTheTree(t *testing.T) {
	f := newFixture(t)
	settings := *f.m.o.Settings
	settings.Folders.Workspaces = filepath.Join(f.tree, "ignored", "ws")
	o := f.m.o
	o.Settings = &settings
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Open(f.Context(), request("a", "1", schemas.WorkspaceClone)); err == nil || !strings.Contains(err.Error(), "is inside the tree") {
		t.Error(err)
	}
}

// TestNotCommitted: a workspace is declared for something that is not in the last commit.
func TestNotCommitted(t *testing.T) {
	f := newFixture(t)
	q := request("a", "1", schemas.WorkspaceClone)
	f.write("file", "changed\n")
	var late *runner.NotReadyError
	if _, _, err := f.m.Open(f.Context(), q); !errors.As(err, &late) || !strings.Contains(late.Why, "commit file") {
		t.Error(err)
	}
	q.Task.Workspace.Declared = false
	if w, why, err := f.m.Open(context.Background(), q); w != nil || err != nil || !strings.Contains(why, "commit file") {
		t.Errorf("%v, %q, %v", w, why, err)
	}
	f.git("checkout", "-q", "file")
	q.Task.Workspace.Declared = true
	for name, at := range map[string]*string{"ignored/spec": &q.Task.Workspace.Spec} {
		*at = name
		f.write(name, "")
		if why, err := f.m.uncommitted(f.Context(), q.Task.Workspace); err != nil || !strings.Contains(why, name) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
	q.Task.Workspace.Spec, q.Task.Workspace.Inputs = "file", []string{"src/**"}
	if why, err := f.m.uncommitted(f.Context(), q.Task.Workspace); err != nil || why != "" {
		t.Errorf("%q, %v", why, err)
	}
	f.write("src/deep/new.go", "package deep\n")
	if why, err := f.m.uncommitted(f.Context(), q.Task.Workspace); err != nil || !strings.Contains(why, "commit src/deep/new.go") {
		t.Errorf("%q, %v", why, err)
	}
}
