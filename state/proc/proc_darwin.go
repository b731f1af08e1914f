package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

const zombieState = 5 // SZOMB of <sys/proc.h>

func tag() string {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return boot
}

// started returns microseconds since the epoch.
func started(pid int) (start int64, zombie bool) {
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, false
	}
	at := kp.Proc.P_starttime
	return at.Sec*1e6 + int64(at.Usec), kp.Proc.P_stat == zombieState
}

func missing(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
