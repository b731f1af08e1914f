//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/schemas"
)

func TestStdoutAsResult(t *testing.T) {
	g := newRig(t, Options{Runs: schemas.RunSettings{ResultLimit: 40}})
	for _, c := range []struct{ mode, script, result, message string }{
		{"text", "echo ' two words '; echo noise >&2", `"two words"`, ""},
		{"text", ":", "", "the output is empty"},
		{"text", `printf 'a"b\033[31mred\033[0m<&>'`, "", "line 1 of the output has the control character U+001B"},
		{"text", "seq 1000", `"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n1\n[cut]"`, ""},
		{"json", `echo '{"b": 1.50, "a": [null, "x<y"]}'; echo noise >&2`, `{"a":[null,"x<y"],"b":1.50}`, ""},
		{"json", "echo 12345678901234567890", "12345678901234567890", ""},
		{"json", ":", "", "stdout is empty, it should be one JSON value"},
		{"json", "echo '{'", "", "stdout is not JSON"},
		{"json", "echo 1 2", "", "something follows it"},
		{"json", `echo '{"ok": true, "ok": false}'`, "", "stdout has the key ok twice"},
		{"json", `echo '{"a": [{"b": 1, "b": 2}]}'`, "", "stdout has the key a[0].b twice"},
		{"json", `printf '"\377"'`, "", "stdout is not UTF-8"},
		{"json", "seq 1000", "", "it is longer than 40 bytes"},
		{"json", "echo 1; exit 2", "", "exit code 2"},
		{"yaml", "echo 1", "", `output "yaml" is not known`},
	} {
		e := sh(c.script)
		e.Command().Output = c.mode
		run := g.do(e)
		if string(run.Result) != c.result || !strings.Contains(run.Message, c.message) {
			t.Errorf("%s of %q: result %s, message %q", c.mode, c.script, run.Result, run.Message)
		}
		if failed := run.Outcome == schemas.OutcomeFailed; failed != (c.message != "") {
			t.Errorf("%s of %q: %s", c.mode, c.script, run.Outcome)
		}
		if strings.Contains(c.script, "noise") && !strings.Contains(run.Output, "noise") {
			t.Errorf("%s of %q: stderr is not in the output %q", c.mode, c.script, run.Output)
		}
	}
}

func TestResultFile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(outside, []byte(`"outside"`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, script, result, message string }{
		{"written", "out/r.json", `mkdir -p out; echo '{"n": 1}' > "$RECONCILE_RESULT"`, `{"n":1}`, ""},
		{"relative", "r.json", "echo true > r.json", "true", ""},
		{"missing", "r.json", ":", "", "output r.json was not written"},
		{"stale", "stale.json", ":", "", "output stale.json was not written"},
		{"broken", "r.json", "echo '[1,' > r.json", "", "r.json is not JSON"},
		{"ambiguous", "r.json", `echo '{"n": 1, "n": 2}' > r.json`, "", "r.json has the key n twice"},
		{"long", "r.json", `printf '"%0100000d"' 0 > r.json`, "", "output r.json is longer than 65536 bytes"},
		{"folder", "r.json", "mkdir r.json", "", "output r.json is not a regular file"},
		{"was a folder", "sub", ":", "", "output sub is a folder"},
		{"pipe", "r.json", "mkfifo r.json", "", "output r.json is not a regular file"},
		{"link to outside", "r.json", "ln -s " + outside + " r.json", "", "escapes"},
		{"link to inside", "r.json", "echo 1 > x; ln -s x r.json", "1", ""},
		{"path to outside", "../r.json", ":", "", "is not a path below the root"},
		{"absolute", outside, ":", "", "is not a path below the root"},
		{"in .git", ".GIT/config", ":", "", "is inside .git"},
		{"in .git by its short name", "git~1/config", ":", "", "is inside .git"},
		{"in .git on Windows", ".git::$INDEX_ALLOCATION/config", ":", "", "is inside .git"},
		{"in .reconcile", ".reconcile/journal/x", ":", "", "is inside .reconcile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, Options{})
			g.write("stale.json", `"stale"`)
			g.write("sub/x", "")
			e := sh(c.script)
			e.Command().OutputJSON = c.file
			run := g.do(e)
			if string(run.Result) != c.result || !strings.Contains(run.Message, c.message) {
				t.Errorf("result %s, message %q", run.Result, run.Message)
			}
			if failed := run.Outcome == schemas.OutcomeFailed; failed != (c.message != "") {
				t.Errorf("outcome %s", run.Outcome)
			}
		})
	}
}

func TestStaleLinkIsRemovedNotFollowed(t *testing.T) {
	g := newRig(t, Options{})
	g.write("kept.json", `"kept"`)
	if err := os.Symlink("kept.json", filepath.Join(g.dir, "r.json")); err != nil {
		t.Fatal(err)
	}
	e := sh("echo 2 > r.json")
	e.Command().OutputJSON = "r.json"
	if run := g.do(e); string(run.Result) != "2" {
		t.Errorf("%s %q", run.Result, run.Message)
	}
	if b, err := os.ReadFile(filepath.Join(g.dir, "kept.json")); err != nil || string(b) != `"kept"` {
		t.Errorf("%q, %v", b, err)
	}
}

func TestPromisedFiles(t *testing.T) {
	g := newRig(t, Options{})
	if err := unix.Mkfifo(filepath.Join(g.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for files, message := range map[string]string{
		"a b":          "",
		"a c":          "output c was not written",
		"folder":       "output folder is not a regular file",
		"pipe":         "output pipe is not a regular file",
		"a/b":          "output",
		"../a":         "is not a path below the root",
		"a .git/index": "is inside .git",
	} {
		e := sh("touch a b; mkdir -p folder .git; touch .git/index")
		e.Command().OutputFiles = strings.Fields(files)
		run := g.do(e)
		failed := run.Outcome == schemas.OutcomeFailed
		if failed != (message != "") || !strings.Contains(run.Message, message) {
			t.Errorf("%s: %s %q", files, run.Outcome, run.Message)
		}
		if run.ExitCode == nil || *run.ExitCode != 0 {
			t.Errorf("%s: exit code %v", files, run.ExitCode)
		}
	}
}
