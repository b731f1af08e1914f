package checking

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
)

// TestSilent: a file that passed as one test says nothing of the tests that it declares. A script without any is its own test.
func TestSilent(t *testing.T) {
	c := &Checker{Root: t.TempDir()}
	for name, text := range map[string]string{"web/a.test.js": "import test from 'node:test'\ntest('adds', () => {})\n", "web/script.test.js": "assert.equal(1, 1)\n"} {
		at := filepath.Join(c.Root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	passed := func(name string) checks.Test { return checks.Test{Name: name, Outcome: checks.TestPassed} }
	failed, placed := passed("a.test.js"), passed("a.test.js")
	failed.Outcome, placed.File = checks.TestFailed, "web/a.test.js"
	d := tools.Discovered{Folder: "web", Language: "javascript"}
	for _, k := range []struct {
		test checks.Test
		want []string
	}{
		{passed("a.test.js"), []string{"web/a.test.js"}},
		{passed(filepath.Join(c.Root, "web/a.test.js")), []string{"web/a.test.js"}},
		{passed("adds"), nil}, {passed("script.test.js"), nil}, {passed("gone.test.js"), nil}, {passed("../../a.test.js"), nil}, {failed, nil}, {placed, nil},
	} {
		if got := c.silent(d, []checks.Test{k.test}); !slices.Equal(got, k.want) {
			t.Errorf("%+v: %q", k.test, got)
		}
	}
}
