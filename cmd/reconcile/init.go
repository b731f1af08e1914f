package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/importer"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// template is what every tree begins with, example is work to look at.
//
//go:embed all:template all:example
var template embed.FS

const (
	templateDir = "template"
	exampleDir  = "example"
)

// initOptions are the flags of init.
type initOptions struct {
	missing bool
	example bool
	from    string
	github  bool
	release string
}

const initLong = `Make a tree in DIR, or in the current directory: reconcile.yaml with the settings, an empty specs/, and what git needs.
No work is declared. --example adds a session, two agents, a workflow and a DAG that does a little real work, all with
comments; "reconcile" then runs it.

--from finds the commands that a project has, and adds a DAG of them with its session: targets of a Makefile, scripts of
package.json, build, vet and test of Go modules, recipes of a justfile, or the steps of workflows for GitHub Actions. It
prints them, and runs none. What may run without an end, or change things elsewhere, is held by a line that you remove. In
a tree it writes these two specs only.

Files that exist are never touched. If one of the names is taken, nothing is written, unless --missing asks for the
other files. Only .gitattributes gets a line more, and git the command for it: files of the state are merged by
"reconcile merge-driver"; and .gitignore lines for locks and for the index of search, which is derived.

In a folder of a tree it makes no other one, unless DIR names its place.

With --github it makes the workflows for GitHub Actions, and the action that they share, instead: they reconcile when
specs change, by the clock and when people comment, and say on pull requests what these would do.`

func newInitCmd(a *app) *cobra.Command {
	o := &initOptions{}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a tree: settings, a folder for specs, and what git needs",
		Long:  initLong,
		Example: "  reconcile init\n" +
			"  reconcile init --example demo && reconcile -C demo\n" +
			"  reconcile init --from make\n" +
			"  reconcile init --github    # at the top of a repository",
		Args: arguments(0, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.initWith(cmd.Context(), args, *o) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().BoolVar(&o.missing, "missing", false, "write the files whose names are free, and leave the others")
	cmd.Flags().BoolVar(&o.example, "example", false, "also write a session, agents, a workflow and a DAG to look at")
	cmd.Flags().Var(&choice{value: &o.from, allowed: importer.Sources}, "from",
		"also write a DAG of the commands of `SOURCE`: "+strings.Join(importer.Sources, ", "))
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(importer.Sources, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&o.github, "github", false, "make the workflows for GitHub Actions instead")
	cmd.Flags().StringVar(&o.release, "release", "", "the `VERSION` of reconcile that they install, a file of a release with its sum, or a path in the repository (default this version)")
	return cmd
}

func (a *app) initWith(ctx context.Context, args []string, o initOptions) error {
	dir := a.global.dir
	if len(args) == 1 {
		dir = a.within(args[0])
	}
	switch {
	case o.from != "" && (o.example || o.github):
		return badUsage("--from makes a DAG of its own: leave out --example and --github")
	case o.github:
		return a.initGitHub(dir, o)
	case o.release != "":
		return badUsage("--release needs --github: it is the release that workflows install")
	}
	if len(args) == 0 {
		if above := treeAbove(dir); above != "" {
			return badUsage("%s is a folder of the tree %s: work there needs no other tree. To make one all the same, name its "+
				"folder: reconcile init DIR", dir, above)
		}
	}
	return a.init(ctx, dir, o)
}

// templateFile is one file of the template; its path is below the root of the tree.
type templateFile struct {
	path string
	data []byte
}

func (a *app) init(ctx context.Context, dir string, o initOptions) error {
	var work *imported
	var err error
	if o.from != "" {
		if work, err = a.importFrom(ctx, dir, o.from); err != nil {
			return err
		}
	}
	if err := a.writeTree(dir, o, work); err != nil {
		return err
	}
	if err := a.addIgnored(dir, ignoredLines...); err != nil {
		return err
	}
	if err := a.installMergeDriver(ctx, dir); err != nil {
		return err
	}
	command := "reconcile"
	if dir != "." {
		command += " -C " + dir
	}
	switch {
	case work != nil:
		a.note("next: look at %s, and run: %s", filepath.Join(dir, filepath.FromSlash(work.dagFile())), command)
		return a.printImported(work)
	case o.example:
		a.note("next: %s", command)
	default:
		a.note("next: write a spec into %s, and run: %s", filepath.Join(dir, "specs"), command)
	}
	return nil
}

// writeTree writes the files of a tree: what it begins with, unless it is there, and the work that was asked for.
func (a *app) writeTree(dir string, o initOptions, work *imported) error {
	var files []templateFile
	if work == nil || !work.tree {
		first, err := filesOf(template, templateDir)
		if err != nil {
			return err
		}
		files = first
	}
	if o.example {
		more, err := filesOf(template, exampleDir)
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	if work != nil {
		if err := checkFree(dir, work); err != nil {
			return err
		}
		files = append(files, work.files...)
	}
	return a.writeNew(dir, files, o.missing)
}

// ignoredLines are the lines of .gitignore for what is local to a clone.
var ignoredLines = []string{"/.reconcile/", "/state/**/*.lock", indexing.IgnoreLine}

// addIgnored adds lines to .gitignore, but for those that are there.
func (a *app) addIgnored(dir string, lines ...string) error {
	const name = ".gitignore"
	root, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := regular.Read(root, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", name, regular.Cause(err))
	}
	text := string(old)
	there := strings.Fields(text)
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(there, l) })
	if len(lines) == 0 {
		return nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += strings.Join(lines, "\n") + "\n"
	if err := durable.WriteFile(root, specs.Scratch, name, []byte(text)); err != nil {
		return err
	}
	a.note("wrote %s", filepath.Join(dir, name))
	return nil
}

// filesOf are the files below dir.
func filesOf(from embed.FS, dir string) (files []templateFile, err error) {
	err = fs.WalkDir(from, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := from.ReadFile(name)
		files = append(files, templateFile{path: strings.TrimPrefix(name, dir+"/"), data: data})
		return err
	})
	return files, err
}

// writeNew writes files in dir whose names are free. Where one is taken it writes nothing at all, unless missing says to
// write the others.
func (a *app) writeNew(dir string, files []templateFile, missing bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the tree: %w", err)
	}
	root, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	free, taken, err := sortFiles(root, files)
	if err != nil {
		return err
	}
	if len(taken) > 0 && !missing {
		return fmt.Errorf("%s has files of these names already, nothing was written: %s; "+
			"use --missing to add only the others", dir, strings.Join(taken, ", "))
	}
	for _, f := range free {
		if err := durable.WriteFile(root, specs.Scratch, f.path, f.data); err != nil {
			return err
		}
		a.note("wrote %s", filepath.Join(dir, filepath.FromSlash(f.path)))
	}
	return nil
}

func openFolder(dir string) (*os.Root, error) {
	root, err := regular.Root(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, regular.Cause(err))
	}
	return root, nil
}

// sortFiles tells the files whose names are free from those that are taken. A file that is there with the very content
// is neither: an init that was killed can simply be repeated.
func sortFiles(root *os.Root, files []templateFile) (free []templateFile, taken []string, err error) {
	for _, f := range files {
		is, err := specs.Look(root, f.path, f.data)
		if err != nil {
			return nil, nil, err
		}
		switch is {
		case specs.Free:
			free = append(free, f)
		case specs.Taken:
			taken = append(taken, f.path)
		}
	}
	return free, taken, nil
}
