package workspaces

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/mutants"
)

// skipWithoutBirth skips a test on a file system that does not know when a file was made.
func skipWithoutBirth(t *testing.T, file string) {
	t.Helper()
	if disk.Birth(file) == 0 {
		t.Skip("the file system does not know when files were made")
	}
}

// act writes a text to a file as an agent could: "-> target" makes a link, "+x" lets the file be executed, "-" removes it, "/" makes a folder of it.
func (f *fixture) act(file, text string) {
	f.Helper()
	name := filepath.Join(f.tree, filepath.FromSlash(file))
	target, link := strings.CutPrefix(text, "-> ")
	var err error
	switch {
	case link:
		if err = os.RemoveAll(name); err == nil {
			err = os.Symlink(target, name)
		}
	case text == "+x":
		err = os.Chmod(name, 0o755)
	case text == "/":
		err = errors.Join(os.Remove(name), os.Mkdir(name, 0o755))
	case text == "-":
		err = os.RemoveAll(name)
	default:
		f.write(file, text)
	}
	if err != nil {
		f.Fatal(err)
	}
}

// TestWritesOutsideAreFound tests each way by which a write outside of the workspace is recognized.
func TestWritesOutsideAreFound(t *testing.T) {
	for _, c := range []struct{ name, file, text, found string }{
		{"a hook that changed", ".git/hooks/post-commit", "evil", ".git/hooks/post-commit"},
		{"a new hook", ".git/hooks/pre-push", "evil", ".git/hooks/pre-push"},
		{"a hook that is a link", ".git/hooks/pre-push", "-> ../../file", ".git/hooks/pre-push"},
		{"a hook that may be executed", ".git/hooks/post-commit", "+x", ".git/hooks/post-commit"},
		{"a hook that is gone", ".git/hooks/post-commit", "-", ".git/hooks/post-commit"},
		{"other hooks", ".git/hooks", "-> ../folder", ".git/hooks,.git/hooks/post-commit"},
		{"configuration of the work tree", ".git/config.worktree", "[core]\n", ".git/config.worktree"},
		{"a link in the observed state", "state/c.json", "-> ../file", "state/c.json"},
		{"settings", "reconcile.yaml", "evil: 1\n", "reconcile.yaml"},
		{"a tracked file", "file", "evil\n", "file"},
		{"observed state", "state/a.json", "{\"evil\": 1}", "state/a.json"},
		{"forged state", "state/b.json", "evil", "state/b.json"},
		{"a new file", "folder/new", "evil", "folder/new"},
		{"a new agent", "specs/agents/evil.yaml", "kind: Agent\n", "specs/agents/evil.yaml"},
		{"a question", "specs/clarificationrequests/q.yaml", "kind: ClarificationRequest\n", ""},
		{"a file that git ignores", ".env", "mine", ""},
		{"a commit", "reconcile.yaml", "new: 1\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.write("reconcile.yaml", "old: 1\n")
			f.git("add", ".")
			f.git("commit", "-qm", "settings")
			f.write(".git/hooks/post-commit", "mine")
			f.write("state/a.json", "{}")
			if c.file == "state/a.json" {
				skipWithoutBirth(t, filepath.Join(f.tree, c.file))
			}
			changed, err := f.open(request("n", "1", schemas.WorkspaceClone)).Watch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.act(c.file, c.text); c.name == "a commit" {
				f.git("commit", "-qm", "settings", c.file)
			}
			got, err := changed(t.Context(), false)
			got = slices.DeleteFunc(got, func(name string) bool { return strings.HasSuffix(name, ".sample") })
			if err != nil || strings.Join(got, ",") != c.found {
				t.Errorf("%q, %v, want %q", got, err, c.found)
			}
		})
	}
}

