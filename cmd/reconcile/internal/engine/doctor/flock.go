package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockFile     = ".reconcile/tmp/doctor-flock"
	flockWait    = 10 * time.Second // for a process to start, and for a lock to be released
	held         = "held"
	flockTestFix = "do not let several processes work on this tree; move it to a local disk"
)

// Hold locks the named file, reports this on w, and holds the lock until r ends. It is the other process in the test of
// checkFlock.
func Hold(name string, r io.Reader, w io.Writer) error {
	l := flock.New(name)
	switch got, err := l.TryLock(); {
	case err != nil:
		return fmt.Errorf("lock %s: %w", name, err)
	case !got:
		return fmt.Errorf("lock %s: somebody else has it", name)
	}
	if _, err := fmt.Fprintln(w, held); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, r)
	return errors.Join(err, l.Close())
}

// checkFlock tests with two processes what every lock depends on: the kernel gives it to only one of them, and releases
// it when its holder dies.
func checkFlock(ctx context.Context, e *Patient) []Finding {
	switch {
	case len(e.Hold) == 0:
		return skipped("there is no second process to test with")
	case !e.isTree():
		return skipped("this is not a tree yet")
	}
	name := fmt.Sprintf("%s-%d", lockFile, os.Getpid())
	if err := e.writeScratch(name); err != nil {
		return skipped(err.Error())
	}
	defer e.root.Remove(name)
	if err := e.testFlock(ctx, filepath.Join(e.Dir, filepath.FromSlash(name))); err != nil {
		return []Finding{bad(err.Error(), flockTestFix)}
	}
	return ok("two processes exclude each other, and the death of one frees its lock")
}

func (e *Patient) testFlock(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, flockWait)
	defer cancel()
	argv := append(slices.Clone(e.Hold), name)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = e.Environ
	in, err1 := cmd.StdinPipe() // kept open: the other process ends when it is killed, or when this one dies
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return fmt.Errorf("the test of locks cannot start: %w", err)
	}
	defer in.Close()
	err := e.whileHeld(name, out)
	// Killed and not terminated: the test is whether the kernel cleans up.
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // reports only the kill
	if err != nil {
		return err
	}
	l := flock.New(name)
	if _, err := l.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return fmt.Errorf("a lock outlived its holder: %w", err)
	}
	return l.Close()
}

// whileHeld waits until the other process has the lock, and then tries to take it.
func (e *Patient) whileHeld(name string, out io.Reader) error {
	line, err := bufio.NewReader(out).ReadString('\n')
	switch {
	case err != nil:
		return fmt.Errorf("the other process of the lock test said %q, and ended: %w", line, err)
	case line != held+"\n":
		return fmt.Errorf("the other process of the lock test said %q", line)
	}
	l := flock.New(name)
	got, err := l.TryLock()
	if err == nil && got {
		return errors.Join(errors.New("two processes got the same lock: locks do not work on this file system"), l.Close())
	}
	if err != nil {
		return fmt.Errorf("locks do not work on this file system: %w", err)
	}
	return nil
}
