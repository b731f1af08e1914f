package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/worktree"
)

// scratchName is the folder for the temporary files of a confined run, in state.WorkDir. The name is short: sockets have paths of at
// most 108 bytes.
func scratchName(key string) string { return digest(key) + ".tmp" }

// confine decides how the attempt's programs are confined, and adds to their environment what depends on it.
func (a *attempt) confine() error {
	s := a.task.Sandbox
	if s == nil || a.dialogue != nil { // a conversation in this process runs no program
		return nil
	}
	found, err := a.runner.o.Sandbox.Choose(&s.Sandbox)
	if err != nil {
		return err
	}
	a.exposed = s.Default && a.place.ws == nil && found.Level == schemas.SandboxLandlock
	a.record.Sandbox = found.Level
	if found.Level == schemas.SandboxNone {
		return nil
	}
	p := &sandbox.Policy{Level: found.Level}
	if err := a.limitNetwork(p, s.Network, found.Network); err != nil {
		return err
	}
	if err := a.makeScratch(); err != nil {
		return err
	}
	if err := a.grant(p, s); err != nil {
		return err
	}
	env := set(a.command.env, "TMPDIR="+a.scratch)
	if lookup(env, "XDG_CACHE_HOME") == "" {
		cache, err := a.cache(a.job.effect.Agent)
		if err != nil {
			return asFault(err)
		}
		env, p.Write = set(env, "XDG_CACHE_HOME="+cache), append(p.Write, cache)
	}
	if a.broker, err = a.openBroker(filepath.Join(a.scratch, "reconcile")); err != nil {
		return asFault(err)
	}
	a.command.env, a.policy = set(env, HostVar+"="+a.broker.path()), p
	return nil
}

// unconfined reports whether the attempt's program could write the decisions of people: that of an agent, or one that checks what it wrote.
func (a *attempt) unconfined() bool {
	return a.exposed || a.record.Sandbox == schemas.SandboxNone || a.isAgent() && a.dialogue == nil && a.policy == nil
}

// makeScratch makes the folder for temporary files of the attempt's programs, empty.
func (a *attempt) makeScratch() error {
	scratch := path.Join(state.WorkDir, scratchName(a.job.effect.Key))
	if err := errors.Join(removeTree(a.runner.root, scratch), a.runner.root.MkdirAll(path.Join(scratch, "cache"), 0o700)); err != nil {
		return asFault(err)
	}
	a.scratch = a.runner.absolute(scratch)
	return nil
}

// setupsCache is the name of the cache of programs that prepare workspaces of commits that landed. No agent has such a name.
const setupsCache = "_setup"

// cache is the folder in which the programs of an owner keep their caches from run to run, as those of compilers: each agent has its own, so that none
// writes to a cache that somebody else trusts. "" is for programs that run what nobody has checked yet, as a check of a change does: an empty folder
// that ends with the attempt.
func (a *attempt) cache(owner string) (string, error) {
	if owner == "" {
		return filepath.Join(a.scratch, "cache"), nil
	}
	name := path.Join(state.ProgramsDir, owner)
	return a.runner.absolute(name), a.runner.useProgram(name)
}

// limitNetwork limits connections to the proxy that the agent's environment names, and to the ports of the workspace.
func (a *attempt) limitNetwork(p *sandbox.Policy, asked string, can bool) error {
	port := a.proxyPort()
	a.record.Network = schemas.NetworkOpen
	switch {
	case asked == schemas.NetworkOpen:
		return nil
	case asked == schemas.NetworkProxy && !can:
		return errors.New("sandbox.network: connections cannot be limited here: that needs version 4 of Landlock (Linux 6.7)")
	case asked == "" && (port == 0 || !can):
		return nil
	}
	a.record.Network, p.Limited = schemas.NetworkProxy, true
	if port != 0 {
		p.Ports = append(p.Ports, port)
	}
	if base, err := strconv.Atoi(lookup(a.command.env, "RECONCILE_PORT_BASE")); err == nil && base > 0 {
		for i := range a.runner.o.WorkspacePorts {
			p.Ports = append(p.Ports, base+i)
		}
	}
	return nil
}

