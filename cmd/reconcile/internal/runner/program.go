package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
)

// Program is a program that checks code: no effect of the tree, so without a claim, a lease and a record.
type Program struct {
	Argv    []string
	Path    string   // its file; "": as the PATH of Environ has it
	Dir     string   // where it runs, absolute
	Environ []string // of this process; it sees what commands see, and the variables of Pass
	Pass    []string // names of further variables that it sees
	Set     []string // further variables, as NAME=VALUE
	Timeout time.Duration
	Limit   int   // of each stream, in bytes
	Hold    *Hold // by which it can be found after this process was killed; nil: it cannot
	// Host confines it by Policy; with a nil Policy it is not confined.
	Host   *sandbox.Host
	Policy *sandbox.Policy
}

// Ended is how a Program ended.
type Ended struct {
	NotStarted error
	TimedOut   bool   // it took longer than its Timeout, and was killed with all of its group
	Signal     string // that ended it, if not that kill
	Exit       int
	Stdout     []byte
	Stderr     []byte
	Truncated  bool // a stream was larger than Limit
	Took       time.Duration
}

// outputTime is how long the output of a program may stay open after its end.
const outputTime = time.Second

// Run runs the program to its end. An error says that ctx ended.
func (p Program) Run(ctx context.Context) (e Ended, err error) {
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	env := baseEnv(p.Environ)
	for _, name := range p.Pass {
		if v := lookup(p.Environ, name); v != "" {
			env = set(env, name+"="+v)
		}
	}
	for _, kv := range p.Set {
		env = set(env, kv)
	}
	file := p.Path
	if file == "" {
		if file, err = findProgram(p.Argv[0], p.Dir, lookup(env, "PATH")); err != nil {
			return Ended{NotStarted: err}, nil
		}
	}
	stdout, stderr := &bounded{limit: p.Limit}, &bounded{limit: p.Limit}
	cmd := exec.CommandContext(limited, file)
	cmd.Args, cmd.Dir, cmd.Env, cmd.WaitDelay = p.Argv, p.Dir, env, outputTime
	cmd.Stdout, cmd.Stderr = stdout, stderr
	apart(cmd)
	if p.Hold != nil {
		mark, file := p.Hold.mark()
		if cmd.Env = set(env, mark); file != nil {
			cmd.ExtraFiles = []*os.File{file}
		}
	}
	start := time.Now()
	confined, err := p.start(cmd, file)
	if err != nil {
		return Ended{NotStarted: err}, ctx.Err()
	}
	defer confined.Close()
	err = cmd.Wait()
	e = Ended{Stdout: stdout.kept.Bytes(), Stderr: stderr.kept.Bytes(), Truncated: stdout.over || stderr.over, Took: time.Since(start)}
	if err := ctx.Err(); err != nil {
		return e, err
	}
	e.TimedOut = limited.Err() != nil && err != nil
	if status := cmd.ProcessState; status != nil && !e.TimedOut {
		if e.Exit = status.ExitCode(); e.Exit < 0 {
			e.Signal = status.String()
		}
		if e.Exit == 1 {
			e.NotStarted = confined.Executed(file) // the sandbox itself may have failed
		}
	}
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay) && !e.TimedOut {
		e.NotStarted = err
	}
	return e, nil
}

// start starts the command, confined by the policy; a nil policy confines nothing.
func (p Program) start(cmd *exec.Cmd, file string) (*sandbox.Confined, error) {
	if p.Policy == nil {
		return nil, cmd.Start()
	}
	return p.Host.Start(*p.Policy, file, p.Argv, func(path string, argv []string, more []*os.File) error {
		cmd.Path, cmd.Args, cmd.ExtraFiles = path, argv, append([]*os.File{nil}, more...)
		return cmd.Start()
	})
}

// Confine returns the policy of a program that may write below some folders only, and connect to nothing where that can be limited. level is
// one of schemas' levels, but not none.
func Confine(host *sandbox.Host, level string, write ...string) (*sandbox.Policy, error) {
	found := host.Support(level)
	if found.Missing != "" {
		return nil, fmt.Errorf("the sandbox %s is not available here: %s", level, found.Missing)
	}
	p := &sandbox.Policy{Level: level, Limited: found.Network}
	for _, folder := range write {
		real, err := filepath.EvalSymlinks(folder)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p.Write = append(p.Write, real)
	}
	return p, nil
}

// bounded keeps the beginning of its input. It embeds no buffer, whose ReadFrom io.Copy would prefer to Write.
type bounded struct {
	kept  bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(data []byte) (int, error) {
	n := len(data)
	if room := b.limit - b.kept.Len(); n > room {
		b.over = true
		data = data[:max(room, 0)]
	}
	b.kept.Write(data)
	return n, nil
}

// Remove replaces the secrets in b.
func (s *Secrets) Remove(b []byte) []byte { return s.remove(b) }
