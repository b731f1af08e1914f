package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/doctor"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/scaffold"
	"reconcile.dev/reconcile/cmd/reconcile/internal/importer"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/worktree"
)

// ImportSources are the sources of commands that Init supports.
var ImportSources = importer.Sources

// InitRequest requests a tree in the folder of the environment.
type InitRequest struct {
	Missing bool   // write the files whose names are free, and skip the others
	Example bool   // also write sample work
	From    string // also write a DAG with the commands of this source; "": none
	Agents  bool   // also write the specs of the agents that are installed
	Nested  bool   // even if the folder is inside another tree
}

// InitResult is the work that a new tree declares.
type InitResult struct {
	DAG     string         // the file of the imported DAG; "": none
	Nodes   []ImportedNode // of that DAG
	Omitted []string       // skipped commands: where, what, and why
	// Agents are the known agents that are installed, NotFound the names of the others.
	Agents   []InstalledAgent
	NotFound []string
}

// ImportedNode is an imported command.
type ImportedNode struct {
	Node  string   `json:"node"`
	Run   []string `json:"run"`
	Needs []string `json:"needs,omitempty"`
	From  string   `json:"from"`
	Held  string   `json:"held,omitempty"`
}

// InsideTreeError refuses a tree in a folder of another one.
type InsideTreeError struct{ Dir, Tree string } // Tree is absolute

func (e *InsideTreeError) Error() string {
	return fmt.Sprintf("%s is a folder of the tree %s: work there needs no other tree", e.Dir, e.Tree)
}

// BadRequest marks an error of the request.
func (e *InsideTreeError) BadRequest() {}

// Init initializes a folder as a tree: it writes the scaffold of settings, a folder for specs, and git's ignore and
// attribute lines. It changes no existing file, except for lines that it adds to .gitignore and .gitattributes. It
// notes each written file.
func Init(ctx context.Context, env Env, q InitRequest) (r InitResult, err error) {
	defer func() { err = typed(err) }()
	if err := errors.Join(ctx.Err(), env.authorize("Init")); err != nil {
		return r, err
	}
	dir := env.Tree.Dir
	if q.From != "" && q.Example {
		return r, badField("from", " makes a DAG of its own: leave out --example and --github")
	}
	above, isTree := treeOf(dir)
	if above != "" && !isTree && !q.Nested {
		return r, &InsideTreeError{dir, above}
	}
	var files []scaffold.File
	if q.From == "" && !q.Agents || !isTree {
		files = scaffold.Tree()
	}
	if q.Agents {
		specs, err := env.initAgents(ctx, isTree, &r)
		if err != nil {
			return r, err
		}
		files = append(files, specs...)
	}
	if q.Example {
		files = append(files, scaffold.Example()...)
	}
	if q.From != "" {
		found, specs, err := env.importFrom(ctx, q.From, isTree)
		if err != nil {
			return r, err
		}
		if err := scaffold.CheckFree(dir, specs); err != nil { // independent of Missing
			return r, err
		}
		r.DAG = filepath.Join(dir, filepath.FromSlash(specs[len(specs)-1].Path))
		for _, c := range found.Commands {
			r.Nodes = append(r.Nodes, ImportedNode{Node: c.Name, Run: c.Run, Needs: c.Needs, From: c.From, Held: c.Held})
		}
		for _, o := range found.Omitted {
			r.Omitted = append(r.Omitted, fmt.Sprintf("%s: %s: %s", o.From, o.What, o.Why))
		}
		files = append(files, specs...)
	}
	if err := scaffold.Write(dir, files, q.Missing, env.noteWritten); err != nil {
		return r, err
	}
	root, err := scaffold.Open(dir)
	if err != nil {
		return r, err
	}
	defer root.Close()
	wrote, err := scaffold.AddLines(root, ".gitignore", scaffold.LacksIgnored)
	if err != nil {
		return r, err
	}
	if wrote {
		env.noteWritten(filepath.Join(dir, ".gitignore"))
	}
	return r, InstallMergeDriver(ctx, env)
}

// treeOf returns the tree that contains a folder, or "", and reports whether the folder is its root.
func treeOf(dir string) (tree string, top bool) {
	found, err := state.Find(dir, controllers.Schemas())
	if err != nil {
		return "", false
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", false
	}
	return found, abs == found
}

