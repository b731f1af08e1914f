package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
)

// A signal may come before the tree was read. A run is interrupted then, and says so once; for a watcher it is the
// normal end, at which it tells how things stand, as ever.
func TestInterruptedAtTheStart(t *testing.T) {
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"run"}, exitInterrupted, "", "reconcile: interrupted\n"},
		{[]string{"run", "--watch"}, exitNotReady, "session/health", "watching "},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "tree"))); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var out, errs bytes.Buffer
		a := &app{stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, now: time.Now,
			engine: engine.Run}
		if code := a.main(ctx, append(c.args, "-C", dir)); code != c.code {
			t.Errorf("%q: exit code %d, want %d", c.args, code, c.code)
		}
		if !strings.Contains(out.String(), c.stdout) || strings.Count(errs.String(), c.stderr) != 1 ||
			strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%q: stdout %q, stderr %q", c.args, &out, &errs)
		}
	}
}

// TestInterruptedWhileReading: a signal ends a command that waits for its input.
func TestInterruptedWhileReading(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdin, terminal := io.Pipe()
	defer time.AfterFunc(2*time.Minute, func() { terminal.Close() }).Stop() // so that a failure ends
	go func() {
		_, _ = terminal.Write([]byte("We decided to"))
		stop()
	}()
	var out, errs bytes.Buffer
	a := &app{stdin: stdin, stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, now: time.Now, engine: engine.Run}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "tree"))); err != nil {
		t.Fatal(err)
	}
	code := a.main(ctx, []string{"memory", "capture", "--agent", "engineer", "--issue", "1", "-C", dir})
	if code != exitInterrupted || errs.String() != "reconcile: interrupted\n" || out.Len() > 0 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, &out, &errs)
	}
}
