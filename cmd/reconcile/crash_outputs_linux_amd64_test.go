package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// TestCrashRestore strikes a run that restores a missing output from the cache. The next run finishes, and no node that is
// on record runs again.
func TestCrashRestore(t *testing.T) {
	for _, b := range blows(t, 11, 11, 13, 17) {
		b.run(t, "restore", func(t *testing.T) (int, error) {
			fixture := restoreFixture(t, b)
			want := undisturbed(t, fixture)
			return crashtest.EveryNth(t.Context(), b.every, fixture, func(s crashtest.Spec, r crashtest.Result) error {
				if err := b.advised(r); err != nil {
					return err
				}
				if err := afterCrash(s, want); err != nil {
					return err
				}
				data, err := os.ReadFile(filepath.Join(s.Root, "first.json"))
				if err == nil && string(data) != "{\"n\": 1}\n" {
					err = errors.New("first.json is not what the node wrote")
				}
				return err
			})
		})
	}
}

// restoreFixture makes a tree in which all has succeeded and an output is missing that the cache has.
func restoreFixture(t *testing.T, b blow) func() (crashtest.Spec, error) {
	env, bin := crashEnv(t), self(t)
	trees := inMemory(t)
	template := crashTemplate(t, env)
	s := crashtest.Spec{Cmd: []string{bin, "--commit"}, Dir: template, Root: template, Env: env}
	if out, err := rerun(s); err != nil {
		t.Fatalf("the run before: %v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(template, "first.json")); err != nil {
		t.Fatal(err)
	}
	n := 0
	return func() (crashtest.Spec, error) {
		n++
		last := filepath.Join(trees, strconv.Itoa(n-1))
		dir := filepath.Join(trees, strconv.Itoa(n), "tree")
		err := errors.Join(os.RemoveAll(last), os.CopyFS(dir, os.DirFS(template)))
		return crashtest.Spec{Cmd: s.Cmd, Dir: dir, Root: dir, Env: env, Mode: b.mode, Errno: b.errno}, err
	}
}
