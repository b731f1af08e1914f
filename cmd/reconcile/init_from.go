package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/importer"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// imported is what init --from found, and writes.
type imported struct {
	found importer.Found
	files []templateFile // the specs
	tree  bool           // whether the folder is that of a tree already
}

// importFrom finds the commands of a source in dir, and makes the specs of them. It writes nothing.
func (a *app) importFrom(ctx context.Context, dir, source string) (*imported, error) {
	found, err := importer.Find(ctx, dir, source)
	var nothing *importer.NothingError
	switch {
	case errors.As(err, &nothing):
		return nil, badUsage("--from %s finds nothing in %s: %v", source, dir, err)
	case err != nil:
		return nil, fmt.Errorf("--from %s in %s: %w", source, dir, err)
	}
	i := &imported{found: found, tree: isTree(dir)}
	specs := defaultSettings().Folders.Specs
	if i.tree {
		t, err := a.treeIn(ctx, dir)
		if err != nil {
			return nil, err
		}
		specs = t.Settings().Folders.Specs
		if err := freeNames(t, specs, source); err != nil {
			return nil, err
		}
	}
	return i, i.encode(specs, source)
}

func (i *imported) dagFile() string { return i.files[len(i.files)-1].path }

// encode makes the specs; what is written was read before, by the code that reads it in a run.
func (i *imported) encode(specs, source string) error {
	session, err := importer.Session(source)
	if err != nil {
		return err
	}
	dag, err := importer.DAG(source, i.found)
	if err != nil {
		return err
	}
	i.files = []templateFile{
		{specFile(specs, schemas.SessionKind, source), session},
		{specFile(specs, schemas.DAGKind, source), dag},
	}
	for _, f := range i.files {
		for _, p := range schemas.DecoderFor(kinds(), defaultSettings()).Decode(f.path, f.data).Problems {
			if p.Severity == schemas.Error {
				return fmt.Errorf("the commands make no valid spec: %s: %s", p.Field, p.Message)
			}
		}
	}
	return nil
}

func defaultSettings() *schemas.SettingsSpec {
	s := &schemas.SettingsSpec{}
	s.Default()
	return s
}

func specFile(specs string, k schemas.Kind, name string) string {
	return path.Join(specs, k.Plural, name+".yaml")
}

// treeIn reads the tree in dir.
func (a *app) treeIn(ctx context.Context, dir string) (*state.Tree, error) {
	a.global.dir = dir
	_, t, err := a.load(ctx)
	return t, err
}

// isTree reports whether dir is the folder of a tree.
func isTree(dir string) bool {
	found, err := state.Find(dir, kinds())
	if err != nil {
		return false
	}
	real, err := realPath(dir)
	return err == nil && real == found
}

// freeNames refuses where another file has an object of the name.
func freeNames(t *state.Tree, specs, name string) error {
	for _, k := range []schemas.Kind{schemas.SessionKind, schemas.DAGKind} {
		e := t.Entry(schemas.Ref{Kind: k.Name, Name: name})
		if e != nil && e.Object != nil && e.Object.Path != specFile(specs, k, name) {
			return fmt.Errorf("%s exists already, in %s; nothing was written", e.Ref, e.Object.Path)
		}
	}
	return nil
}

// checkFree refuses before anything is written where a file of a spec is taken; --missing does not help there.
func checkFree(dir string, i *imported) error {
	root, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, taken, err := sortFiles(root, i.files)
	if err == nil && len(taken) > 0 {
		return fmt.Errorf("%s has files of these names already, nothing was written: %s; move or remove them, and run the command again",
			dir, strings.Join(taken, ", "))
	}
	return err
}

// importedNode is a line of what init --from prints.
type importedNode struct {
	Node  string   `json:"node"`
	Run   []string `json:"run"`
	Needs []string `json:"needs,omitempty"`
	From  string   `json:"from"`
	Held  string   `json:"held,omitempty"`
}

// printImported prints the nodes that were written, and says what was left out.
func (a *app) printImported(i *imported) error {
	var nodes []importedNode
	for _, c := range i.found.Commands {
		nodes = append(nodes, importedNode{Node: c.Name, Run: c.Run, Needs: c.Needs, From: c.From, Held: c.Held})
	}
	if a.global.output != formatTable {
		return a.print(nodes)
	}
	for _, o := range i.found.Omitted {
		a.note("left out: %s: %s: %s", o.From, o.What, o.Why)
	}
	if a.global.quiet {
		return nil
	}
	t := render.NewTable(a.palette(), "NODE", "RUNS", "FROM", "HELD")
	for _, n := range nodes {
		held := n.Held
		if held == "" {
			held = "-"
		}
		t.Row(n.Node, commandLine(n.Run), n.From, held)
	}
	return t.Write(a.stdout)
}

// commandLine is a command in a line: of a text for a shell, its first line that says something.
func commandLine(argv []string) string {
	if len(argv) > 2 && argv[len(argv)-2] == "-c" {
		line, more, _ := strings.Cut(strings.TrimSpace(argv[len(argv)-1]), "\n")
		if more != "" {
			line += " …"
		}
		return line
	}
	return strings.Join(argv, " ")
}
