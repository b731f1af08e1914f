package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/state/regular"
)

// EndsOrphans says that EndOrphans ends what is left of programs.
const EndsOrphans = true

// AdoptOrphans makes this process the parent of all processes that its programs leave running, also of those that leave their group.
func AdoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of what the tools leave running: %w", err)
	}
	return nil
}

// EndOrphans kills all children of this process, until there are none. Nothing else may wait for a child.
func EndOrphans() error {
	for deadline := time.Now().Add(orphansTime); ; time.Sleep(time.Millisecond) {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		for err == nil && pid > 0 || errors.Is(err, unix.EINTR) {
			pid, err = unix.Wait4(-1, nil, unix.WNOHANG, nil)
		}
		if errors.Is(err, unix.ECHILD) {
			return nil
		}
		if err != nil || time.Now().After(deadline) {
			return errors.Join(err, errors.New("a program that a tool left running could not be ended"))
		}
		for _, child := range children() {
			_ = unix.Kill(child, unix.SIGKILL) // it may have ended
		}
	}
}

// orphansTime is how long EndOrphans tries.
const orphansTime = 10 * time.Second

// children lists the children of this process.
func children() (out []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range stats {
		text, err := regular.ReadPath(p)
		_, after, ok := strings.Cut(string(text[strings.LastIndex(string(text), ")")+1:]), " ") // state, parent, …
		fields := strings.Fields(after)
		if err != nil || !ok || len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
