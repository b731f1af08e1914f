package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// program returns a fixture maker for one of programs.
func program(t testing.TB, name string, mode crashtest.Mode, errno syscall.Errno) func() (crashtest.Spec, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if programs[name] == nil {
		t.Fatalf("no program %q", name)
	}
	return func() (crashtest.Spec, error) {
		dir := t.TempDir()
		files := map[string]string{"a/f": old, "gone/f": old}
		for i := range 16 {
			files[fmt.Sprintf("f%d", i)] = old
		}
		for p, data := range files {
			p = filepath.Join(dir, p)
			if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(data), 0o644)); err != nil {
				return crashtest.Spec{}, err
			}
		}
		return crashtest.Spec{
			Cmd: []string{self}, Env: append(os.Environ(), "CRASHTEST_PROGRAM="+name), Root: dir, Mode: mode, Errno: errno,
		}, nil
	}
}

func run(t testing.TB, spec func() (crashtest.Spec, error), change func(*crashtest.Spec)) (crashtest.Spec, crashtest.Result) {
	t.Helper()
	s, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&s)
	}
	r, err := crashtest.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func TestRunSeesCalls(t *testing.T) {
	_, r := run(t, program(t, "look", crashtest.None, 0), nil)
	var got []string
	for _, c := range r.Calls {
		s := fmt.Sprint(c.Op, " ", c.Path)
		if c.To != "" {
			s += " " + c.To
		}
		if c.Size != 0 {
			s += fmt.Sprint(" ", c.Size)
		}
		if c.Err != 0 {
			s += " " + c.Err.Error()
		}
		if c.Idle {
			s += " idle"
		}
		got = append(got, s)
	}
	want := []string{
		"mkdir d", "create d/f", "write d/f 5", "rename d/f d/g", "link d/g d/h", "create d/s", "attr d/g", "truncate d/g",
		"sync d", "remove d/h", "mkdir d file exists idle", "remove d/h no such file or directory idle",
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Exit != 7 || string(r.Stdout) != "to stdout\n" || string(r.Stderr) != "to stderr\n" || r.Struck {
		t.Errorf("exit %d, stdout %q, stderr %q, struck %v", r.Exit, r.Stdout, r.Stderr, r.Struck)
	}
	if r.Points != len(want)-3 {
		t.Errorf("%d points, want all that change something: %d", r.Points, len(want)-3)
	}
}

func TestRunSeesThreadsAndChildren(t *testing.T) {
	if _, r := run(t, program(t, "threads", crashtest.None, 0), nil); r.Exit != 0 || r.Points != 8*(1+5+4) {
		t.Errorf("exit %d, %d points; want 80: a create, 5 writes and 4 times emptied, 8 times", r.Exit, r.Points)
	}
	spec := program(t, "shell", crashtest.Kill, 0)
	_, r := run(t, spec, nil)
	var got []string
	for _, c := range r.Calls {
		got = append(got, fmt.Sprint(c.Op, " ", c.Path))
	}
	if want := []string{"create made", "write made", "rename made", "remove moved"}; !slices.Equal(got, want) || r.Exit != 0 {
		t.Errorf("calls %q, want %q; exit %d", got, want, r.Exit)
	}
	s, r := run(t, spec, func(s *crashtest.Spec) { s.K = 3 })
	if _, err := os.Stat(filepath.Join(s.Root, "made")); err != nil || !r.Struck || r.Exit != -1 {
		t.Errorf("killed before the rename: %v, struck %v, exit %d", err, r.Struck, r.Exit)
	}
	s, r = run(t, spec, func(s *crashtest.Spec) {
		s.K = 1
		s.Skip = func(c crashtest.Call) bool { return c.Op != crashtest.Remove }
	})
	if _, err := os.Stat(filepath.Join(s.Root, "moved")); err != nil || r.Points != 1 {
		t.Errorf("killed before the only call that counts: %v, %d points", err, r.Points)
	}
}

func TestRunEndsWithTheContext(t *testing.T) {
	s, err := program(t, "hang", crashtest.None, 0)()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Skip = func(crashtest.Call) bool { cancel(); return false } // once it runs
	s.Mode, s.K = crashtest.Kill, 1000
	if _, err := crashtest.Run(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestRunReportsBadCommands(t *testing.T) {
	_, err := crashtest.Run(t.Context(), crashtest.Spec{Cmd: []string{"/nonexistent"}, Root: t.TempDir()})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
}

// whole checks that a file is old or new, and which.
func whole(root, name string) (isNew bool, err error) {
	data, err := os.ReadFile(filepath.Join(root, name))
	switch {
	case err != nil:
		return false, err
	case string(data) == old:
		return false, nil
	case string(data) == new:
		return true, nil
	}
	return false, fmt.Errorf("%s is torn: %q", name, data)
}

// afterwards runs the program again, which sweeps first, and wants nothing but the new tree.
func afterwards(ctx context.Context, s crashtest.Spec, wantTree string) error {
	s.Mode, s.K = crashtest.None, 0
	if r, err := crashtest.Run(ctx, s); err != nil || r.Exit != 0 {
		return fmt.Errorf("run again: exit %d, %s, %w", r.Exit, r.Stderr, err)
	}
	_, tree, err := crashtest.TreeHash(s.Root)
	if err == nil && tree != wantTree {
		err = fmt.Errorf("tree after the next run:\n%s\nwant:\n%s", tree, wantTree)
	}
	return err
}

// temporary says that the folder of temporary files, and locks, need not survive.
func temporary(path string) bool {
	return strings.HasPrefix(path, ".reconcile") || strings.HasSuffix(path, ".lock")
}

var strikes = []struct {
	mode  crashtest.Mode
	errno syscall.Errno
	stay  bool
}{{crashtest.Kill, 0, false}, {crashtest.Torn, 0, false}, {crashtest.Fail, syscall.ENOSPC, false},
	{crashtest.Fail, syscall.EIO, false}, {crashtest.Fail, syscall.ENOSPC, true}}

func TestDurableSurvivesEverything(t *testing.T) {
	for name, files := range map[string]int{"write one": 0, "locked update": 0, "apply 4": 4, "apply 16": 16} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done, r := run(t, program(t, name, crashtest.None, 0), nil)
			_, tree, err := crashtest.TreeHash(done.Root)
			if err != nil || r.Exit != 0 {
				t.Fatal(r.Exit, err)
			}
			for _, f := range crashtest.Lint(r.Calls, temporary) {
				t.Error(f)
			}
			for _, m := range strikes {
				if files == 16 && m.mode == crashtest.Fail && !m.stay {
					continue // as with 4; only when all is lost do many files differ
				}
				spec := program(t, name, m.mode, m.errno)
				stay := func() (crashtest.Spec, error) { s, err := spec(); s.Stay = m.stay; return s, err }
				n, err := crashtest.Every(t.Context(), stay, func(s crashtest.Spec, r crashtest.Result) error {
					if err := consistent(s, r, files); err != nil {
						return err
					}
					return afterwards(t.Context(), s, tree)
				})
				if err != nil || n < 1 {
					t.Errorf("%s %v after %d points: %v", m.mode, m.errno, n, err)
				}
			}
		})
	}
}