// TestWorkspacesAtRest tests that what is written, made or removed in a workspace in which nobody works is found, also where its work is to go on,
// and that its own node may go on there.
func TestWorkspacesAtRest(t *testing.T) {
	for _, c := range []struct {
		name string
		done bool // its last run succeeded
		file string
		text string // "": it is removed; "+x": it may be executed
	}{
		{"a file of a commit that is to land", true, "file", "other\n"},
		{"a file of a run that failed", false, "file", "other\n"},
		{"a file in a folder", false, "folder/old", "other\n"},
		{"a new file", false, "evil", "other\n"},
		{"a new file in a folder", true, "folder/evil", "other\n"},
		{"a hook", false, ".git/hooks/post-checkout", "other\n"},
		{"a removed file", false, "folder/old", ""},
		{"a file that may be executed", true, "file", "+x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			rest := f.open(request("rest", "1", schemas.WorkspaceClone))
			f.put(rest, "file", "done\n")
			f.put(rest, "folder/old", "done\n")
			if c.done {
				if _, err := rest.Commit(t.Context(), f.now, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := rest.Close(); err != nil {
				t.Fatal(err)
			}
			changed, err := f.open(request("n", "1", schemas.WorkspaceClone)).Watch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(rest.Dir(), filepath.FromSlash(c.file))
			switch c.text {
			case "":
				err = os.Remove(at)
			case "+x":
				err = os.Chmod(at, 0o755)
			default:
				f.put(rest, c.file, c.text)
			}
			if got, e := changed(t.Context(), false); err != nil || e != nil || !slices.Equal(got, []string{at}) {
				t.Errorf("%q, %v, %v", got, err, e)
			}
			again := request("rest", "2", schemas.WorkspaceClone)
			again.Task.Workspace.Continues = request("rest", "1", schemas.WorkspaceClone).Effect.Key
			next := f.open(again)
			if got, err := changed(t.Context(), false); err != nil || len(got) != 0 {
				t.Errorf("the node of the workspace works again: %q, %v", got, err)
			}
			if err := next.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := changed(t.Context(), false); err != nil || len(got) != 0 {
				t.Errorf("the node of the workspace has worked again: %q, %v", got, err)
			}
		})
	}
}

// TestWritesInTheTreeAreFound tests what a run in a tree without git must not write there, and what it may.
func TestWritesInTheTreeAreFound(t *testing.T) {
	for _, c := range []struct{ file, text, found string }{
		{"reconcile.yaml", "evil: 1\n", "reconcile.yaml"},
		{"reconcile.json", "{}", "reconcile.json"},
		{"specs/agent.yaml", "kind: Agent\nevil: 1\n", "specs/agent.yaml"},
		{"specs/new.yaml", "kind: Agent\n", "specs/new.yaml"},
		{"state/a.json", "{\"evil\": 1}", "state/a.json"},
		{"state/b.json", "evil", "state/b.json"},
		{"specs/question.yaml", "kind: ClarificationRequest\n", ""},
		{"folder/new", "mine", ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			f := newFixture(t)
			if err := os.RemoveAll(filepath.Join(f.tree, ".git")); err != nil {
				t.Fatal(err)
			}
			f.write("reconcile.yaml", "old: 1\n")
			f.write("specs/agent.yaml", "kind: Agent\n")
			f.write("state/a.json", "{}")
			if c.file == "state/a.json" {
				skipWithoutBirth(t, filepath.Join(f.tree, c.file))
			}
			changed, err := f.m.WatchTree(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.write(c.file, c.text)
			var want []string
			if c.found != "" {
				want = []string{c.found}
			}
			if got, err := changed(t.Context(), false); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
}

// TestWritesInTheTreeOfGitAreFound tests what a run in the tree itself, in a repository, must not write there, and what it may.
func TestWritesInTheTreeOfGitAreFound(t *testing.T) {
	for _, c := range []struct{ file, text, found string }{
		{"file", "changed\n", ""},
		{"new", "mine\n", ""},
		{"reconcile.yaml", "evil: 1\n", "reconcile.yaml"},
		{"reconcile.yaml", "new: 1\n", ""}, // committed below
		{"specs/agent.yaml", "kind: Agent\nevil: 1\n", "specs/agent.yaml"},
		{"specs/agent.yaml", "-> ../file", "specs/agent.yaml"},
		{"specs/agent.yaml", "-", "specs/agent.yaml"},
		{"specs/agent.yaml", "/", "specs/agent.yaml"},
		{"specs/new.yaml", "kind: Agent\n", "specs/new.yaml"},
		{"specs/question.yaml", "kind: ClarificationRequest\n", ""},
		{".git/hooks/pre-push", "-> ../../file", ".git/hooks/pre-push"},
		{".git/config", "[core]\n\tfsmonitor = evil\n", ".git/config"},
		{"state/b.json", "evil", "state/b.json"},
	} {
		t.Run(c.file+" "+c.text, func(t *testing.T) {
			f := newFixture(t)
			f.write("reconcile.yaml", "old: 1\n")
			f.write("specs/agent.yaml", "kind: Agent\n")
			f.git("add", ".")
			f.git("commit", "-qm", "agent")
			rest := f.open(request("rest", "1", schemas.WorkspaceClone))
			if err := rest.Close(); err != nil {
				t.Fatal(err)
			}
			changed, err := f.m.WatchTree(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.act(c.file, c.text); c.text == "new: 1\n" {
				f.git("commit", "-qm", "settings", c.file)
			}
			if got, err := changed(t.Context(), false); err != nil || strings.Join(got, ",") != c.found {
				t.Errorf("%q, %v, want %q", got, err, c.found)
			}
			f.put(rest, "file", "evil\n")
			if got, err := changed(t.Context(), false); err != nil || !slices.Contains(got, filepath.Join(rest.Dir(), "file")) {
				t.Errorf("%q, %v; another workspace is not among them", got, err)
			}
		})
	}
}

// TestStateReplacedMeanwhile tests files of the observed state that reconcile writes while a run works: those that the run then changes are found.
func TestStateReplacedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name, before, reconcile, agent string // texts; "": nothing is written. An agent appends.
		found                          bool
	}{
		{"a new file", "", "{}", "", false},
		{"a new file that the run changes", "", "{}", "evil", true},
		{"a replaced file", "{}", `{"a": 1}`, "", false},
		{"a replaced file that the run changes", "{}", `{"a": 1}`, "evil", true},
		{"a damaged file", "{", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			name := filepath.Join(f.tree, "state", "a.json")
			if c.before != "" {
				f.write("state/a.json", c.before)
			}
			changed, err := f.m.WatchTree(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.reconcile != "" {
				f.write("state/b.tmp", c.reconcile)
				if err := os.Rename(filepath.Join(f.tree, "state", "b.tmp"), name); err != nil {
					t.Fatal(err)
				}
			}
			var want []string
			if c.agent != "" {
				f.write("state/a.json", c.reconcile+c.agent)
			}
			if c.found {
				want = []string{"state/a.json"}
			}
			if got, err := changed(t.Context(), false); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestOutsideMutants(t *testing.T) {
	skipWithoutBirth(t, filepath.Join(newFixture(t).tree, "file"))
	mutants.Suite{Mutants: []mutants.Mutant{
		{"files outside are not compared by their digests", "outside.go", "case digest == was.digest:", "case digest == was.digest || text != nil:", "TestWritesOutsideAreFound"},
		{"a hook that becomes executable counts as the same", "outside.go", `kind = "program"`, `kind = "file"`, "TestWritesOutsideAreFound"},
		{"links are not among hooks", "outside.go", "(d.Type().IsRegular() || d.Type() == fs.ModeSymlink)", "d.Type().IsRegular()", "TestWritesOutsideAreFound"},
		{"what cannot be read any more counts as the same", "outside.go", "return was != mark{} || !errors.Is(err, fs.ErrNotExist)", "return was != mark{} && errors.Is(err, fs.ErrNotExist)", "TestWritesInTheTreeOfGitAreFound"},
		{"new agents in the tree are not looked for", "outside.go", "git = append(git, tree...)", "_ = tree", "TestWritesInTheTreeOfGitAreFound"},
		{"what a commit changed in the tree is taken for the agent's", "outside.go", "	before.w.repo = repo", "	_ = repo", "TestWritesInTheTreeOfGitAreFound"},
		{"what changed in place is not seen", "outside.go", "if b.differs(name, was) {", "if was.info == nil && b.differs(name, was) {", "TestWritesOutsideAreFound"},
		{"tracked files are not compared", "outside.go", "if !b.dirty[name] && !shared {", "if false {", "TestWritesOutsideAreFound"},
		{"new files are not looked for", "outside.go", "if !b.untracked[name] && !shared {", "if false {", "TestWritesOutsideAreFound"},
		{"what a commit changed is taken for the agent's", "outside.go", "return !b.committed(name, text)", "return true", "TestWritesOutsideAreFound"},
		{"a file that becomes executable in a workspace counts as the same", "outside.go", "is.Mode() != was.info.Mode() || ", "", "TestWorkspacesAtRest"},
		{"workspaces at rest are not compared", "outside.go", "return changed && b.rests(was.owner)", "return false", "TestWorkspacesAtRest"},
		{"a node that goes on writes outside", "outside.go", "return changed && b.rests(was.owner)", "return changed", "TestWorkspacesAtRest"},
		{"workspaces whose run failed are not compared", "outside.go", "o.State == stateCreated || o.Process.PID != 0", "o.State == stateCreated || o.State == stateWorking", "TestWorkspacesAtRest"},
		{"new files of a node that goes on are outside", "outside.go", "were[o.Name] != nil && *were[o.Name] == *o", "were[o.Name] != nil", "TestWorkspacesAtRest"},
		{"what reconcile writes during a run may change", "outside.go", "!json.Valid(text)", `text[0] != '{'`, "TestStateReplacedMeanwhile"},
		{"replaced state is not read", "outside.go", "b.files[name].still(name)", "b.files[name].info != nil", "TestStateReplacedMeanwhile"},
		{"damage of before is taken for the run's", "outside.go", "b.files[name].still(name)", "false", "TestStateReplacedMeanwhile"},
	}}.Run(t)
}
