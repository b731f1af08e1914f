package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"reconcile.dev/reconcile/schemas"
)

// probeTime bounds a probe.
const probeTime = 10 * time.Second

// probe tries a level out.
func (h *Host) probe(level string) Support {
	s := Support{Level: level}
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		abi = 0
	}
	if level == schemas.SandboxLandlock && abi < oldestABI {
		s.Missing = tooOld(abi).Error()
		return s
	}
	s.Network = abi >= netABI
	if err := h.try(level, s.Network); err != nil {
		s.Missing, s.Network = err.Error(), false
	}
	return s
}

// try runs a confined program that does what it may and what it must not.
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
	p, args := Policy{Level: level, Write: []string{yours}}, []string{"reconcile", probeName, yours, ours}
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
	c, err := h.Command(p, "/proc/self/exe", args)
	if err != nil {
		return err
	}
	if err := c.run(); err != nil {
		return err
	}
	if kept, err := os.ReadFile(filepath.Join(ours, "file")); err != nil || string(kept) != "kept" {
		return errors.New("a file that it must not write was changed")
	}
	return nil
}

// run runs the command of a probe.
func (c *Command) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, c.Path)
	cmd.Args, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.Argv, &out, &out, time.Second
	cmd.ExtraFiles = append([]*os.File{nil}, c.Files...)
	defer c.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	started := c.Started()
	err := cmd.Wait()
	text, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	switch {
	case err == nil && started == nil:
		return nil
	case text != "":
		return errors.New(text)
	}
	return errors.Join(started, err)
}

// attempts does what a confined program may do, and then what it must not, and returns the exit code. args are a folder that it may
// write, one that it must not, and the same for addresses.
func attempts(args []string) int {
	if len(args) < 2 {
		return 1
	}
	must := func(what string, err error) bool {
		if err != nil {
			fmt.Printf("it could not %s: %v\n", what, err)
		}
		return err == nil
	}
	mustNot := func(what string, err error) bool {
		if err == nil {
			fmt.Printf("it could %s\n", what)
		}
		return err != nil
	}
	yours, ours := args[0], args[1]
	ok := must("write a file", os.WriteFile(filepath.Join(yours, "file"), []byte("x"), 0o600)) &&
		must("make a folder", os.Mkdir(filepath.Join(yours, "folder"), 0o700)) &&
		must("move a file", os.Rename(filepath.Join(yours, "file"), filepath.Join(yours, "folder", "file"))) &&
		must("write to /dev/null", os.WriteFile(os.DevNull, []byte("x"), 0)) &&
		must("read a file", readable(filepath.Join(ours, "file"))) &&
		mustNot("make a file outside", os.WriteFile(filepath.Join(ours, "new"), nil, 0o600)) &&
		mustNot("write a file outside", os.WriteFile(filepath.Join(ours, "file"), []byte("x"), 0o600)) &&
		mustNot("truncate a file outside", os.Truncate(filepath.Join(ours, "file"), 0)) &&
		mustNot("remove a file outside", os.Remove(filepath.Join(ours, "file")))
	if ok && len(args) > 3 {
		ok = must("connect to a port", dial(args[2])) && mustNot("connect to another port", dial(args[3]))
	}
	if !ok {
		return 1
	}
	return 0
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
