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
	for _, b := range blows(t, 43, 29, 97, 101) {
		for _, s := range strikes {
			b.run(t, s.name, func(t *testing.T) (int, error) { return s.every(t, b) })
		}
	}
}

// every strikes each n-th call and checks what is left.
func (k strike) every(t *testing.T, b blow) (int, error) {
	fixture := k.fixture(t, b)
	never := ""
	if k.acts {
		idle := func() (crashtest.Spec, error) { s, err := fixture(); s.Cmd = s.Cmd[:1]; return s, err }
		never = undisturbed(t, idle)
	}
	done := undisturbed(t, func() (crashtest.Spec, error) {
		s, err := fixture()
		if err == nil && k.acts { // as after a crash, the tree is run afterwards
			_, err = rerun(s)
			s.Cmd = s.Cmd[:1]
		}
		return s, err
	})
	return crashtest.EveryNth(t.Context(), b.every, fixture, func(s crashtest.Spec, r crashtest.Result) error {
		if k.acts {
			s.Cmd = s.Cmd[:1]
		}
		got, err := recovered(s)
		if err == nil {
			err = b.advised(r)
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, r.Stderr)
		}
		if got != done && (!k.acts || r.Exit == 0 || withoutFolders(got) != withoutFolders(never)) {
			return fmt.Errorf("another tree than without the crash\n%s", firstDifference(done, got))
		}
		return nil
	})
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

// fixture makes a fresh tree for each crash.
func (k strike) fixture(t *testing.T, b blow) func() (crashtest.Spec, error) {
	env, bin := crashEnv(t), self(t)
	trees := inMemory(t)
	template := k.template(t, bin, env)
	if k.now != "" {
		env = append(env, "RECONCILE_NOW="+k.now)
	}
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
