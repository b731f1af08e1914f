package proc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// tag hashes the boot id and the pid and time namespaces: the last because start times are shifted inside one. It is
// empty if /proc is missing or shows another namespace than that of this process's ID.
func tag() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	me, _ := os.Readlink("/proc/self")
	ns, nserr := os.Readlink("/proc/self/ns/pid")
	if err != nil || nserr != nil || me != strconv.Itoa(os.Getpid()) {
		return ""
	}
	clock, _ := os.Readlink("/proc/self/ns/time") // kernels before 5.6 have none
	sum := sha256.Sum256([]byte(string(boot) + ns + clock))
	return hex.EncodeToString(sum[:8])
}

// started reads field 22 of /proc/PID/stat, in clock ticks since boot, and whether the process is a zombie (proc(5)). The
// name in field 2 may hold anything, so fields are counted from its closing parenthesis.
func started(pid int) (start int64, zombie bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return 0, false
	}
	start, _ = strconv.ParseInt(string(f[19]), 10, 64)
	return start, f[0][0] == 'Z' || f[0][0] == 'X'
}

// missing asks the kernel and not /proc, which may be mounted so that it hides the processes of other users.
func missing(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
