package doctor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/schemas"
)

// probeTime bounds a program that is asked for its version or login.
const probeTime = 10 * time.Second

// probeGrace is how long an ended program may keep its output open.
const probeGrace = time.Second

// checkAgents looks for the programs of agents with a profile: which is found, its version, and whether it is logged in.
func checkAgents(ctx context.Context, e *Patient) (all []Finding) {
	if e.tree == nil {
		return skipped("the tree cannot be loaded")
	}
	for _, entry := range e.tree.Entries(schemas.AgentKind.Name) {
		spec := schemas.SpecAs[*schemas.AgentSpec](entry.Object)
		if spec == nil {
			continue
		}
		c := spec.Runner.AsCommand()
		if c == nil || c.Profile == "" {
			continue
		}
		f := Finding{Level: Warn, Detail: fmt.Sprintf("%s: %s", entry.Ref, profiles.Check(e.settings().Profiles, &spec.Runner)), Fix: "name a profile that there is"}
		if p, ok := FindProgram(ctx, e.Environ, e.settings().Profiles, c); ok {
			f = p.finding(entry.Ref.String())
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return ok("no agent has a profile")
	}
	return all
}

// Program is the program of an agent with a profile, as it is on this machine.
type Program struct {
	Name    string // as the profile calls it; "": it has none
	Path    string // "": it is not found
	Foreign bool   // the tree names the program, so that it was not run
	Version string // "": not known
	Login   string // one of the Login constants
}

// Whether a program is logged in.
const (
	LoggedIn     = "logged in"
	LoggedOut    = "not logged in"
	LoginUnknown = "login unknown"
)

// FindProgram looks for the program of an agent; ok is false without a profile. Only programs of built-in profiles are run, with
// arguments and an environment that the tree has no influence on but for the key: a tree of someone else must not run anything here.
func FindProgram(ctx context.Context, environ []string, own map[string]schemas.Profile, c *schemas.CommandRunner) (f Program, ok bool) {
	if c == nil {
		return f, false
	}
	p, ok := profiles.Find(own, c.Profile)
	if !ok {
		return f, false
	}
	argv, _ := profiles.Args(&p, c, "", "", false)
	if len(argv) == 0 {
		return f, true
	}
	f.Name, f.Login = argv[0], LoginUnknown
	var err error
	if f.Path, err = exec.LookPath(argv[0]); err != nil {
		f.Path = ""
		return f, true
	}
	built, known := profiles.Find(nil, c.Profile)
	if f.Foreign = !known || argv[0] != built.Argv[0]; f.Foreign {
		return f, true
	}
	clean := probeEnviron(environ, &built, c)
	f.Version, _ = ask(ctx, clean, f.Path, built.Version)
	switch is, known := loggedIn(ctx, clean, f.Path, &built); {
	case known && is:
		f.Login = LoggedIn
	case known:
		f.Login = LoggedOut
	}
	return f, true
}

func (p *Program) finding(agent string) Finding {
	switch {
	case p.Name == "":
		return Finding{Level: Warn, Detail: agent + ": its profile has no argv", Fix: "write argv"}
	case p.Path == "":
		return Finding{Level: Warn, Detail: fmt.Sprintf("%s: the program %q is not found", agent, p.Name), Fix: "install it, or put its folder on the PATH"}
	case p.Foreign:
		return Finding{Level: OK, Detail: fmt.Sprintf("%s: %s, which is not asked: the tree names the program", agent, p.Path)}
	}
	f := Finding{Level: OK, Detail: fmt.Sprintf("%s: %s, %s, %s", agent, p.Path, cmp.Or(p.Version, "version unknown"), p.Login)}
	if p.Login == LoggedOut {
		f.Level, f.Fix = Warn, "log in with the program itself"
	}
	return f
}

// probeEnviron is the environment of a turn with a built-in profile; of the agent's own variables it has only the key.
func probeEnviron(environ []string, p *schemas.Profile, c *schemas.CommandRunner) (out []string) {
	for _, name := range slices.Concat([]string{"PATH", "HOME", "LANG", "SystemRoot", "USERPROFILE"}, p.PassEnv) {
		if v := lookup(environ, name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		out = append(out, name+"="+p.Env[name])
	}
	if key := c.Env[p.KeyVar].Text; key != "" {
		out = append(out, p.KeyVar+"="+key)
	}
	return out
}

// lookup returns the value of the last variable of a name.
func lookup(environ []string, name string) (value string) {
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// loggedIn asks the program, else looks for a key or a file that a login leaves; known is false where the profile names none.
func loggedIn(ctx context.Context, environ []string, path string, p *schemas.Profile) (is, known bool) {
	l := p.Login
	if len(l.Args)+len(l.Env)+len(l.Files) == 0 {
		return false, false
	}
	if len(l.Args) > 0 {
		if _, ok := ask(ctx, environ, path, l.Args); ok {
			return true, true
		}
	}
	for _, name := range l.Env {
		if lookup(environ, name) != "" {
			return true, true
		}
	}
	for _, f := range l.Files {
		if rest, ok := strings.CutPrefix(f, "~/"); ok {
			f = filepath.Join(lookup(environ, "HOME"), rest)
		}
		if _, err := os.Stat(f); err == nil {
			return true, true
		}
	}
	return false, true
}

// ask runs a program for a moment and returns the first line of its output; ok is false unless it ended with exit code 0.
func ask(ctx context.Context, environ []string, path string, args []string) (line string, ok bool) {
	if len(args) == 0 {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdout, cmd.WaitDelay = environ, &out, probeGrace
	if cmd.Run() != nil {
		return "", false
	}
	return firstLine(out.String()), true
}
