package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// TestCrashPush kills a run that shares its branch at a sample of its file-changing calls, or at all of them with
// RECONCILE_SWEEP=all. One more run ends with everything on the remote, without waiting for the claims of the killed one;
// what was on record does not run again, and no claim is left.
func TestCrashPush(t *testing.T) {
	for _, b := range blows(t, 41, 0, 0, 0) {
		b.run(t, "push", func(t *testing.T) (int, error) {
			env, bin := crashEnv(t), self(t)
			template := crashTemplate(t, env)
			trees := inMemory(t)
			n := 0
			fixture := func() (crashtest.Spec, error) {
				n++
				top := filepath.Join(trees, strconv.Itoa(n))
				dir := filepath.Join(top, "tree")
				s := crashtest.Spec{Cmd: []string{bin, "--push"}, Dir: dir, Root: dir, Env: env, Mode: b.mode}
				return s, errors.Join(os.RemoveAll(filepath.Join(trees, strconv.Itoa(n-1))), os.CopyFS(dir, os.DirFS(template)),
					inGit(s, "init", "-q", "--bare", "../hub.git"), inGit(s, "remote", "add", "origin", "../hub.git"),
					inGit(s, "push", "-q", "origin", "main"))
			}
			return crashtest.EveryNth(t.Context(), b.every, fixture, func(s crashtest.Spec, _ crashtest.Result) error {
				return afterCrashedPush(s)
			})
		})
	}
}

func inGit(s crashtest.Spec, args ...string) error {
	_, err := gitSays(s, args...)
	return err
}

func gitSays(s crashtest.Spec, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = s.Root, s.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %v: %w: %s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func afterCrashedPush(s crashtest.Spec) error {
	if err := whole(s); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	recorded, before := recordedNodes(s.Root), effects(s.Root)
	if out, err := rerun(s); err != nil {
		return fmt.Errorf("the next run: %w\n%s", err, out)
	}
	if err := errors.Join(whole(s), inGit(s, "-C", "../hub.git", "fsck", "--strict")); err != nil {
		return fmt.Errorf("after the next run: %w", err)
	}
	after := effects(s.Root)
	for node := range recorded {
		if after[node] != before[node] {
			return fmt.Errorf("%s was on record and ran again (%d, then %d times)", node, before[node], after[node])
		}
	}
	here, err1 := gitSays(s, "rev-parse", "HEAD")
	refs, err2 := gitSays(s, "-C", "../hub.git", "for-each-ref", "--format=%(objectname) %(refname)")
	left, err3 := gitSays(s, "status", "--porcelain", "--", "state")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	main, kept, _ := strings.Cut(refs, "\n")
	if main != here+" refs/heads/main" || left != "" {
		return fmt.Errorf("the branch is at %s, the remote has\n%s\nand not committed is\n%s", here, refs, left)
	}
	return keptWhole(s, kept)
}

// keptWhole checks that the remote keeps the outputs of the one record that has some, and nothing else.
func keptWhole(s crashtest.Spec, refs string) error {
	tree, ref, _ := strings.Cut(refs, " ")
	key, ok := strings.CutPrefix(ref, "refs/reconcile/outputs/")
	if _, err := os.Lstat(filepath.Join(s.Root, "state/runs", key+".json")); !ok || err != nil {
		return fmt.Errorf("the remote keeps %q: %w", refs, err)
	}
	want, err1 := gitSays(s, "hash-object", "first.json")
	got, err2 := gitSays(s, "-C", "../hub.git", "rev-parse", tree+":first.json")
	here, err3 := gitSays(s, "rev-parse", ref)
	if err := errors.Join(err1, err2, err3); err != nil || got != want || here != tree {
		return fmt.Errorf("the remote keeps %s, of which first.json is %s, want %s; here is %s: %w", refs, got, want, here, err)
	}
	return nil
}
