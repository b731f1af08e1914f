package ops

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/installing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/toolscan"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// installTime is the time limit of each command of an installation.
const installTime = 10 * time.Minute

// InstallToolsRequest requests tools in the environment of the project. Tools lists NAME or NAME@VERSION; none: all that the settings list and that
// are missing.
type InstallToolsRequest struct {
	CheckRequest
	// Accepted are the tools, in the form of UnlistedError, that a person accepted though the settings do not list them.
	Accepted []string
}

// InstalledTool is a tool that was installed.
type InstalledTool struct {
	tools.Installation
	Program string   `json:"program"`
	Says    string   `json:"says"`             // its version
	Proved  []string `json:"proved,omitempty"` // the categories in which it found the planted fault of its positive control
}

// InstallToolsResult are the tools that were installed.
type InstallToolsResult struct {
	Root      string          `json:"root"`
	Installed []InstalledTool `json:"installed"`
}

// UnlistedError says that the settings do not list a requested tool, and which commands would install it.
type UnlistedError struct {
	Tools    []string // NAME or NAME@VERSION
	Commands []string // of each tool
}

func (e *UnlistedError) Error() string {
	return fmt.Sprintf("the settings do not say that %s may be installed; these commands would run:\n  %s\nadd it to tools.install of reconcile.yaml, or run "+
		"this at a terminal, which asks", strings.Join(e.Tools, ", "), strings.Join(e.Commands, "\n  "))
}

// BadRequest marks an error of the request.
func (*UnlistedError) BadRequest() {}

// InstallTools installs tools into the environment of the project: node_modules, .venv, or .reconcile/tools. Manifests and lock files stay as they
// are. A tool that does not work is not kept: then the project is as before. Only people may do that, and only for tools that the settings list or that
// they accept.
func InstallTools(ctx context.Context, env Env, q InstallToolsRequest) (r *InstallToolsResult, err error) {
	defer func() { err = typed(err) }()
	if err := env.authorize("InstallTools"); err != nil {
		return nil, err
	}
	p, err := env.openProject(ctx, &q.CheckRequest)
	if err != nil {
		return nil, err
	}
	if err := p.recover(ctx); err != nil {
		return nil, err
	}
	r = &InstallToolsResult{Root: p.root, Installed: []InstalledTool{}}
	plan, err := p.installations(ctx, &q)
	if err != nil {
		return nil, err
	}
	var commands []string
	for _, in := range plan {
		commands = append(commands, installLines(in)...)
	}
	if err := p.trustCommands(commands, q.Trust); err != nil {
		return nil, err
	}
	for i, in := range plan {
		if env.Sink != nil {
			env.Sink.Count("install "+in.Tool, i, len(plan))
		}
		done, err := p.install(ctx, in)
		if err != nil {
			return r, err
		}
		r.Installed = append(r.Installed, *done)
	}
	return r, nil
}

// recover ends and undoes what a killed installation left.
func (p *project) recover(ctx context.Context) error {
	undone, err := installing.Recover(ctx, p.root)
	if undone != "" {
		p.env.note("an installation into %s was interrupted, and is undone", undone)
	}
	return err
}

// installations plans the installations of a request.
func (p *project) installations(ctx context.Context, q *InstallToolsRequest) ([]tools.Installation, error) {
	list, err := p.installable(ctx)
	if err != nil {
		return nil, err
	}
	d, err := p.discovery()
	if err != nil {
		return nil, err
	}
	files, err := p.allFiles()
	if err != nil {
		return nil, err
	}
	wanted, err := parseWanted("", q.Tools)
	if err != nil {
		return nil, err
	}
	named := len(wanted) > 0
	if !named {
		if wanted = slices.Clone(list); len(list) == 0 {
			for _, t := range d.Found {
				if w := (tools.Wanted{Tool: t.Tool}); t.Program == "" && len(t.Install) > 0 && !slices.Contains(wanted, w) {
					wanted = append(wanted, w)
				}
			}
		}
	}
	accepted, err := parseWanted("", q.Accepted)
	if err != nil {
		return nil, err
	}
	facts := toolscan.Scan(p.root, files, p.env.Tree.Getenv("PATH"))
	var plan []tools.Installation
	denied := &UnlistedError{}
	for _, w := range wanted {
		all := places(w, d.Found, facts)
		if named && len(all) == 0 {
			return nil, badRequest("%s is for no language of the project", w.Tool)
		}
		for _, t := range all {
			if t.Program != "" && (w.Version == "" || tools.Answers(t.Version, w.Version)) {
				if named {
					p.env.note("%s %s is installed", t.Tool, t.Version)
				}
				continue
			}
			site, err := installing.Site(p.root, t.Folder, p.env.Tree.Getenv("PATH"))
			if err != nil {
				return nil, err
			}
			exact, ok := w.Permitted(append(slices.Clone(list), accepted...), tools.NamedVersion(w.Tool, site.Texts))
			in, err := tools.InstallFor(exact, site)
			if err != nil {
				return nil, badRequest("%v", err)
			}
			if !ok {
				denied.Tools, denied.Commands = append(denied.Tools, q.written(w)), append(denied.Commands, strings.Join(installLines(in), " && "))
				continue
			}
			plan = append(plan, in)
		}
	}
	if len(denied.Tools) > 0 {
		return nil, denied
	}
	return plan, nil
}

