package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// TestMergeDriverOnBadDisk fails, tears or kills at each change of a file while the merge driver works. The file is as it
// was or whole and merged, and only success and conflicts have an exit code that git takes for a result.
func TestMergeDriverOnBadDisk(t *testing.T) {
	sides := map[string]map[string]string{
		"json":     {"base": "{\"a\": 1}\n", "ours": "{\"a\": 1, \"b\": 2}\n", "theirs": "{\"a\": 1, \"c\": 3}\n"},
		"text":     {"base": "1\n2\n3\n", "ours": "one\n2\n3\n", "theirs": "1\n2\nthree\n"},
		"conflict": {"base": "1\n", "ours": "one\n", "theirs": "uno\n"},
	}
	env, bin := crashEnv(t), self(t)
	for name, files := range sides {
		for _, s := range []crashtest.Spec{{Mode: crashtest.Fail, Errno: unix.ENOSPC, Stay: true}, {Mode: crashtest.Fail, Errno: unix.EIO},
			{Mode: crashtest.Torn}, {Mode: crashtest.Kill}} {
			t.Run(fmt.Sprintf("%s/%s", name, s.Mode), func(t *testing.T) {
				fixture := func() (crashtest.Spec, error) {
					dir := t.TempDir()
					writeFiles(t, dir, files)
					s.Cmd, s.Dir, s.Root, s.Env = []string{bin, "merge-driver", "base", "ours", "theirs"}, dir, dir, env
					return s, nil
				}
				whole, err := fixture()
				if err != nil {
					t.Fatal(err)
				}
				if out, err := rerun(whole); err != nil && name != "conflict" {
					t.Fatalf("%v: %s", err, out)
				}
				want, err := os.ReadFile(filepath.Join(whole.Root, "ours"))
				if err != nil {
					t.Fatal(err)
				}
				n, err := crashtest.EveryNth(t.Context(), 1, fixture, func(s crashtest.Spec, r crashtest.Result) error {
					got, err := os.ReadFile(filepath.Join(s.Root, "ours"))
					switch {
					case err != nil:
						return err
					case string(got) != files["ours"] && !bytes.Equal(got, want):
						return fmt.Errorf("ours is %q", got)
					case s.Mode == crashtest.Fail && r.Exit != exitDriver && !bytes.Equal(got, want):
						return fmt.Errorf("exit code %d with ours as it was: %s", r.Exit, r.Stderr)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					t.Fatal("no change of a file was seen")
				}
			})
		}
	}
}