// importFrom finds the commands of a source, and returns their specs: a session, and then a DAG. It writes nothing.
func (e Env) importFrom(ctx context.Context, source string, isTree bool) (importer.Found, []scaffold.File, error) {
	dir := e.Tree.Dir
	found, err := importer.Find(ctx, dir, source)
	var nothing *importer.NothingError
	switch {
	case errors.As(err, &nothing):
		return found, nil, badField("from", " %s finds nothing in %s: %v", source, dir, err)
	case err != nil:
		return found, nil, fmt.Errorf("--from %s in %s: %w", source, dir, err)
	}
	settings := &schemas.SettingsSpec{}
	settings.Default()
	folder := settings.Folders.Specs
	if isTree {
		s, t, err := e.load(ctx)
		if err != nil {
			return found, nil, err
		}
		defer s.Close()
		folder = t.Settings().Folders.Specs
		if err := checkNames(t, folder, source); err != nil {
			return found, nil, err
		}
	}
	files, err := importedSpecs(settings, folder, source, found)
	return found, files, err
}

// importedSpecs returns the specs, after decoding them with the code of a run.
func importedSpecs(settings *schemas.SettingsSpec, folder, source string, found importer.Found) ([]scaffold.File, error) {
	session, err := importer.Session(source)
	if err != nil {
		return nil, err
	}
	dag, err := importer.DAG(source, found)
	if err != nil {
		return nil, err
	}
	files := []scaffold.File{
		{Path: specFile(folder, schemas.SessionKind, source), Data: session},
		{Path: specFile(folder, schemas.DAGKind, source), Data: dag},
	}
	return checkSpecs(files, settings, "the commands make no valid spec")
}

// checkSpecs returns the specs if all of them are valid.
func checkSpecs(files []scaffold.File, settings *schemas.SettingsSpec, otherwise string) ([]scaffold.File, error) {
	for _, f := range files {
		for _, p := range schemas.DecoderFor(controllers.Schemas(), settings).Decode(f.Path, f.Data).Problems {
			if p.Severity == schemas.Error {
				return nil, fmt.Errorf("%s: %s: %s", otherwise, p.Field, p.Message)
			}
		}
	}
	return files, nil
}

// InitWorkflowsRequest requests the workflows for GitHub Actions in the folder of the environment, the root of a
// repository.
type InitWorkflowsRequest struct {
	Release string // the release to install; "": the release of this build, if it has one
	Missing bool   // as in InitRequest
}

// InitWorkflowsResult lists the values that must still be filled in.
type InitWorkflowsResult struct {
	File, Mark string // the file in which a release must replace the mark; "": none
}

// InitWorkflows writes the workflow files for GitHub Actions at the top of the repository, for a release of the
// program. They start at the times of the schedules of the tree's DAGs, too. It notes each written file.
func InitWorkflows(ctx context.Context, env Env, q InitWorkflowsRequest) (r InitWorkflowsResult, err error) {
	defer func() { err = typed(err) }()
	if err := errors.Join(ctx.Err(), env.authorize("InitWorkflows")); err != nil {
		return r, err
	}
	dir := env.Tree.Dir
	if below := worktree.Below(dir); below != "" {
		return r, badRequest("%s is not the top of its repository, where GitHub looks for workflows: run this there, and write "+
			"-C %s after each reconcile in them", dir, below)
	}
	switch own := process.ReadBuild().Version; {
	case q.Release != "" && !scaffold.IsRelease(q.Release):
		return r, badField("release", " %s: write a release as v1.2.3, which means the same today and tomorrow, a file of one as "+
			"https://…#sha256=SUM, or a path in the repository as ./tools/reconcile", q.Release)
	case q.Release == "" && scaffold.IsVersion(own):
		q.Release = own
	}
	if q.Release == "" {
		r = InitWorkflowsResult{path.Join(dir, ".github/actions/reconcile/action.yml"), scaffold.ReleaseMark}
	}
	files := scaffold.Workflows(q.Release)
	schedules, err := env.schedules(ctx)
	if err != nil {
		return r, err
	}
	scaffold.Scheduled(files, schedules, env.Tree.Now())
	return r, scaffold.Write(dir, files, q.Missing, env.noteWritten)
}

// schedules are the schedules of the tree's DAGs; none where there is no tree.
func (e Env) schedules(ctx context.Context) (map[string]schemas.Schedules, error) {
	if _, top := treeOf(e.Tree.Dir); !top {
		return nil, nil
	}
	s, t, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out := map[string]schemas.Schedules{}
	for _, dag := range t.Entries(schemas.DAGKind.Name) {
		if spec := schemas.SpecAs[*schemas.DAGSpec](dag.Object); spec != nil && len(spec.Schedule) > 0 {
			out[dag.Name] = spec.Schedule
		}
	}
	return out, nil
}

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
	return checkSpecs(files, settings, "the spec of an agent is not valid")
}
