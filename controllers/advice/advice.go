// Package advice warns about specs that are valid and will probably not have the effect that was meant.
package advice

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/commands"
	"reconcile.dev/reconcile/state"
)

// Surroundings is what the warnings need to know of the machine and the work tree.
type Surroundings struct {
	Program func(name string) bool // whether a program can be found
	Input   func(glob string) bool // whether a glob of inputs matches a file
	Git     bool                   // whether the tree is in a git repository
}

// For returns the warnings about the tree's specs, by file and field.
func For(t *state.Tree, s Surroundings) []Advice {
	settings := t.Settings()
	all := adviseSettings(settings)
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if spec := schemas.SpecAs[*schemas.AgentSpec](e.Object); spec != nil {
			all = append(all, adviseAgent(e, spec, settings, s)...)
		}
	}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		if spec := schemas.SpecAs[*schemas.DAGSpec](e.Object); spec != nil {
			all = append(all, adviseInputs(e, spec, s)...)
			all = append(all, adviseOutputs(e, spec)...)
			all = append(all, adviseTools(e, s)...)
			all = append(all, adviseKeep(e, s)...)
			all = append(all, adviseTemplate(e, spec)...)
			all = append(all, adviseText(e, spec)...)
			all = append(all, adviseCalls(t, e)...)
			all = append(all, adviseApprovals(e, settings)...)
			all = append(all, adviseExclude(e)...)
			written(e, func(n *schemas.Node, at []any) {
				all = append(all, advisePipeline(t, e, n.Pipeline, append(slices.Clip(at), "pipeline")...)...)
			})
		}
	}
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if spec := schemas.SpecAs[*schemas.SessionSpec](e.Object); spec != nil {
			all = append(all, advisePipeline(t, e, spec.Pipeline, "spec", "pipeline")...)
		}
	}
	all = append(all, adviseEnv(t)...)
	slices.SortStableFunc(all, func(a, b Advice) int { return cmp.Compare(a.File, b.File) })
	return all
}

// adviseSettings warns about patterns of commands that match nothing.
func adviseSettings(s *schemas.SettingsSpec) (all []Advice) {
	all = append(advisePatterns(s.Commands.Allow, "allow"), advisePatterns(s.Commands.Block, "block")...)
	for _, name := range slices.Sorted(maps.Keys(s.Profiles)) {
		p, o := s.Profiles[name], owner{file: schemas.SettingsPath}
		all = append(all, o.keys([]any{"spec", "profiles", name}, schemas.EnvOf(p.Env), p.Argv, agentKey)...)
		all = append(all, o.keys([]any{"spec", "profiles", name, "proxy"}, schemas.EnvOf(p.Proxy.Env), nil, agentKey)...)
	}
	for _, role := range slices.Sorted(maps.Keys(s.Commands.Roles)) {
		all = append(all, advisePatterns(s.Commands.Roles[role], "roles", role)...)
	}
	return all
}

func advisePatterns(list []string, field ...any) (all []Advice) {
	for i, p := range list {
		why := ""
		if err := commands.Check(p); err != nil {
			why = "matches nothing: " + err.Error()
		} else if strings.HasPrefix(p, "^") || strings.Contains(p, ".*") {
			why = "looks like a regular expression, and is a list of arguments"
		}
		if why != "" && p != commands.Default {
			all = append(all, Advice{Code: "pattern", File: schemas.SettingsPath, Field: append(append([]any{"spec", "commands"}, field...), i),
				Message: why, Suggestion: "write a program and its arguments, as: go {build,test} ..."})
		}
	}
	return all
}

func adviseAgent(e *state.Entry, spec *schemas.AgentSpec, settings *schemas.SettingsSpec, s Surroundings) []Advice {
	keys := adviseKeys(e, spec)
	c := spec.Runner.AsCommand()
	if c == nil || spec.Runner.HTTP != nil {
		return keys
	}
	return append(keys, adviseProgram(e, spec, c, settings, s)...)
}

// adviseProgram warns about a program that cannot be run here.
func adviseProgram(e *state.Entry, spec *schemas.AgentSpec, c *schemas.CommandRunner, settings *schemas.SettingsSpec, s Surroundings) []Advice {
	field, argv := []any{"spec", "runner", "command", "argv", 0}, c.Argv
	if spec.Runner.ACP != nil {
		field[2] = "acp"
	}
	if len(argv) == 0 {
		field = []any{"spec", "runner", "command", "profile"}
		if spec.Runner.Profile != "" {
			field = []any{"spec", "runner", "profile"}
		}
		p, _ := profiles.Find(settings.Profiles, c.Profile)
		argv = p.Argv
	}
	if why := profiles.Check(settings.Profiles, &spec.Runner); why != "" {
		return []Advice{{Code: "unknown-profile", Ref: e.Ref, File: e.Object.Path, Field: field, Message: why,
			Suggestion: "nodes of this agent wait until that is put right"}}
	}
	if c.Env["PATH"].Text != "" || s.Program(argv[0]) {
		return nil
	}
	return []Advice{{Code: "missing-program", Ref: e.Ref, File: e.Object.Path, Field: field,
		Message: fmt.Sprintf("the program %q is not found on this machine", argv[0]), Suggestion: "install it, or put its folder on the PATH"}}
}

// written calls f for each node as declared in the file of a DAG, with its place there.
func written(e *state.Entry, f func(n *schemas.Node, at []any)) {
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object.Declared())
	for k, nodes := range [][]schemas.Node{spec.Nodes, spec.Finally} {
		for i := range nodes {
			f(&nodes[i], []any{"spec", []string{"nodes", "finally"}[k], i})
		}
	}
}