// grant fills in what the policy grants: the folder that the agent works in, its temporary files, what its profile names and what its
// spec grants.
func (a *attempt) grant(p *sandbox.Policy, s *settle.Sandbox) error {
	p.Write = []string{a.scratch}
	if a.place.ws != nil {
		top, err := realPath(a.place.ws.Top())
		if err != nil {
			return err
		}
		p.Write = append(p.Write, top)
	} else if err := a.grantTree(p); err != nil {
		return err
	}
	for _, folder := range s.Folders {
		if err := a.grantFolder(p, a.expand(folder)); err != nil {
			return err
		}
	}
	for _, name := range s.FolderVars {
		if v := lookup(a.command.env, name); filepath.IsAbs(v) {
			if err := a.grantFolder(p, v); err != nil {
				return err
			}
		}
	}
	for _, name := range s.Write {
		real, err := filepath.EvalSymlinks(a.expand(name))
		if err != nil {
			return fmt.Errorf("sandbox.write: %w; make it, or take it out of the list", err)
		}
		if err := a.mayGrant(name, real); err != nil {
			return err
		}
		p.Write = append(p.Write, real)
	}
	if s.Read != nil {
		p.Read = a.readable(s.Read)
	}
	return nil
}

// grantTree grants the tree itself, but for what only reconcile and people write. Landlock cannot make exceptions: there, only the present
// files and folders of the tree are granted, or all of it to an exposed attempt.
func (a *attempt) grantTree(p *sandbox.Policy) error {
	if a.exposed {
		p.Write = append(p.Write, a.runner.dir)
		a.record.Workspace.Why += "; landlock cannot keep it from what only people write in the tree: that is compared afterwards"
		return nil
	}
	if p.Level == schemas.SandboxBwrap {
		p.Write, p.Shield = append(p.Write, a.runner.dir), a.keptPaths()
		return nil
	}
	entries, err := os.ReadDir(a.runner.dir)
	for _, e := range entries {
		full := filepath.Join(a.runner.dir, e.Name())
		if (e.IsDir() || e.Type().IsRegular()) && !slices.Contains(a.keptPaths(), full) {
			p.Write = append(p.Write, full)
		}
	}
	return err
}

// grantFolder grants a folder of the agent's program; the program may make it. A file that does not exist cannot be granted.
func (a *attempt) grantFolder(p *sandbox.Policy, folder string) error {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if filepath.Ext(strings.TrimPrefix(filepath.Base(folder), ".")) != "" {
			return nil
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make the folder of the agent's program: %w", err)
		}
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	if err := a.mayGrant(folder, real); err != nil {
		return err
	}
	p.Write = append(p.Write, real)
	return nil
}

// expand makes a path of a spec or a profile absolute.
func (a *attempt) expand(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(lookup(a.command.env, "HOME"), rest)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return a.runner.absolute(name)
}

// readable lists what may be read besides the system's folders.
func (a *attempt) readable(granted []string) []string {
	out := []string{a.runner.dir}
	for _, name := range granted {
		out = append(out, a.expand(name))
	}
	if at, err := worktree.Find(a.runner.dir); err == nil {
		out = append(out, at.Common)
	}
	for dir := range strings.SplitSeq(lookup(a.command.env, "PATH"), string(filepath.ListSeparator)) {
		if filepath.IsAbs(dir) {
			out = append(out, dir)
		}
	}
	for i, p := range out {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			out[i] = real
		}
	}
	return out
}

// keptPaths are the files and folders that no agent may write: what only reconcile and people write.
func (a *attempt) keptPaths() []string {
	names := []string{path.Dir(state.WorkDir), ".git", "reconcile.yaml", "reconcile.yml", "reconcile.json", cmp.Or(a.runner.o.Specs, "specs"), cmp.Or(a.runner.o.State, "state")}
	var out []string
	for _, name := range names {
		out = append(out, a.runner.absolute(name))
	}
	if at, err := worktree.Find(a.runner.dir); err == nil {
		out = append(out, at.GitDir, at.Common)
	}
	return out
}

