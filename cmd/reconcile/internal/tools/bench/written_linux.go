package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// written runs a command and returns the number of bytes that it and its children passed to write and similar calls.
func written(cmd *exec.Cmd) (int64, error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	// Its counters can be read until the process is waited for.
	err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	var counters []byte
	if err == nil {
		counters, err = os.ReadFile(fmt.Sprintf("/proc/%d/io", cmd.Process.Pid))
	}
	if ended := cmd.Wait(); ended != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), ended)
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(counters)) {
		if n, ok := strings.CutPrefix(line, "wchar: "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("the system does not count what processes write: %q", counters)
}
