package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpToDate fails when a Go type, a comment, an example or a page changed and nobody ran the generator.
func TestUpToDate(t *testing.T) {
	t.Chdir("../../../..")
	if err := run(".", true); err != nil {
		t.Error(err)
	}
}

func TestApply(t *testing.T) {
	root := t.TempDir()
	files := []file{{"a", []byte("1")}, {"b", []byte("2")}}
	if err := apply(root, files, true); err == nil || !strings.Contains(err.Error(), "out of date: a, b") {
		t.Errorf("missing files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "a")); err == nil {
		t.Error("a check has written")
	}
	if err := apply(root, files, false); err != nil {
		t.Fatal(err)
	}
	if err := apply(root, files, true); err != nil {
		t.Errorf("after writing: %v", err)
	}
	files[1].data = []byte("3")
	if err := apply(root, files, true); err == nil || !strings.Contains(err.Error(), "out of date: b;") {
		t.Errorf("an edited file: %v", err)
	}
}

func TestReplace(t *testing.T) {
	got, err := replace([]byte("a\n<!-- x -->\nold\n<!-- /x -->\nb\n"), "x", "new\n")
	if err != nil || string(got) != "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "<!-- x -->\n", "<!-- /x -->"} {
		if _, err := replace([]byte(bad), "x", ""); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct{ name, comment, want string }{
		{"Title", "Title says in a line\nwhat it is.", "Says in a line what it is."},
		{"Steps", "Steps are the steps.", "The steps."},
		{"Run", "Commands run.", "Commands run."},
	} {
		if got := describe(c.name, c.comment); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
