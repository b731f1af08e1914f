package runner

import (
	"os"
	"os/exec"
	"path/filepath"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// StartSetup starts a program that prepares the workspace at top, confined as the programs of the run will be: what it runs is part of
// the commit, which an agent may have made. It may connect to anything, since it fetches what the work depends on.
func (a *attempt) StartSetup(cmd *exec.Cmd, top string) error {
	apart(cmd)
	s := a.task.Sandbox
	if w := a.task.Workspace; w.Setup != nil {
		s = w.Setup
	}
	if s == nil {
		return cmd.Start()
	}
	found, err := a.runner.o.Sandbox.Choose(&s.Sandbox)
	if err != nil {
		return err
	}
	if found.Level == schemas.SandboxNone {
		return cmd.Start()
	}
	p := sandbox.Policy{Level: found.Level}
	if top, err = realPath(top); err != nil {
		return err
	}
	if err := a.makeScratch(); err != nil {
		return err
	}
	owner := setupsCache
	if a.task.Workspace.Kind == settle.CheckWorkspace {
		owner = ""
	}
	cache, err := a.cache(owner)
	if err != nil {
		return err
	}
	p.Write = []string{top, a.scratch, cache}
	if s.Read != nil {
		p.Read = a.readable(s.Read)
	}
	cmd.Env = set(cmd.Env, "TMPDIR="+a.scratch)
	for name, folder := range map[string]string{"XDG_CACHE_HOME": "", "npm_config_cache": "npm", "GOMODCACHE": "gomod", "CARGO_HOME": "cargo"} {
		cmd.Env = set(cmd.Env, name+"="+filepath.Join(cache, folder))
	}
	return a.startIn(p, cmd)
}

// startIn starts a command in a sandbox. Its first extra file is the lease, or nil.
func (a *attempt) startIn(p sandbox.Policy, cmd *exec.Cmd) error {
	program, err := findProgram(cmd.Args[0], cmd.Dir, lookup(cmd.Env, "PATH"))
	if err != nil {
		return err
	}
	return a.confineProgram(p, program, cmd.Args, func(path string, argv []string, more []*os.File) error {
		if len(cmd.ExtraFiles) == 0 {
			cmd.ExtraFiles = []*os.File{nil}
		}
		cmd.Path, cmd.Args, cmd.Err = path, argv, nil
		cmd.ExtraFiles = append(cmd.ExtraFiles, more...)
		return cmd.Start()
	})
}
