package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// strike is a command that is struck at each of its file-changing calls.
type strike struct {
	name    string
	example string            // the tree: an example of clarifications,
	files   map[string]string // else these, else those of askTree
	before  [][]string        // what is run before, undisturbed
	change  map[string]string // files that are changed then; empty: removed
	now     string            // the time of the command, if it is another
	cmd     []string
	// acts says that a second run of the command is a second act. After a crash only the tree is run, and then it is as if
	// the command had been given, or had not.
	acts bool
}

var strikes = []strike{
	{name: "two rounds", example: "two-rounds"},
	{name: "escalation", example: "escalation"},
	{name: "ask", before: askedLead, cmd: askArgs("architect", "Pool", "Who does the pooling?")},
	{name: "question", before: askedArchitect,
		cmd: []string{"clarify", "question", "CLR-42-001", "--from", "engineer", "Does it do pooling?"}},
	{name: "answer", before: askedLead, cmd: []string{"clarify", "answer", "CLR-42-002", "--from", "lead", "Ten."}},
	{name: "resolve", before: askedArchitect,
		cmd: []string{"clarify", "resolve", "CLR-42-001", "--from", "engineer", "Clear."}},
	{name: "escalate", before: askedLead, cmd: []string{"clarify", "escalate", "CLR-42-002", "--from", "engineer"}},
	{name: "abandon", before: askedLead, cmd: []string{"clarify", "abandon", "CLR-42-002", "--from", "engineer"}},
	{name: "hook start", before: askedLead, acts: true,
		cmd: []string{"hook", "start", "--agent", "engineer", "--issue", "43"}},
	{name: "hook finish", acts: true, cmd: []string{"hook", "finish", "--agent", "engineer", "--issue", "42"},
		before: append(askedArchitect, []string{"hook", "start", "--agent", "engineer", "--issue", "42"})},
	{name: "claim", before: askedLead, acts: true, cmd: []string{"ready", "--claim", "--agent", "lead"}},
}

// TestCrashClarify strikes the commands of the clarification protocol. What is left must parse; the same command, given
// again, succeeds at once and ends in the same tree as one that nothing happened to: the same numbers, without a gap,
// no litter, and no run that is on record is run again. By default a sample of the calls is struck, else all of them with
// RECONCILE_SWEEP=all.
func TestCrashClarify(t *testing.T) {
	ways := blows(t, 113, 83, 211, 223)
	for _, s := range strikes {
		s.run(t, ways)
	}
}

// run strikes each n-th call in some ways, beside others, and checks what is left.
func (k strike) run(t *testing.T, ways []blow) {
	t.Run(k.name, func(t *testing.T) {
		t.Parallel()
		fixture := k.fixture(t)
		check, seen := k.check(t, fixture(t, blow{}))
		for _, b := range ways {
			b.run(t, k.name, func(t *testing.T) (int, error) {
				fresh := fixture(t, b)
				known := func() (crashtest.Spec, error) { s, err := fresh(); s.Seen = seen; return s, err }
				return crashtest.EveryNth(t.Context(), b.every, known, func(s crashtest.Spec, r crashtest.Result) error {
					return errors.Join(check(s, r), b.advised(r))
				})
			})
		}
	})
}

// check returns what checks that a crash leads to what an undisturbed run leads to, and the calls of that run.
func (k strike) check(t *testing.T, fixture func() (crashtest.Spec, error)) (func(crashtest.Spec, crashtest.Result) error, []crashtest.Call) {
	never := ""
	if k.acts {
		idle := func() (crashtest.Spec, error) { s, err := fixture(); s.Cmd = s.Cmd[:1]; return s, err }
		never = undisturbed(t, idle)
	}
	s, err := fixture()
	if err != nil {
		t.Fatal(err)
	}
	r, err := crashtest.Run(t.Context(), s)
	if err != nil || r.Exit != 0 {
		t.Fatalf("undisturbed: %v, exit %d\n%s", err, r.Exit, r.Stderr)
	}
	if k.acts { // as after a crash, the tree is run afterwards
		s.Cmd = s.Cmd[:1]
		if out, err := rerun(s); err != nil {
			t.Fatalf("undisturbed: %v\n%s", err, out)
		}
	}
	done, err := outcomeOf(s.Root)
	if err != nil {
		t.Fatal(err)
	}
	return func(s crashtest.Spec, r crashtest.Result) error {
		if k.acts {
			s.Cmd = s.Cmd[:1]
		}
		got, err := recovered(s)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, r.Stderr)
		}
		if got != done && (!k.acts || r.Exit == 0 || withoutFolders(got) != withoutFolders(never)) {
			return fmt.Errorf("another tree than without the crash\n%s", firstDifference(done, got))
		}
		return nil
	}, r.Calls
}

