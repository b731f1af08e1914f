package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// debounce is the default quiet time of watch mode, which is taken off each latency.
const debounce = 200 * time.Millisecond

// watch: from saving one spec to its status on disk, in a tree of 10,000 objects (or the largest that is asked for).
func (b *bench) watch(ctx context.Context, sizes []int) (err error) {
	n := 0
	for _, s := range sizes {
		if s <= 10_000 {
			n = max(n, s)
		}
	}
	if n == 0 {
		n = sizes[0]
	}
	dir, err := b.tree(ctx, n)
	if err != nil {
		return err
	}
	e, err := newEditor(dir)
	if err != nil {
		return err
	}
	defer e.notify.Close()
	stop, err := b.startWatch(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.WriteFile(e.spec, []byte(e.text), 0o666), stop()) }()
	if _, err := e.edit(ctx, time.Minute); err != nil { // the first answer says that it watches
		return err
	}
	var latencies []time.Duration
	for range 15 * b.runs {
		took, err := e.edit(ctx, 20*time.Second)
		if err != nil {
			return err
		}
		latencies = append(latencies, took-debounce)
	}
	p50, p99 := quantile(latencies, 0.5), quantile(latencies, 0.99)
	what := fmt.Sprintf("watch, %d objects: save to status less %v, ", n, debounce)
	b.row(what+"p50", short(p50), "", trim(ms(p50))+" ms", ms(p50), 15, " ms")
	b.row(what+"p99", short(p99), "", trim(ms(p99))+" ms", ms(p99), 60, " ms")
	return nil
}

// startWatch starts reconcile --watch. stop ends it as a user would, and reports its output if it failed.
func (b *bench) startWatch(ctx context.Context, dir string) (stop func() error, err error) {
	cmd := exec.CommandContext(ctx, b.binary, "-C", dir, "--quiet", "--watch")
	cmd.Env = environment()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		err := cmd.Process.Signal(syscall.SIGINT)
		waited := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code == 0 || code == 4 || code == 130 {
			waited = nil
		}
		if err = errors.Join(err, waited); err != nil {
			return fmt.Errorf("reconcile --watch: %w\n%.2000s", err, out.String())
		}
		return nil
	}, nil
}

// editor saves one spec again and again, and waits for its status to follow.
type editor struct {
	spec, status string
	text         string
	n            int
	notify       *fsnotify.Watcher
}

// newEditor takes a session that nothing hangs on but its own status.
func newEditor(dir string) (*editor, error) {
	name := name("sessions", 1)
	e := &editor{
		spec:   filepath.Join(dir, "specs", "sessions", name+".yaml"),
		status: filepath.Join(dir, "state", "sessions", name+".json"),
	}
	data, err := os.ReadFile(e.spec)
	if err != nil {
		return nil, err
	}
	e.text = string(data)
	if e.notify, err = fsnotify.NewWatcher(); err != nil {
		return nil, err
	}
	return e, e.notify.Add(filepath.Dir(e.status))
}

// edit saves a new title as editors do, by rename, and returns the time until the status file was replaced.
func (e *editor) edit(ctx context.Context, limit time.Duration) (time.Duration, error) {
	e.n++
	text := strings.Replace(e.text, "  title: ", fmt.Sprintf("  title: edit %d ", e.n), 1)
	if err := os.WriteFile(e.spec+"~", []byte(text), 0o666); err != nil {
		return 0, err
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	start := time.Now()
	if err := os.Rename(e.spec+"~", e.spec); err != nil {
		return 0, err
	}
	for {
		select {
		case ev := <-e.notify.Events:
			if ev.Name == e.status && ev.Has(fsnotify.Create) {
				return time.Since(start), nil
			}
		case err := <-e.notify.Errors:
			return 0, err
		case <-late.C:
			return 0, fmt.Errorf("%s did not follow its spec within %v", e.status, limit)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
