//go:build unix

package versions

import (
	"os/exec"
	"syscall"
)

// endTogether lets what a program started end with it when its time is over.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