// mayGrant refuses a path through which an agent could write protected files. name is how the spec names it.
func (a *attempt) mayGrant(name, real string) error {
	kept := append(a.keptPaths(), a.runner.dir)
	if a.place.ws != nil {
		kept = append(kept, filepath.Dir(a.place.ws.Top()))
	}
	for _, k := range kept {
		if within(real, k) || within(k, real) && k != a.runner.dir {
			return fmt.Errorf("the sandbox cannot grant %s: through it the agent could write %s; name a narrower folder", name, k)
		}
	}
	return nil
}

// within reports whether path is dir, or below it.
func within(dir, path string) bool {
	_, ok := worktree.Within(dir, path)
	return ok
}

// proxyPort is the port of reconcile's own proxy for models, if the agent uses it; else 0.
func (a *attempt) proxyPort() int {
	if a.endpoint == nil {
		return 0
	}
	u, err := url.Parse(a.endpoint.URL())
	if err != nil {
		return 0
	}
	_, text, err := net.SplitHostPort(u.Host)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(text)
	return port
}

// startConfined starts the program at path, which is or becomes the command, in its sandbox. An error says why that is not possible.
func (a *attempt) startConfined(path string, argv []string, files []*os.File) (p *process, err error) {
	err = a.confineProgram(*a.policy, path, argv, func(path string, argv []string, more []*os.File) (err error) {
		p, err = a.spawn(path, argv, append(files, more...))
		return err
	})
	return p, err
}

// confineProgram starts a program of the attempt, after the one before it has ended.
func (a *attempt) confineProgram(p sandbox.Policy, path string, argv []string, spawn sandbox.Spawn) error {
	a.confined.Close()
	c, err := a.runner.o.Sandbox.Start(p, path, argv, spawn)
	a.confined = c
	return err
}

// executed returns an error if the sandbox's own program failed, before it executed the command.
func (a *attempt) executed(end exit) error {
	if end.stopped != nil || end.stuck != nil || end.lost != nil || exitCode(end.status) != 1 {
		return nil
	}
	return a.confined.Executed(a.command.path)
}

// failOutside records that the run wrote outside of its workspace, and returns why it failed.
func (a *attempt) failOutside(paths []string) error {
	kind, found := schemas.WorkspaceInPlace, schemas.Shorten(paths, 5)
	if a.task.Workspace != nil {
		kind = a.task.Workspace.Kind
	}
	a.record.Workspace = &schemas.RunWorkspace{Kind: kind, Reason: schemas.RunWroteOutside}
	if a.place.ws == nil {
		instead := "give the agent a workspace of its own or a sandbox"
		if kind != schemas.WorkspaceInPlace {
			instead = "make a git repository here, so that it gets a workspace"
		}
		return fmt.Errorf("%[1]s: it changed %[2]s, which only people and reconcile write, or somebody else did while it ran, and nobody can tell. "+
			"If it was you: reconcile retry %[3]s %[4]s. If not, undo the change first, and %[5]s",
			schemas.RunWroteOutside, found, a.job.effect.Owner, a.job.effect.Node, instead)
	}
	return fmt.Errorf("%[1]s: it changed %[2]s outside of its workspace, or somebody else did while it ran, and nobody can tell; its work is kept. "+
		"If it was you: reconcile retry %[3]s %[4]s goes on in its workspace. If not, undo the change first, and give the agent a sandbox",
		schemas.RunWroteOutside, found, a.job.effect.Owner, a.job.effect.Node)
}

// unconfine removes what belongs to the sandbox of the attempt.
func (a *attempt) unconfine() {
	a.confined.Close()
	if a.broker != nil {
		a.broker.close()
	}
	if a.scratch != "" && removeTree(a.runner.root, path.Join(state.WorkDir, scratchName(a.job.effect.Key))) != nil {
		a.runner.leave(a.job.effect.Key)
	}
}

// removeTree removes a folder, also one with folders that cannot be written to, as caches of modules have.
func removeTree(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = root.Chmod(p, 0o700)
		}
		return err
	})
	return root.RemoveAll(name)
}

const (
	// HostVar is the environment variable with the socket of the process that runs a confined run: see [AskHost].
	HostVar = "RECONCILE_HOST"
	// BrokerVar is set for commands of this program that are run for a confined run, outside of its sandbox.
	BrokerVar = "RECONCILE_FOR_RUN"
)
