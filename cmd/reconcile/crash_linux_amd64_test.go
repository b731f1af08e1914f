package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// crashTree has a session, an agent, a failing and retried node, results that are handed on, and a node whose effect
// can be counted: each of its runs adds a line to ../effects.
var crashTree = map[string]string{
	"specs/sessions/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\n" +
		"spec: {owner: ada}\n",
	"specs/agents/ada.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: ada}\n" +
		"spec: {role: engineer, runner: {human: {}}}\n",
	"specs/dags/three.yaml": `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: three}
spec:
  session: work
  nodes:
    - {name: first, script: "echo first >> ../effects; echo '{\"n\": 1}' > first.json", outputs: {json: first.json, keep: true}}
    - {name: second, needs: [first], script: "echo second >> ../effects; echo $RECONCILE_NEED_FIRST_RESULT"}
    - {name: third, needs: [first], when: "needs.first.result.n == 2", run: ["false"]}
`,
}

// crashFixture makes a fresh tree in a git repository, and the command that a crash strikes.
func crashFixture(t *testing.T, b blow) func() (crashtest.Spec, error) {
	env, bin := crashEnv(t), self(t)
	trees := inMemory(t)
	template := crashTemplate(t, env)
	n := 0
	return func() (crashtest.Spec, error) {
		n++
		last := filepath.Join(trees, strconv.Itoa(n-1))
		dir := filepath.Join(trees, strconv.Itoa(n), "tree")
		err := errors.Join(os.RemoveAll(last), os.CopyFS(dir, os.DirFS(template)))
		s := crashtest.Spec{Cmd: []string{bin, "--commit"}, Dir: dir, Root: dir, Env: env, Mode: b.mode, Errno: b.errno}
		if b.mode == crashtest.Fail {
			s.Skip = func(c crashtest.Call) bool { return c.Path == "first.json" } // a command that cannot write has failed
		}
		return s, err
	}
}

// crashTemplate is the tree that each crash starts from.
func crashTemplate(t *testing.T, env []string) string {
	dir := filepath.Join(t.TempDir(), "template")
	writeFiles(t, dir, crashTree)
	for _, args := range [][]string{{"init", "-q", "-b", "main", "--template="}, {"add", "-A"}, {"commit", "-qm", "Start"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// crashEnv stops the clock, so that trees can be compared byte by byte.
func crashEnv(t *testing.T) []string {
	home := t.TempDir()
	config := "[user]\n\tname = Ada\n\temail = ada@example.com\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
		"RECONCILE_NOW=2026-02-27T10:00:00Z", "GIT_AUTHOR_DATE=2026-02-27T10:00:00Z", "GIT_COMMITTER_DATE=2026-02-27T10:00:00Z"}
}

// TestCrash kills, tears or fails every file-changing call of a run that executes nodes and commits. What is left must be
// whole, and one more run must end in the same tree as a run that nothing happened to, without waiting for anything to
// become stale and without litter. By default a sample of the calls is struck, else all of them with RECONCILE_SWEEP=all.
func TestCrash(t *testing.T) {
	for _, b := range blows(t, 23, 13, 43, 47) {
		b.run(t, "run", func(t *testing.T) (int, error) {
			fixture := crashFixture(t, b)
			want := undisturbed(t, fixture)
			return crashtest.EveryNth(t.Context(), b.every, fixture, func(s crashtest.Spec, r crashtest.Result) error {
				if err := b.advised(r); err != nil {
					return err
				}
				return afterCrash(s, want)
			})
		})
	}
}

func undisturbed(t *testing.T, fixture func() (crashtest.Spec, error)) string {
	s, err := fixture()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := rerun(s); err != nil {
		t.Fatalf("undisturbed: %v\n%s", err, out)
	}
	want, err := outcomeOf(s.Root)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func rerun(s crashtest.Spec) ([]byte, error) {
	cmd := exec.Command(s.Cmd[0], s.Cmd[1:]...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	return cmd.CombinedOutput()
}

// afterCrash checks what a crash left, runs once more, and compares.
func afterCrash(s crashtest.Spec, want string) error {
	if err := whole(s); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	recorded, before := recordedNodes(s.Root), effects(s.Root)
	if out, err := rerun(s); err != nil {
		return fmt.Errorf("the next run: %w\n%s", err, out)
	}
	if err := whole(s); err != nil {
		return fmt.Errorf("after the next run: %w", err)
	}
	after := effects(s.Root)
	for node := range recorded {
		if after[node] != before[node] {
			return fmt.Errorf("%s was on record and ran again (%d, then %d times)", node, before[node], after[node])
		}
	}
	got, err := outcomeOf(s.Root)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("another tree than without the crash\n%s", firstDifference(want, got))
	}
	return nil
}

// whole checks that every JSON file parses and that git finds nothing wrong.
func whole(s crashtest.Spec) error {
	if err := parses(s.Root); err != nil {
		return err
	}
	cmd := exec.Command("git", "fsck", "--strict")
	cmd.Dir, cmd.Env = s.Root, s.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git fsck: %w\n%s", err, out)
	}
	return nil
}

// recordedNodes are those whose success is on record as a file.
func recordedNodes(root string) map[string]bool {
	nodes := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(root, "state/runs/dags/three/*.json"))
	for _, f := range files {
		name, _, _ := strings.Cut(filepath.Base(f), "-")
		nodes[name] = true
	}
	return nodes
}

// virtualStart is the turn of a run in the queue. A process that takes over counts anew where no run is on record yet.
var virtualStart = regexp.MustCompile(`\s*"virtualStart": \d+,`)

// outcomeOf is everything that a crash must not change: the files of the tree with their content, what git says of
// them, and the names of what is left under .reconcile, where litter would be.
func outcomeOf(root string) (string, error) {
	_, listing, err := crashtest.Listing(root, func(p string, data []byte) ([]byte, bool) {
		switch {
		case p == ".git" || p == ".reconcile/cache" || p == ".reconcile/generation" || p == ".reconcile/events.jsonl":
			return nil, false
		case strings.HasPrefix(p, ".reconcile/locks/"):
			return nil, data == nil
		case p == ".reconcile/logs", p == ".reconcile/memory": // local, and lost when the disk is full
			return nil, false
		case strings.HasPrefix(p, ".reconcile/"):
			return nil, true
		}
		return virtualStart.ReplaceAll(data, nil), true
	})
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return listing, nil
	}
	// The files that are committed are those of the listing where git finds no difference; a digest of them has the turns of runs.
	for _, args := range [][]string{{"log", "--format=%s"}, {"status", "--porcelain"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("git %v: %w: %s", args, err, out)
		}
		listing += string(out)
	}
	return listing, nil
}