// withoutFolders drops the folders of a listing: an empty one may be left of a file that was never written.
func withoutFolders(listing string) string {
	lines := slices.Collect(strings.Lines(listing))
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l[0] == 'd' }), "")
}

// recovered runs the command of s once more after a crash and returns what is there then.
func recovered(s crashtest.Spec) (string, error) {
	if err := parses(s.Root); err != nil {
		return "", fmt.Errorf("after the crash: %w", err)
	}
	recorded, before := recordedKeys(s.Root), effects(s.Root)
	if out, err := rerun(s); err != nil {
		return "", fmt.Errorf("the next run: %w\n%s", err, out)
	}
	if err := parses(s.Root); err != nil {
		return "", fmt.Errorf("after the next run: %w", err)
	}
	after := effects(s.Root)
	for key, n := range after {
		if slices.Contains(recorded, key) && n != before[key] {
			return "", fmt.Errorf("%s was on record and ran again (%d, then %d times)", key, before[key], n)
		}
		if n > 2 {
			return "", fmt.Errorf("%s ran %d times", key, n)
		}
	}
	return outcomeOf(s.Root)
}

// fixture makes the tree before the command once, and of it, for a test of its or below it, a fresh tree for each crash.
func (k strike) fixture(t *testing.T) func(*testing.T, blow) func() (crashtest.Spec, error) {
	env, bin := crashEnv(t), self(t)
	template := k.template(t, bin, env)
	if k.now != "" {
		env = append(env, "RECONCILE_NOW="+k.now)
	}
	return func(t *testing.T, b blow) func() (crashtest.Spec, error) {
		return k.copies(bin, template, env, inMemory(t), b)
	}
}

// copies returns a function that copies the template to a folder in trees, and removes the copy before.
func (k strike) copies(bin, template string, env []string, trees string, b blow) func() (crashtest.Spec, error) {
	n := 0
	return func() (crashtest.Spec, error) {
		n++
		last := filepath.Join(trees, strconv.Itoa(n-1))
		dir := filepath.Join(trees, strconv.Itoa(n), "tree")
		err := errors.Join(os.RemoveAll(last), os.CopyFS(dir, os.DirFS(template)))
		s := crashtest.Spec{Cmd: append([]string{bin}, k.cmd...), Dir: dir, Root: dir, Env: env, Mode: b.mode, Errno: b.errno}
		if b.mode == crashtest.Fail {
			s.Skip = func(c crashtest.Call) bool { // an agent that cannot write has failed
				return c.Path == "src" || strings.HasPrefix(c.Path, "src/") || c.Path == "" || leavesLitter(c)
			}
		}
		return s, err
	}
}

// leavesLitter reports whether a call takes away what was replaced. Should that fail, nothing else does: the file goes with
// the next run that has something to do.
func leavesLitter(c crashtest.Call) bool {
	return c.Op == crashtest.Remove && strings.HasPrefix(c.Path, ".reconcile/tmp/")
}

// template is the tree before the command.
func (k strike) template(t *testing.T, bin string, env []string) string {
	dir := filepath.Join(inMemory(t), "template")
	switch {
	case k.example != "":
		writeFiles(t, dir, exampleFiles(t, k.example))
	case k.files != nil:
		writeFiles(t, dir, k.files)
	default:
		writeFiles(t, dir, askTree)
	}
	for _, args := range k.before {
		cmd := exec.Command(bin, args...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	k.changed(t, dir)
	return dir
}

// exampleFiles are those of an example of clarifications, with agents that leave their keys.
func exampleFiles(t *testing.T, name string) map[string]string {
	t.Helper()
	files := map[string]string{}
	example := os.DirFS(filepath.Join("..", "..", "examples", "clarification", name))
	err := fs.WalkDir(example, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".reconcile" {
				return fs.SkipDir
			}
			return err
		}
		data, err := fs.ReadFile(example, p)
		if files[p] = string(data); strings.HasSuffix(p, ".sh") {
			files[p] = agentHead + files[p]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// parses checks that every JSON file below state/ is whole.
func parses(root string) error {
	return filepath.WalkDir(filepath.Join(root, "state"), func(p string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err != nil || !strings.HasSuffix(p, ".json") {
			return nil
		}
		data, err := os.ReadFile(p)
		if err == nil && !json.Valid(data) {
			err = fmt.Errorf("%s is torn: %q", p, data)
		}
		return err
	})
}