// adviseInputs warns of inputs that match nothing, but for what nodes of the DAG make themselves.
func adviseInputs(e *state.Entry, spec *schemas.DAGSpec, s Surroundings) (all []Advice) {
	var made []string
	for i := range spec.Nodes {
		made = append(made, spec.Nodes[i].Outputs.Files...)
		made = append(made, spec.Nodes[i].Outputs.JSON)
	}
	written(e, func(n *schemas.Node, at []any) {
		for k, glob := range n.Inputs {
			if s.Input(glob) || strings.Contains(glob, "{{") || slices.ContainsFunc(made, func(f string) bool { return f != "" && maybe(glob, f) }) {
				continue
			}
			all = append(all, Advice{Code: "no-input", Ref: e.Ref, File: e.Object.Path, Field: append(slices.Clip(at), "inputs", k),
				Message: fmt.Sprintf("%q matches no file", glob), Suggestion: "paths are below the root of the tree; ** stands for any folders"})
		}
	})
	return all
}

// adviseTools warns of declared tools that are not here.
func adviseTools(e *state.Entry, s Surroundings) (all []Advice) {
	written(e, func(n *schemas.Node, at []any) {
		for k, name := range n.Tools {
			if !s.Program(name) {
				all = append(all, Advice{Code: "missing-program", Ref: e.Ref, File: e.Object.Path, Field: append(slices.Clip(at), "tools", k),
					Message:    fmt.Sprintf("the program %q is not found on this machine, so that its version is not known", name),
					Suggestion: "install it, or put its folder on the PATH; until then the node does not start, and its result on record stands"})
			}
		}
	})
	return all
}

// adviseKeep warns of outputs with keep: git outside of a git repository.
func adviseKeep(e *state.Entry, s Surroundings) (all []Advice) {
	written(e, func(n *schemas.Node, at []any) {
		if !s.Git && n.Outputs.Keep {
			all = append(all, Advice{Code: "no-repository", Ref: e.Ref, File: e.Object.Path, Field: append(slices.Clip(at), "outputs", "keep"),
				Message: "outputs are kept in git, and the tree is in no git repository", Suggestion: "run git init, or leave out keep"})
		}
	})
	return all
}

// adviseApprovals warns of approvals by someone whom the settings do not declare, and by more people than there are.
func adviseApprovals(e *state.Entry, settings *schemas.SettingsSpec) (all []Advice) {
	written(e, func(n *schemas.Node, at []any) {
		if n.Approve == nil {
			return
		}
		people := 0
		for i := range settings.People {
			if settings.People[i].Among(n.Approve.By) {
				people++
			}
		}
		for k, name := range n.Approve.By {
			if slices.ContainsFunc(settings.People, func(p schemas.Person) bool { return p.Among([]string{name}) }) {
				continue
			}
			people++ // an account on GitHub
			all = append(all, Advice{Code: "unknown-person", Ref: e.Ref, File: e.Object.Path, Field: append(slices.Clip(at), "approve", "by", k),
				Message:    fmt.Sprintf("settings.people has neither a person nor a team %q, so only the GitHub account of that name can approve", name),
				Suggestion: "declare who that is in people of " + schemas.SettingsPath})
		}
		if n.Approve.Quorum() > people && len(n.Approve.By) > 0 {
			all = append(all, Advice{Code: "too-few-people", Ref: e.Ref, File: e.Object.Path, Field: append(slices.Clip(at), "approve", "count"),
				Message:    fmt.Sprintf("%d different people have to approve, and by names only %d: it never opens", n.Approve.Quorum(), people),
				Suggestion: "name more people or teams, or lower count"})
		}
	})
	return all
}

// advisePipeline refuses agents of a pipeline that cannot do their steps: those of another role, those that cannot read, and people, who
// decide by approve.
func advisePipeline(t *state.Tree, e *state.Entry, p *schemas.Pipeline, field ...any) (all []Advice) {
	for _, a := range p.Agents() {
		on := t.Entry(schemas.AgentKind.Ref(a.Name))
		if on == nil || on.Object == nil {
			continue // the reference is a problem of its own
		}
		why, mend := "", "name an agent with the role "+a.Field
		switch spec := schemas.SpecAs[*schemas.AgentSpec](on.Object); {
		case spec.Runner.Human != nil:
			why = fmt.Sprintf("%s is a person, who cannot be the %s of a pipeline: people decide with approve, and see each change with land.preview", a.Name, a.Field)
		case spec.Role != a.Field:
			why = fmt.Sprintf("%s has the role %s, and the %s of a pipeline needs the role %[3]s", a.Name, spec.Role, a.Field)
		case spec.Runner.Lacks(a.Field) != "":
			why = fmt.Sprintf("%s cannot %s files, as the %s of a pipeline has to", a.Name, spec.Runner.Lacks(a.Field), a.Field)
			mend = "write tools: " + spec.Runner.Lacks(a.Field) + " in its runner.http"
		default:
			continue
		}
		all = append(all, Advice{Code: "bad-role", Ref: e.Ref, File: e.Object.Path, Field: append(slices.Clip(field), a.Field), Message: why, Refused: true,
			Suggestion: mend})
	}
	return all
}

// maybe reports whether a glob matches a file, or something below it if it is a folder.
func maybe(glob, file string) bool {
	file = path.Clean(file)
	if ok, err := doublestar.Match(glob, file); err == nil && ok {
		return true
	}
	return strings.HasPrefix(glob, file+"/")
}