// written is a tool as the request names it.
func (q *InstallToolsRequest) written(w tools.Wanted) string {
	if w.Version == "" {
		return w.Tool
	}
	return w.Tool + "@" + w.Version
}

// places are a tool in each folder where it was found; where it was not, in the root of a project with its language.
func places(w tools.Wanted, found []tools.Discovered, f tools.Facts) (out []tools.Discovered) {
	for _, t := range found {
		if t.Tool == w.Tool && !slices.ContainsFunc(out, func(o tools.Discovered) bool { return o.Folder == t.Folder }) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		if t, ok := f.Named(w.Tool); ok {
			out = append(out, t)
		}
	}
	return out
}

// installable are the tools that the settings of the tree let be installed; none without a tree.
func (p *project) installable(ctx context.Context) ([]tools.Wanted, error) {
	if _, err := state.Find(p.treeDir(), p.env.kinds()); err != nil {
		return nil, nil
	}
	s, t, err := p.env.load(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return parseWanted("tools.install of reconcile.yaml: ", t.Settings().Tools.Install)
}

func parseWanted(where string, all []string) ([]tools.Wanted, error) {
	var out []tools.Wanted
	for _, text := range all {
		w, err := tools.ParseWanted(text)
		if err != nil {
			return nil, badRequest("%s%v%s", where, err, schemas.DidYouMean(w.Tool, tools.Names()))
		}
		out = append(out, w)
	}
	return out, nil
}

func installLines(in tools.Installation) (lines []string) {
	for _, argv := range in.Commands {
		lines = append(lines, commandLine(in.Folder, []string{in.Shown(argv)}))
	}
	return lines
}

// install installs a tool, and verifies that it works; otherwise the project is as before.
func (p *project) install(ctx context.Context, in tools.Installation) (done *InstalledTool, err error) {
	c, err := installing.Begin(ctx, p.root, in)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed: %w", in.Tool, err)
	}
	environ := os.Environ()
	secrets := runner.FindSecrets(environ, p.root)
	for _, argv := range in.Commands {
		p.env.note("%s: %s", in.Tool, in.Shown(argv))
		if err = c.Run(ctx, argv, environ, secrets, installTime); err != nil {
			break
		}
	}
	if err == nil {
		done, err = p.verified(ctx, c, in)
	}
	if err != nil {
		if undo := c.Undo(); undo != nil {
			return nil, fmt.Errorf("%s is not installed: %w\n%w", in.Tool, err, undo)
		}
		return nil, fmt.Errorf("%s is not installed, and %s is as before: %w", in.Tool, in.Env, err)
	}
	if err := c.Keep(); err != nil {
		return nil, fmt.Errorf("%s is not installed: %w", in.Tool, err)
	}
	return done, nil
}

// verified asks the installed program for its version, and runs its positive controls.
func (p *project) verified(ctx context.Context, c *installing.Change, in tools.Installation) (*InstalledTool, error) {
	argv := tools.VersionArguments(in.Tool)
	done := &InstalledTool{Installation: in, Program: c.Program(argv[0])}
	if done.Program == "" {
		return nil, fmt.Errorf("%s has no program %s", in.Env, argv[0])
	}
	end, err := runner.Program{Argv: argv, Path: done.Program, Dir: p.root, Environ: os.Environ(), Timeout: time.Minute, Limit: 64 << 10}.Run(ctx)
	if err != nil {
		return nil, err
	}
	said := strings.TrimSpace(string(end.Stdout) + "\n" + string(end.Stderr))
	if end.NotStarted != nil || end.TimedOut || end.Signal != "" || end.Exit != 0 || !tools.Answers(said, in.Version) {
		return nil, fmt.Errorf("%s does not say that it is %s %s:\n%s", strings.Join(argv, " "), in.Tool, in.Version, said)
	}
	checker := p.checker(&CheckRequest{Timeout: time.Minute}, "")
	for _, t := range tools.Installed(in, done.Program, said) {
		if done.Says = t.Version; t.Role.Control == nil {
			continue
		}
		check, err := checker.Works(ctx, t)
		if err != nil {
			return nil, err
		}
		if !check.Proved {
			return nil, fmt.Errorf("as %s: %s", t.Category, check.Reason)
		}
		done.Proved = append(done.Proved, string(t.Category))
	}
	return done, nil
}
