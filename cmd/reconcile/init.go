package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

const initLong = `Create a tree in DIR, or in the current directory: reconcile.yaml with the settings, an empty specs/, and the files for
git. It declares no work. --example adds a session, two agents, a workflow and a DAG that does a little real work, all with
comments; "reconcile" then runs it.

--from finds the commands of a project, and adds a DAG of them with its session: targets of a Makefile, scripts of
package.json, build, vet and test of Go modules, recipes of a justfile, or the steps of workflows for GitHub Actions. It
prints them, and runs none. Commands that may not end, or may change other systems, are held by a line for you to remove.
In an existing tree it writes only these two specs.

Existing files are never changed. If one of the names is taken, nothing is written, unless --missing asks for the other
files. Exceptions are .gitattributes, which gets a line, with a command in git's configuration, so that
"reconcile merge-driver" merges files of the state; and .gitignore, which gets lines for locks and for the search index.

--agents finds the installed programs of known agents, and writes a spec with comments for each that the tree does not have. In an
existing tree it writes only these.

In a folder of a tree it creates no other tree, unless DIR names its folder.

With --github it creates instead the workflows for GitHub Actions, and the action that they share: they reconcile when
specs change, on a schedule and when people comment, and comment on pull requests what these would do.`

func newInitCmd(a *app) *cobra.Command {
	q, w, github := ops.InitRequest{}, ops.InitWorkflowsRequest{}, false
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a tree: settings, a folder for specs, and the files for git",
		Long:  initLong,
		Example: "  reconcile init\n" +
			"  reconcile init --example demo && reconcile -C demo\n" +
			"  reconcile init --from make\n" +
			"  reconcile init --github    # at the top of a repository",
		Args: arguments(0, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.global.dir, q.Nested = a.within(args[0]), true
			}
			switch {
			case q.Agents && github:
				return badUsage("--agents writes specs: leave out --github")
			case q.From != "" && github:
				return badUsage("--from makes a DAG of its own: leave out --example and --github")
			case github:
				w.Missing = q.Missing
				r, err := ops.InitWorkflows(cmd.Context(), a.env(), w)
				if err != nil {
					return err
				}
				if r.File != "" {
					a.note("this build has no release number: write the release that workflows are to install into %s, in place of %s", r.File, r.Mark)
				}
				a.note("next: read docs/actions.md of reconcile, commit .github, and push")
				return nil
			case w.Release != "":
				return badUsage("--release needs --github: it is the release that workflows install")
			}
			return a.init(cmd.Context(), q)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().BoolVar(&q.Missing, "missing", false, "write the files whose names are free, and skip the others")
	cmd.Flags().BoolVar(&q.Example, "example", false, "also write an example: a session, agents, a workflow and a DAG")
	cmd.Flags().BoolVar(&q.Agents, "agents", false, "also write the specs of the known agents whose programs are installed")
	choiceFlag(cmd, cmd.Flags(), &q.From, "from", "also write a DAG of the commands of `SOURCE`: "+strings.Join(ops.ImportSources, ", "),
		ops.ImportSources)
	cmd.Flags().BoolVar(&github, "github", false, "create the workflows for GitHub Actions instead")
	cmd.Flags().StringVar(&w.Release, "release", "", "the `VERSION` of reconcile that they install, a file of a release with its sum, or a path in the repository (default this version)")
	return cmd
}

func (a *app) init(ctx context.Context, q ops.InitRequest) error {
	r, err := ops.Init(ctx, a.env(), q)
	if inside, ok := errors.AsType[*ops.InsideTreeError](err); ok {
		inside.Tree = shownFromHere(inside.Tree)
		return badUsage("%v. To make one all the same, name its folder: reconcile init DIR", inside)
	}
	if err != nil {
		return err
	}
	if q.Agents {
		if err := a.printInstalled(&r); err != nil {
			return err
		}
	}
	command := "reconcile"
	if a.global.dir != "." {
		command += " -C " + a.global.dir
	}
	switch {
	case r.DAG != "":
		a.note("next: look at %s, and run: %s", r.DAG, command)
		return a.printImported(&r)
	case q.Example:
		a.note("next: %s", command)
	default:
		a.note("next: write a spec into %s, and run: %s", filepath.Join(a.global.dir, "specs"), command)
	}
	return nil
}

// printInstalled prints the installed agents, and notes those that are not found.
func (a *app) printInstalled(r *ops.InitResult) error {
	if len(r.NotFound) > 0 {
		a.note("not found: %s", strings.Join(r.NotFound, ", "))
	}
	return a.result(r.Agents, nil, func() error {
		if a.global.quiet {
			return nil
		}
		return a.table(len(r.Agents), "", func(i int) []string {
			at := r.Agents[i]
			return []string{at.Agent, at.Program, cmp.Or(at.Version, "-"), at.Login, cmp.Or(at.File, "is there")}
		}, "AGENT", "PROGRAM", "VERSION", "LOGIN", "SPEC")
	})
}

// printImported prints the imported nodes, and notes the omitted ones.
func (a *app) printImported(r *ops.InitResult) error {
	return a.result(r.Nodes, nil, func() error {
		for _, o := range r.Omitted {
			a.note("left out: %s", o)
		}
		if a.global.quiet {
			return nil
		}
		return a.table(len(r.Nodes), "", func(i int) []string {
			n := r.Nodes[i]
			return []string{n.Node, importedCommand(n.Run), n.From, cmp.Or(n.Held, "-")}
		}, "NODE", "RUNS", "FROM", "HELD")
	})
}

// importedCommand returns a command as one line: for a shell script, its first non-empty line.
func importedCommand(argv []string) string {
	if len(argv) > 2 && argv[len(argv)-2] == "-c" {
		line, more, _ := strings.Cut(strings.TrimSpace(argv[len(argv)-1]), "\n")
		if more != "" {
			line += " …"
		}
		return line
	}
	return strings.Join(argv, " ")
}
