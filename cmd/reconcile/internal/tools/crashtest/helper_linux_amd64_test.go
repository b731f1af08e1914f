package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
)

const (
	tmp = ".reconcile/tmp"
	old = "old content, of some length\n"
	new = "new content, which is longer than the old one was\n"
)

// TestMain makes the test binary the program under test when it is told which one to be.
func TestMain(m *testing.M) {
	name := os.Getenv("CRASHTEST_PROGRAM")
	if name == "" {
		os.Exit(onTmpfs(m))
	}
	root, err := os.OpenRoot(".")
	if err == nil {
		err = programs[name](root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// onTmpfs runs the tests with their folders in memory where there is such a place: thousands of files come and go.
func onTmpfs(m *testing.M) int {
	if dir, err := os.MkdirTemp("/dev/shm", "crashtest"); err == nil {
		defer os.RemoveAll(dir)
		os.Setenv("TMPDIR", dir)
	}
	return m.Run()
}

// programs run in the fixture. Those whose name begins with "mutant" do it wrong.
var programs = map[string]func(*os.Root) error{
	"write one": func(root *os.Root) error {
		return errors.Join(durable.Sweep(root, tmp), durable.WriteFile(root, tmp, "a/f", []byte(new)))
	},
	"apply 4": func(root *os.Root) error {
		return errors.Join(durable.Sweep(root, tmp), durable.Apply(root, tmp, batch(4)))
	},
	"apply 16": func(root *os.Root) error {
		return errors.Join(durable.Sweep(root, tmp), durable.Apply(root, tmp, batch(16)))
	},
	"locked update": func(root *os.Root) error {
		waits := func(context.Context, time.Duration) error { return errors.New("it waits for a dead one") }
		update := func([]byte) ([]byte, error) { return []byte(new), nil }
		return errors.Join(durable.Sweep(root, tmp),
			lock.Update(context.Background(), root, "a/f", lock.Options{Sleep: waits}, update))
	},

	"mutant in place": func(root *os.Root) error { return root.WriteFile("a/f", []byte(new), 0o644) },
	"mutant remove first": func(root *os.Root) error {
		_ = root.Remove("a/f")
		return durable.WriteFile(root, tmp, "a/f", []byte(new))
	},
	"mutant no sync": func(root *os.Root) error {
		if err := root.WriteFile("a/f.tmp", []byte(new), 0o644); err != nil {
			return err
		}
		if err := root.Rename("a/f.tmp", "a/f"); err != nil {
			return err
		}
		return syncFile(root, "a")
	},
	"mutant no folder sync": func(root *os.Root) error {
		if err := root.WriteFile("a/f.tmp", []byte(new), 0o644); err != nil {
			return err
		}
		if err := syncFile(root, "a/f.tmp"); err != nil {
			return err
		}
		return root.Rename("a/f.tmp", "a/f")
	},

	"look":    look,
	"threads": threads,
	"shell": func(*os.Root) error {
		return exec.Command("sh", "-c", "echo x > made; (mv made moved); cat moved; rm moved").Run()
	},
	"hang": func(root *os.Root) error {
		_ = root.WriteFile("begun", nil, 0o644)
		return exec.Command("sleep", "600").Run()
	},
}

// batch replaces f0, f1 … and removes the folder "gone".
func batch(n int) []durable.Op {
	ops := []durable.Op{{Path: "gone/f", Stop: "."}}
	for i := range n {
		ops = append(ops, durable.Op{Path: "f" + strconv.Itoa(i), Data: []byte(new)})
	}
	return ops
}

func syncFile(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// look makes one call of each kind, and some that do not count.
func look(root *os.Root) error {
	fmt.Println("to stdout")
	steps := []func() error{
		func() error { return root.Mkdir("d", 0o755) },
		func() error { return root.WriteFile("d/f", []byte("12345"), 0o644) },
		func() error { return root.Rename("d/f", "d/g") },
		func() error { return root.Link("d/g", "d/h") },
		func() error { return os.Symlink("nowhere", "d/s") },
		func() error { return root.Chmod("d/g", 0o600) },
		func() error { return os.Truncate("d/g", 2) },
		func() error { return syncFile(root, "d") },
		func() error { return root.Remove("d/h") },
		func() error { return os.WriteFile(os.DevNull, []byte("outside"), 0o644) },
		func() error { _, err := root.ReadFile("d/g"); return err },
		func() error { _ = root.Mkdir("d", 0o755); return nil }, // fails
		func() error { _ = syscall.Unlink("d/h"); return nil },  // fails
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "to stderr")
	os.Exit(7)
	return nil
}

func threads(root *os.Root) error {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				_ = root.WriteFile(fmt.Sprintf("t%d", i), []byte(strings.Repeat("x", j)), 0o644)
			}
		})
	}
	wg.Wait()
	return nil
}
