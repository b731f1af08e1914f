package filelock_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"reconcile.dev/reconcile/state/filelock"
)

// holdEnv names the file that this test program locks until it is killed.
const holdEnv = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	name := os.Getenv(holdEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := os.Open(name)
	if err != nil {
		panic(err)
	}
	l, err := filelock.Wait(f)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("locked\n")
	io.Copy(io.Discard, os.Stdin) // until it is killed
	runtime.KeepAlive(l)
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	a, b := open(t, name), open(t, name)
	if filelock.Held(a) || filelock.Held(b) {
		t.Error("a lock that nobody took is held")
	}
	l, err := filelock.Try(a)
	if l == nil || err != nil {
		t.Fatalf("%v, %v", l, err)
	}
	if again, err := filelock.Try(b); again != nil || err != nil {
		t.Errorf("taken twice: %v, %v", again, err)
	}
	if _, err := a.WriteString("content"); err != nil || !filelock.Held(b) || !filelock.Held(b) {
		t.Errorf("%v; held: %v", err, filelock.Held(b))
	}
	if text, err := os.ReadFile(name); string(text) != "content" || err != nil {
		t.Errorf("what is locked reads as %q, %v", text, err)
	}
	if err := l.Unlock(); err != nil || filelock.Held(b) {
		t.Errorf("%v; held: %v", err, filelock.Held(b))
	}
	if l, err = filelock.Wait(b); err != nil || !filelock.Held(a) {
		t.Errorf("%v; held: %v", err, filelock.Held(a))
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

// TestReplaced: only the file that was opened is locked, not one that came to its name since.
func TestReplaced(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	f := open(t, name)
	for _, step := range []func() error{
		func() error { return os.Rename(name, filepath.Join(dir, "g")) },
		func() error { return os.WriteFile(name, nil, 0o644) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if l, err := filelock.Try(f); l != nil || !errors.Is(err, filelock.ErrReplaced) {
			t.Errorf("locked: %v, %v", l, err)
		}
		if l, err := filelock.Wait(f); l != nil || !errors.Is(err, filelock.ErrReplaced) {
			t.Errorf("locked: %v, %v", l, err)
		}
		if !filelock.Held(f) {
			t.Error("what cannot be told is said to be free")
		}
	}
	other := open(t, name)
	if l, err := filelock.Try(other); l == nil || err != nil {
		t.Errorf("the lock of the other file was kept: %v, %v", l, err)
	}
}

// TestKilled: the lock of a process that is killed is free, and a command that it started does not have it.
func TestKilled(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f := open(t, name)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(self)
	holder.Env = append(os.Environ(), holdEnv+"="+name)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.StdinPipe(); err != nil { // which the holder reads from
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "locked\n" || err != nil || !filelock.Held(f) {
		t.Errorf("%q, %v; held: %v", line, err, filelock.Held(f))
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	if l, err := filelock.Wait(f); err != nil || l == nil {
		t.Errorf("the lock of a killed process: %v", err)
	}
}
