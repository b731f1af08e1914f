package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

const (
	// probeName is the first argument of this program where it is that of a probe.
	probeName = "__probe"
	// probeTime bounds a probe.
	probeTime = 10 * time.Second
)

// probe tries a level out.
func (h *Host) probe(level string) Support {
	s := Support{Level: level}
	version := abi()
	if level == schemas.SandboxLandlock && version < oldestABI {
		s.Missing = tooOld(version).Error()
		return s
	}
	s.Network = version >= netABI
	if err := h.try(level, s.Network); err != nil {
		s.Missing, s.Network = err.Error(), false
	} else if level == schemas.SandboxBwrap {
		s.Program, _ = h.bwrap() // as it was tried
	}
	return s
}

// try runs a confined program that attempts allowed and forbidden operations.
func (h *Host) try(level string, network bool) error {
	dir, err := os.MkdirTemp("", "reconcile-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	yours, ours := filepath.Join(dir, "yours"), filepath.Join(dir, "ours")
	if err := errors.Join(os.Mkdir(yours, 0o700), os.Mkdir(ours, 0o700), os.WriteFile(filepath.Join(ours, "file"), []byte("kept"), 0o600)); err != nil {
		return err
	}
	p, args := Policy{Level: level, Write: []string{yours}}, []string{yours, ours}
	if network {
		open, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer open.Close()
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer closed.Close()
		p.Limited, p.Ports = true, []int{open.Addr().(*net.TCPAddr).Port}
		args = append(args, open.Addr().String(), closed.Addr().String())
	}
	if err := h.attempt(p, args); err != nil {
		return err
	}
	if kept, err := os.ReadFile(filepath.Join(ours, "file")); err != nil || string(kept) != "kept" {
		return errors.New("a file that it must not write was changed")
	}
	return nil
}

// attempt makes the attempts of a probe: at landlock on a thread that is confined as a program would be, at bwrap in a program.
func (h *Host) attempt(p Policy, args []string) error {
	if p.Level != schemas.SandboxBwrap {
		rules, err := p.ruleset()
		if err != nil {
			return err
		}
		defer rules.close()
		return rules.enforced(func() error { return attempts(args) })
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	said, err := h.run(p, fmt.Sprint("/proc/self/fd/", firstFD+1), append([]string{"reconcile", probeName}, args...), self)
	if err != nil && said != "" {
		return errors.New(said)
	}
	return err
}

// run runs a confined program with further descriptors, and returns the first line of its output.
func (h *Host) run(p Policy, path string, argv []string, files ...*os.File) (said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	var out strings.Builder
	var cmd *exec.Cmd
	c, err := h.Start(p, path, argv, func(path string, argv []string, more []*os.File) error {
		cmd = exec.CommandContext(ctx, path)
		cmd.Args, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = argv, &out, &out, time.Second
		cmd.ExtraFiles = slices.Concat([]*os.File{nil}, more, files)
		return cmd.Start()
	})
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err = cmd.Wait(); err != nil {
		err = errors.Join(c.Executed(path), err)
	}
	said, _, _ = strings.Cut(strings.TrimSpace(out.String()), "\n")
	return said, err
}

// Main returns if args are not those of the program of a probe. Otherwise it is that program, and ends the process.
func Main(args []string) {
	if len(args) < 2 || args[1] != probeName {
		return
	}
	if err := attempts(args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// attempts does the allowed operations of a confined program, and then the forbidden ones. args are a folder that it may write, one that it must not,
// and the same for addresses. The error is the first thing that was not as it must be.
func attempts(args []string) error {
	if len(args) < 2 {
		return errors.New("a probe has two folders")
	}
	yours, ours := args[0], args[1]
	return cmp.Or(attemptFiles(yours, ours), attemptPorts(args[2:]))
}

func attemptFiles(yours, ours string) error {
	return cmp.Or(must("write a file", os.WriteFile(filepath.Join(yours, "file"), []byte("x"), 0o600)),
		must("make a folder", os.Mkdir(filepath.Join(yours, "folder"), 0o700)),
		must("move a file", os.Rename(filepath.Join(yours, "file"), filepath.Join(yours, "folder", "file"))),
		must("write to /dev/null", os.WriteFile(os.DevNull, []byte("x"), 0)),
		must("read a file", readable(filepath.Join(ours, "file"))),
		mustNot("make a file outside", os.WriteFile(filepath.Join(ours, "new"), nil, 0o600)),
		mustNot("write a file outside", os.WriteFile(filepath.Join(ours, "file"), []byte("x"), 0o600)),
		mustNot("truncate a file outside", os.Truncate(filepath.Join(ours, "file"), 0)),
		mustNot("remove a file outside", os.Remove(filepath.Join(ours, "file"))))
}

// attemptPorts connects to the first address, which must work, and to the second one, which must not.
func attemptPorts(addresses []string) error {
	if len(addresses) < 2 {
		return nil
	}
	return cmp.Or(must("connect to a port", dial(addresses[0])), mustNot("connect to another port", dial(addresses[1])))
}

func must(what string, err error) error {
	if err != nil {
		return fmt.Errorf("it could not %s: %w", what, err)
	}
	return nil
}

func mustNot(what string, err error) error {
	if err == nil {
		return fmt.Errorf("it could %s", what)
	}
	return nil
}

func readable(path string) error {
	_, err := os.ReadFile(path)
	return err
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err == nil {
		c.Close()
	}
	return err
}
