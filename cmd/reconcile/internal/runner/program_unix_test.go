//go:build unix

package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func programIn(t *testing.T, script string) Program {
	return Program{Argv: []string{"sh", "-c", script}, Dir: t.TempDir(), Environ: []string{"PATH=" + os.Getenv("PATH"), "MY_TOKEN=abc", "GOFLAGS=-x"}, Pass: []string{"GOFLAGS"},
		Set: []string{"NO_COLOR=1"}, Timeout: time.Minute, Limit: 1 << 20}
}

func TestProgramEnds(t *testing.T) {
	for _, c := range []struct {
		name, script string
		change       func(*Program)
		want         func(Ended) bool
	}{
		{"exit code and streams", "echo out; echo err >&2; exit 3", nil,
			func(e Ended) bool {
				return e.Exit == 3 && string(e.Stdout) == "out\n" && string(e.Stderr) == "err\n" && !e.Truncated && !e.TimedOut
			}},
		{"no keys", `echo "$MY_TOKEN-$GOFLAGS-$NO_COLOR"`, nil, func(e Ended) bool { return string(e.Stdout) == "--x-1\n" }},
		{"killed", "kill -SEGV $$", nil, func(e Ended) bool { return e.Signal != "" && !e.TimedOut }},
		{"too much output", "yes | head -c 100000", func(p *Program) { p.Limit = 1000 }, func(e Ended) bool { return e.Truncated && len(e.Stdout) == 1000 && e.Exit == 0 }},
		{"no such program", "", func(p *Program) { p.Argv = []string{"no-such-program"} }, func(e Ended) bool { return e.NotStarted != nil }},
		{"no stdin", "cat", nil, func(e Ended) bool { return e.Exit == 0 && len(e.Stdout) == 0 }},
	} {
		p := programIn(t, c.script)
		if c.change != nil {
			c.change(&p)
		}
		e, err := p.Run(t.Context())
		if err != nil || !c.want(e) {
			t.Errorf("%s: exit %d, signal %q, not started: %v, stdout %.100q, %v", c.name, e.Exit, e.Signal, e.NotStarted, e.Stdout, err)
		}
	}
}

// A program that takes too long is killed with what it started, also where that holds its output open.
func TestProgramTimesOut(t *testing.T) {
	p := programIn(t, "sleep 600 & echo $! > child; echo begun; wait")
	var e Ended
	for p.Timeout = 300 * time.Millisecond; len(e.Stdout) == 0; p.Timeout *= 2 { // until it has begun by then
		var err error
		if e, err = p.Run(t.Context()); err != nil || !e.TimedOut || e.Took > 5*time.Minute {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if string(e.Stdout) != "begun\n" {
		t.Fatalf("%+v", e)
	}
	pid, err := os.ReadFile(filepath.Join(p.Dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("its child lives on")
		}
	}
}

func TestProgramIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := programIn(t, "mkfifo ready; echo > ready; sleep 600")
	go func() {
		defer cancel()
		for {
			f, err := os.OpenFile(filepath.Join(p.Dir, "ready"), os.O_RDONLY, 0)
			if err == nil {
				f.Close()
				return
			}
			if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EINTR) {
				t.Error(err)
				return
			}
		}
	}()
	if _, err := p.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
