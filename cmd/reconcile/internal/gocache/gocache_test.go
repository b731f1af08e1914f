package gocache

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	Main(os.Args)
	os.Exit(m.Run())
}

// goIn runs a go command with a cache of its own above a shared one.
func goIn(t *testing.T, dir, shared, own string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOCACHE="+filepath.Join(own, "unused"), "GOCACHEPROG="+Program(self, own, shared))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// outputs counts the outputs of actions in a cache.
func outputs(t *testing.T, dir string) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "??", "*-d"))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// What was compiled is found in the shared cache and in the own one, and only the own one changes.
func TestLayers(t *testing.T) {
	dir, shared, own, other := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module layers\n\ngo 1.24\n", "a.go": "package layers\n\nfunc A() int { return 1 }\n",
		"b/b.go": "package b\n\nimport \"layers\"\n\nfunc B() int { return layers.A() }\n"} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compiled := func(out string) bool { return strings.Contains(out, "/compile") }
	if out := goIn(t, dir, t.TempDir(), shared, "build", "-x", "."); !compiled(out) {
		t.Fatalf("nothing was compiled:\n%s", out)
	}
	before := outputs(t, shared)
	if out := goIn(t, dir, shared, own, "build", "-x", "."); compiled(out) {
		t.Errorf("what is in the shared cache was compiled again:\n%s", out)
	}
	if out := goIn(t, dir, shared, own, "build", "-x", "./b"); !compiled(out) {
		t.Errorf("what is not there was not compiled:\n%s", out)
	}
	if out := goIn(t, dir, shared, own, "build", "-x", "./b"); compiled(out) {
		t.Errorf("what is in its own cache was compiled again:\n%s", out)
	}
	if out := goIn(t, dir, shared, other, "build", "-x", "./b"); !compiled(out) {
		t.Errorf("it was found in the shared cache:\n%s", out)
	}
	if after := outputs(t, shared); after != before || outputs(t, own) == 0 {
		t.Errorf("the shared cache had %d outputs, and has %d; the own one %d", before, after, outputs(t, own))
	}
	if Program("a", `b"`, "c") != "" {
		t.Error("a path with a quotation mark is not refused")
	}
}

// An entry that is damaged, of another action, or without its output is missing.
func TestDamaged(t *testing.T) {
	dir, q := t.TempDir(), request{ActionID: []byte{1, 2}, OutputID: []byte{3, 4}, BodySize: 1}
	at, err := put(dir, q, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, size, is := get(dir, q.ActionID); is != at || size != 1 {
		t.Errorf("%q, %d", is, size)
	}
	if _, err := put(dir, q, nil); err == nil {
		t.Error("a body that is cut off was kept")
	}
	for what, damage := range map[string]func() error{
		"an output of another size": func() error { return os.WriteFile(at, []byte("xx"), 0o600) },
		"no output":                 func() error { return os.Remove(at) },
		"a cut entry":               func() error { return os.Truncate(file(dir, q.ActionID, "a"), 10) },
		"the entry of another":      func() error { return os.Rename(file(dir, q.ActionID, "a"), file(dir, []byte{1, 3}, "a")) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		for _, action := range [][]byte{q.ActionID, {1, 3}} {
			if _, _, is := get(dir, action); is != "" {
				t.Errorf("%s: found at %s", what, is)
			}
		}
		if err := os.WriteFile(file(dir, q.ActionID, "a"), []byte("v1 0102 0304 1 0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
