package ops

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/doctor"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/scaffold"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// InstalledAgent is the program of a known agent on this machine.
type InstalledAgent struct {
	Agent   string `json:"agent"`
	Program string `json:"program"`
	Version string `json:"version,omitempty"`
	Login   string `json:"login"`
	File    string `json:"file,omitempty"` // the spec that was written for it; empty if one was there
}

// findPrograms looks for the programs of agents, all at once. Those without a profile have none.
func findPrograms(ctx context.Context, own map[string]schemas.Profile, agents map[string]*schemas.CommandRunner) map[string]doctor.Program {
	found := map[string]doctor.Program{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for name, c := range agents {
		group.Go(func() {
			if p, ok := doctor.FindProgram(ctx, os.Environ(), own, c); ok && c.Profile != "" {
				mu.Lock()
				defer mu.Unlock()
				found[name] = p
			}
		})
	}
	group.Wait()
	return found
}

// withPrograms returns a table of kinds with columns for the programs of agents.
func withPrograms(ctx context.Context, table settle.Table, t *state.Tree, entries []*state.Entry) settle.Table {
	commands := map[string]*schemas.CommandRunner{}
	for _, e := range entries {
		if spec := state.SpecOf[*schemas.AgentSpec](e); e.Kind == schemas.AgentKind.Name && spec != nil && spec.Runner.AsCommand() != nil {
			commands[e.Name] = spec.Runner.AsCommand()
		}
	}
	found := findPrograms(ctx, t.Settings().Profiles, commands)
	column := func(head string, text func(doctor.Program) string) settle.Column {
		return settle.Column{Head: head, Text: func(e *state.Entry) string {
			if p, ok := found[e.Name]; ok {
				return text(p)
			}
			return ""
		}}
	}
	wide := slices.Clone(table)
	if row := wide.Row(schemas.AgentKind.Name); row != nil && len(found) > 0 {
		row.Columns = append(slices.Clone(row.Columns),
			column("PROGRAM", func(p doctor.Program) string {
				if p.Path == "" {
					return p.Name + " not found"
				}
				return p.Path
			}),
			column("VERSION", func(p doctor.Program) string { return p.Version }),
			column("LOGIN", func(p doctor.Program) string {
				if p.Path == "" {
					return ""
				}
				return p.Login
			}))
	}
	return wide
}

// agentSpec is the spec of an installed agent. %s is its profile.
const agentSpec = `# The agent %[1]s, whose program was found when this file was written. Change the name to what the agent is for.
apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: %[1]s}
spec:
  # What it does: engineer, tester, reviewer, architect, or a word of your own. Each role has its commands that need no person.
  role: engineer
  runner:
    # The profile says how the program is started, and how its output is read.
    profile: %[1]s
  # The model; without it that of the program's own settings.
  # model: NAME
  # Rules for all of its work.
  # instructions: {text: "Run the tests before you end."}
  # The agents that it may ask.
  # canClarify: [architect]
  # Where it works: clone is a folder of its own, inPlace the tree itself.
  # workspace: clone
`

// installedAgents finds the installed programs of known agents, and returns the specs of those that the tree does not have, and the
// names of those that are not found. taken reports whether the tree has an agent of a name, or its file.
func installedAgents(ctx context.Context, folder string, taken func(name, file string) bool) (found []InstalledAgent, files []scaffold.File, missing []string) {
	commands := map[string]*schemas.CommandRunner{}
	for _, name := range profiles.Names(nil) {
		commands[name] = &schemas.CommandRunner{Profile: name}
	}
	programs := findPrograms(ctx, nil, commands)
	for _, name := range profiles.Names(nil) {
		p := programs[name]
		if p.Path == "" {
			missing = append(missing, name)
			continue
		}
		a := InstalledAgent{Agent: name, Program: p.Path, Version: p.Version, Login: p.Login}
		if file := specFile(folder, schemas.AgentKind, name); !taken(name, file) {
			a.File = file
			files = append(files, scaffold.File{Path: file, Data: fmt.Appendf(nil, agentSpec, name)})
		}
		found = append(found, a)
	}
	return found, files, missing
}

// initAgents returns the specs of the installed agents for a new tree, or the one in the folder of the environment.
func (e Env) initAgents(ctx context.Context, isTree bool, r *InitResult) ([]scaffold.File, error) {
	folder := "specs"
	var t *state.Tree
	if isTree {
		s, loaded, err := e.load(ctx)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		t, folder = loaded, loaded.Settings().Folders.Specs
	}
	var files []scaffold.File
	r.Agents, files, r.NotFound = installedAgents(ctx, folder, func(name, file string) bool {
		if _, err := os.Lstat(path.Join(e.Tree.Dir, file)); err == nil {
			return true
		}
		return t != nil && t.Entry(schemas.AgentKind.Ref(name)) != nil
	})
	settings := &schemas.SettingsSpec{}
	settings.Default()
	for _, f := range files {
		for _, p := range schemas.DecoderFor(controllers.Schemas(), settings).Decode(f.Path, f.Data).Problems {
			if p.Severity == schemas.Error {
				return nil, fmt.Errorf("the spec of an agent is not valid: %s: %s", p.Field, p.Message)
			}
		}
	}
	return files, nil
}
