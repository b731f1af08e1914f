//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestForkExecBusy: a program that somebody still holds open for writing is started as soon as that ends.
func TestForkExecBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("#!/bin/sh\nexit 3\n"); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*time.Millisecond, func() { f.Close() })
	pid, err := forkExec(path, []string{path}, &syscall.ProcAttr{Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	ws, err := wait4(pid)
	if err != nil || ws.ExitStatus() != 3 {
		t.Errorf("it ended with %v, %v; want exit code 3", ws, err)
	}
}
