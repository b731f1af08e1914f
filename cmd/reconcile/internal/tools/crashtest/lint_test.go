package crashtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// calls reads a list such as "write t; sync t; rename t f; !remove x", where ! marks a failed call.
func calls(script string) []crashtest.Call {
	var out []crashtest.Call
	for part := range strings.SplitSeq(script, ";") {
		f := strings.Fields(part)
		c := crashtest.Call{PID: len(out)}
		if rest, ok := strings.CutPrefix(f[0], "!"); ok {
			f[0], c.Err = rest, syscall.EEXIST
		}
		c.Op = crashtest.Op(f[0])
		if len(f) > 1 {
			c.Path = f[1]
		}
		if len(f) > 2 {
			c.To = f[2]
		}
		out = append(out, c)
	}
	return out
}

func TestLint(t *testing.T) {
	for script, want := range map[string]string{
		"create d/t; write d/t; sync d/t; rename d/t d/f; sync d":            "",
		"create t; write t; sync t; rename t f; sync .":                      "",
		"create d/t; write d/t; rename d/t d/f; sync d":                      "unsynced-rename@2",
		"create d/t; write d/t; rename d/t d/f; syncall":                     "unsynced-rename@2",
		"create d/t; write d/t; syncall; rename d/t d/f; syncall":            "",
		"create d/t; write d/t; sync d/t; rename d/t d/f":                    "unsynced-folder@3",
		"create d/t; write d/t; sync d/t; sync d; rename d/t d/f":            "unsynced-folder@4",
		"create d/t; write d/t; sync d/t; rename d/t e/f; sync d":            "unsynced-folder@3",
		"create d/t; write d/t; sync d/t; write d/t; rename d/t d/f; sync d": "unsynced-rename@4",
		"write t; link t u; sync .; rename u f; sync .":                      "unsynced-rename@3",
		"mkdir d; create d/t; write d/t; sync d/t; sync d":                   "unsynced-folder@0",
		"remove d/f":                        "unsynced-folder@0",
		"remove d/f; remove d; sync .":      "",
		"remove d/f; sync d; !remove d/g":   "",
		"create d/t; write d/t; remove d/t": "",
		"write t; !rename t f":              "",
		"create tmp/t; write tmp/t; sync tmp/t; rename tmp/t f; sync .; mkdir tmp": "",
	} {
		var got []string
		for _, f := range crashtest.Lint(calls(script), func(p string) bool { return strings.HasPrefix(p, "tmp") }) {
			got = append(got, fmt.Sprintf("%s@%d", f.Rule, f.Call.PID))
			if !strings.Contains(f.String(), f.Call.Path) {
				t.Errorf("%s: %q does not name the path", script, f)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: found %q, want %q", script, s, want)
		}
	}
}

func TestTreeHash(t *testing.T) {
	root := t.TempDir()
	put := func(name, data string) {
		t.Helper()
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	differs := func(what string, want bool) {
		t.Helper()
		hash, listing, err := crashtest.TreeHash(root, ".cache", "**/*.log")
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(seen, hash) == want {
			t.Errorf("%s: want a new hash: %v; %s", what, want, listing)
		}
		seen = append(seen, hash)
	}
	put("a/f", "1")
	differs("one file", true)
	put("a/f", "1")
	put(".cache/x/y", "1")
	put("a/b.log", "1")
	differs("the same, and what is excluded", false)
	put("a/f", "2")
	differs("content", true)
	if err := os.Chmod(filepath.Join(root, "a/f"), 0o600); err != nil {
		t.Fatal(err)
	}
	differs("mode", true)
	put("g", "")
	differs("another file", true)
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	differs("an empty folder", true)
	_, edited, err := crashtest.Listing(root, func(p string, data []byte) ([]byte, bool) {
		if p == "a/f" {
			data = []byte("edited")
		}
		return data, p != "g" && !strings.HasPrefix(p, ".")
	})
	if err != nil || !strings.Contains(edited, "a/f 6 ") || strings.Contains(edited, " g ") {
		t.Errorf("Listing: %v\n%s", err, edited)
	}
}
