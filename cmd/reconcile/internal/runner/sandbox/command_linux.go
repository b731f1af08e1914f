package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// The descriptors of a command: 0 to 2 are the standard streams, 3 is the caller's, then follow Command.Files.
const (
	reportFD  = 4
	programFD = 5
)

// startTime bounds the time that a sandbox may take to be made.
const startTime = 30 * time.Second

// Command is a command that starts a confined program.
type Command struct {
	Path string
	Argv []string
	// Files are the descriptors of the command from 4 on.
	Files []*os.File

	report *os.File // where the helper reports
}

// Command returns a command that starts the program at path with argv, confined. The caller starts it, calls Started, and then Close.
func (h *Host) Command(p Policy, path string, argv []string) (*Command, error) {
	policy, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	helper := slices.Concat([]string{"reconcile", helperName, string(policy), path}, argv)
	c := &Command{Path: "/proc/self/exe", Argv: helper}
	if p.Level == schemas.SandboxBwrap {
		bwrap, err := h.bwrap()
		if err != nil {
			return nil, err
		}
		program := "/proc/self/fd/" + strconv.Itoa(programFD)
		c.Path, c.Argv = bwrap, slices.Concat([]string{"bwrap"}, p.bwrapArgs(), []string{"--", program}, helper[1:])
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.report, c.Files = r, []*os.File{w}
	if p.Level == schemas.SandboxBwrap {
		self, err := os.Open("/proc/self/exe")
		if err != nil {
			c.Close()
			return nil, err
		}
		c.Files = append(c.Files, self)
	}
	return c, nil
}

// Close closes all files. A second call does nothing.
func (c *Command) Close() {
	for _, f := range append(c.Files, c.report) {
		f.Close()
	}
}

// Started waits until the started command has become the program. The error says why it did not; one of the system is about the
// program.
func (c *Command) Started() error {
	for _, f := range c.Files {
		f.Close() // the command has its own
	}
	if err := c.report.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(c.report, 4096))
	switch text, failed := strings.CutPrefix(string(b), confined); {
	case err != nil:
		return fmt.Errorf("the sandbox was not made in %s: %w", startTime, err)
	case !failed && text == "":
		return errors.New("the sandbox could not be made; reconcile doctor says what is available")
	case !failed:
		return fmt.Errorf("the sandbox could not be made: %s", text)
	case text != "":
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New(text)
		}
		return syscall.Errno(n)
	}
	return nil
}

// bwrap returns the path of bubblewrap.
func (h *Host) bwrap() (string, error) {
	for dir := range strings.SplitSeq(h.path, string(filepath.ListSeparator)) {
		p := filepath.Join(dir, "bwrap")
		if fi, err := os.Stat(p); filepath.IsAbs(dir) && err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("bubblewrap is not installed: %w", exec.ErrNotFound)
}

// bwrapArgs are bubblewrap's arguments. Parents come before what is below them, so that the deepest path decides.
func (p *Policy) bwrapArgs() []string {
	// Without a user namespace of its own, a root user reaches other sandboxes, and with capabilities it mounts anew.
	args := []string{"--unshare-user", "--cap-drop", "ALL"}
	if p.Read == nil {
		args = append(args, "--ro-bind", "/", "/")
	}
	type mount struct{ how, path string }
	var mounts []mount
	if p.Read != nil {
		for _, path := range slices.Concat(systemPaths(), p.Read) {
			mounts = append(mounts, mount{"--ro-bind-try", path})
		}
	}
	for _, path := range p.Write {
		mounts = append(mounts, mount{"--bind", path})
	}
	for _, path := range p.Shield {
		mounts = append(mounts, mount{"--ro-bind-try", path})
	}
	slices.SortStableFunc(mounts, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	proc := "--bind" // programs write to their own files there
	if os.Geteuid() == 0 {
		proc = "--ro-bind" // a root user could write settings of the kernel
	}
	args = append(args, "--dev", "/dev", proc, "/proc", "/proc")
	for _, m := range mounts {
		args = append(args, m.how, m.path, m.path)
	}
	return args
}

// systemPaths are the folders with programs, libraries and settings.
func systemPaths() []string {
	return []string{"/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/run", "/sbin", "/sys", "/usr", "/var/lib"}
}
