//go:build unix

package runner

import (
	"os/exec"
	"syscall"
)

// apart gives a command a session of its own, so that it has no terminal, and ends all of it when it is cancelled.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