// consistent checks what is left of one run: whole files, the new ones first, success only if all is new, and no
// temporary files after an error.
func consistent(s crashtest.Spec, r crashtest.Result, files int) error {
	names := []string{"a/f"}
	if files > 0 {
		names = nil
		for i := range files {
			names = append(names, fmt.Sprintf("f%d", i))
		}
	}
	behind := false
	for _, f := range names {
		isNew, err := whole(s.Root, f)
		if err != nil {
			return err
		}
		if isNew && behind {
			return fmt.Errorf("%s is new, and one before it is old", f)
		}
		behind = behind || !isNew
	}
	if r.Exit == 0 && behind {
		return errors.New("success was reported, but files are old")
	}
	if s.Mode == crashtest.Fail {
		if litter, _ := os.ReadDir(filepath.Join(s.Root, tmp)); len(litter) > 0 {
			return fmt.Errorf("left %v after an error: %s", litter, r.Stderr)
		}
		if r.Exit == 0 && r.Struck && !tolerates(r) {
			return fmt.Errorf("a call failed and nothing was said of it")
		}
	}
	return nil
}

// tolerates: package os tries to remove a name as a file, then as a folder. The second try is the one that matters.
func tolerates(r crashtest.Result) bool {
	bad := slices.IndexFunc(r.Calls, func(c crashtest.Call) bool { return c.Err == syscall.EIO })
	return bad >= 0 && r.Calls[bad].Op == crashtest.Remove && slices.ContainsFunc(r.Calls[bad:], func(c crashtest.Call) bool {
		return c.Op == crashtest.Remove && c.Path == r.Calls[bad].Path && c.Err == 0
	})
}

func TestMutantsAreCaught(t *testing.T) {
	for _, name := range []string{"mutant in place", "mutant remove first"} {
		var caught []crashtest.Mode
		for _, m := range strikes[:3] {
			_, err := crashtest.Every(t.Context(), program(t, name, m.mode, m.errno), func(s crashtest.Spec, r crashtest.Result) error {
				_, err := whole(s.Root, "a/f")
				return err
			})
			if err != nil {
				caught = append(caught, m.mode)
			}
		}
		if len(caught) == 0 {
			t.Errorf("%s was not caught", name)
		}
	}
	for name, rule := range map[string]string{
		"mutant no sync": crashtest.UnsyncedRename, "mutant no folder sync": crashtest.UnsyncedFolder,
	} {
		_, r := run(t, program(t, name, crashtest.None, 0), nil)
		found := crashtest.Lint(r.Calls, nil)
		if len(found) != 1 || found[0].Rule != rule {
			t.Errorf("%s: found %v, want one %s", name, found, rule)
		}
	}
}

func BenchmarkPoint(b *testing.B) {
	spec := program(b, "write one", crashtest.Kill, 0)
	for b.Loop() {
		run(b, spec, func(s *crashtest.Spec) { s.K = 5 })
	}
}

func BenchmarkPlainRun(b *testing.B) {
	spec := program(b, "write one", crashtest.None, 0)
	for b.Loop() {
		run(b, spec, nil)
	}
}

// TestRunLeavesOtherChildrenAlone starts ordinary children all the time while programs are traced: a tracer that came
// to a thread which had forked before would reap them.
func TestRunLeavesOtherChildrenAlone(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if out, err := exec.Command("sh", "-c", ":; exit 0").CombinedOutput(); err != nil {
					t.Errorf("an ordinary child: %v %s", err, out)
					return
				}
			}
		})
	}
	spec := program(t, "look", crashtest.None, 0)
	for range 20 {
		if _, r := run(t, spec, nil); r.Exit != 7 {
			t.Errorf("exit code %d", r.Exit)
		}
	}
	stop()
	wg.Wait()
}
