package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/state"
)

// TestBusyTreeKeepsWhatWasAsked: where the tree cannot be had, the exit code says to try again, and the question is a
// file.
func TestBusyTreeKeepsWhatWasAsked(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "tree"))); err != nil {
		t.Fatal(err)
	}
	busy := func(context.Context, engine.Options, engine.Request) (engine.Result, error) {
		return engine.Result{}, fmt.Errorf("lock the tree: %w", state.ErrBusy)
	}
	var stdout, stderr strings.Builder
	a := &app{stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }, now: time.Now, engine: busy}
	code := a.main(t.Context(), []string{"-C", dir, "clarify", "ask", "--from", "engineer", "--to", "architect",
		"--topic", "T", "--question", "Q", "--request", "asked"})
	if code != exitBusy || !strings.Contains(stderr.String(), "reconcile: LOCK_TIMEOUT: lock the tree") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	if !strings.Contains(stderr.String(), "what was written is kept") {
		t.Errorf("it does not say that the question is kept: %s", &stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "specs/clarificationrequests/asked.yaml")); err != nil {
		t.Error(err)
	}
}

// What is not UTF-8 on standard input, and what is longer than anything may be, is a wrong command line: it is neither changed
// nor cut.
func TestUnreadableInput(t *testing.T) {
	for stdin, want := range map[string]string{
		"Which?\n": "", "Q\xff": "the text on standard input is not UTF-8",
		strings.Repeat("x", 64<<10+1): "more than 65536 bytes, at most 2000 characters are allowed",
	} {
		a := &app{stdin: strings.NewReader(stdin)}
		text, err := a.textOf("-")
		switch {
		case want == "" && (err != nil || text != "Which?"):
			t.Errorf("%v, %q", err, text)
		case want != "" && (codeOf(err) != exitUsage || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %q", err, want)
		}
	}
}
