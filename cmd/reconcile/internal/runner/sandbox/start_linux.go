package sandbox

import (
	"bytes"
	"cmp"
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

	"reconcile.dev/reconcile/schemas"
)

// firstFD is the number of the first descriptor in more of a [Spawn]: 0 to 2 are the standard streams, 3 is the caller's.
const firstFD = 4

// statusLimit bounds the length of bubblewrap's reports.
const statusLimit = 4096

// Confined is a program that was started by [Host.Start]. A nil one is a program that was executed for sure.
type Confined struct {
	status *os.File // where bubblewrap reports
}

// Start starts the program at path with argv, confined: it calls spawn once, for the program or for bubblewrap. An error is spawn's, or
// says why the program cannot be confined.
func (h *Host) Start(p Policy, path string, argv []string, spawn Spawn) (*Confined, error) {
	rules, err := p.ruleset()
	if err != nil {
		return nil, err
	}
	defer rules.close()
	if p.Level != schemas.SandboxBwrap {
		return nil, rules.enforced(func() error { return spawn(path, argv, nil) })
	}
	bwrap, err := h.bwrap()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	wrapped := slices.Concat([]string{"bwrap", "--json-status-fd", strconv.Itoa(firstFD)}, p.bwrapArgs(), []string{"--", path}, argv[1:])
	if err := rules.enforced(func() error { return spawn(bwrap, wrapped, []*os.File{w}) }); err != nil {
		r.Close()
		return nil, err
	}
	return &Confined{status: r}, nil
}

// Executed returns an error if the process has ended with exit code 1 and the program at path was never executed. One of the system is
// about the program; else the process printed why.
func (c *Confined) Executed(path string) error {
	if c == nil {
		return nil
	}
	status, err := io.ReadAll(io.LimitReader(c.status, statusLimit))
	if err != nil || bytes.Contains(status, []byte(`"exit-code"`)) {
		return err
	}
	return cmp.Or(executable(path), errors.New("the sandbox could not be made, or the program could not be executed there: the log says why; "+
		"reconcile doctor says what is available"))
}

// executable returns an error of the system unless path is an executable program.
func executable(path string) error {
	fi, err := os.Stat(path)
	if err == nil && (!fi.Mode().IsRegular() || fi.Mode()&0o111 == 0) {
		err = &os.PathError{Op: "exec", Path: path, Err: syscall.EACCES}
	}
	return err
}

// Close releases what belongs to the started process. A second call does nothing.
func (c *Confined) Close() {
	if c != nil {
		c.status.Close()
	}
}

// bwrap returns the path of bubblewrap.
func (h *Host) bwrap() (string, error) {
	if h.tried != "" {
		return h.tried, nil
	}
	for dir := range strings.SplitSeq(h.path, string(filepath.ListSeparator)) {
		p := filepath.Join(dir, "bwrap")
		if filepath.IsAbs(dir) && executable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("bubblewrap is not installed: %w", exec.ErrNotFound)
}

// bwrapArgs are bubblewrap's arguments. Parents precede their descendants, so that the deepest path decides.
func (p *Policy) bwrapArgs() []string {
	// Without a user namespace of its own, a root user reaches other sandboxes, and with capabilities it can mount.
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
	if p.Read == nil && p.worksInShared() {
		mounts = append(mounts, mount{"--ro-bind", sharedMemory})
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

// sharedMemory is where programs share memory: confined ones may write there, and bubblewrap gives them an empty one.
const sharedMemory = "/dev/shm"

// worksInShared reports whether the program works on files below sharedMemory, which is then protected like other folders.
func (p *Policy) worksInShared() bool {
	return slices.ContainsFunc(p.Write, func(path string) bool { return strings.HasPrefix(path+"/", sharedMemory+"/") })
}

// devices are the paths of all devices, and of sharedMemory unless the program works there.
func (p *Policy) devices() []string {
	if !p.worksInShared() {
		return []string{"/dev"}
	}
	var paths []string
	entries, _ := os.ReadDir("/dev")
	for _, e := range entries {
		if path := "/dev/" + e.Name(); path != sharedMemory && e.Type()&os.ModeSymlink == 0 {
			paths = append(paths, path)
		}
	}
	return paths
}

// systemPaths are the folders with programs, libraries and settings.
func systemPaths() []string {
	return []string{"/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/run", "/sbin", "/sys", "/usr", "/var/lib"}
}
