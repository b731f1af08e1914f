package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/checks"
)

func newToolsCmd(a *app) *cobra.Command {
	q, install, yes, ask := ops.ToolsRequest{}, false, false, false
	cmd := &cobra.Command{
		Use:   "tools [CATEGORY] [PATH…]",
		Short: "Show the tools with which the project checks its code, and why these",
		Long: `Discover the linters, formatters, type checkers, test frameworks and language servers of the project, in any folder, with or
without a tree. A configuration file says so surely (high), a dependency in a manifest well (medium), a file of CI or a program
that is merely installed hardly (low). In a repository with several projects each folder has its own, and the nearest
configuration wins. Programs are only asked for their versions, and those of the project itself not before its checks are
allowed.

With --install the arguments after CATEGORY are tools, as NAME or NAME@VERSION; without any it is what the setting tools.install
lists. They get into the environment of the project: node_modules, .venv, or .reconcile/tools. Manifests and lock files stay
as they are. Afterwards the tool has to tell its version, and to find a planted fault where one is known for it; otherwise the
project is as before. What tools.install does not list is installed only if a person says yes to it at a terminal.

Where nothing says which tool to use, --ask asks the agent of the tree with the role academic, and writes what it recommends as
inferred preferences; "reconcile tools choose" answers it for good.

CATEGORY is linter, formatter, type_checker, test_framework or lsp.`,
		Example: "  reconcile tools\n  reconcile tools linter web\n  reconcile tools --language python -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && slices.Contains(checks.Categories(), checks.Category(args[0])) {
				q.Categories, args = []checks.Category{checks.Category(args[0])}, args[1:]
			}
			if install {
				return a.installTools(cmd.Context(), ops.InstallToolsRequest{CheckRequest: ops.CheckRequest{Tools: args, Trust: yes}})
			}
			q.Paths, q.Dir = args, a.project
			return a.tools(cmd.Context(), q, ask)
		},
	}
	cmd.Flags().StringVar(&q.Language, "language", "", "only tools of the `LANGUAGE`")
	cmd.Flags().BoolVar(&q.Refresh, "refresh", false, "discover again, and ask programs again for their versions; else a discovery is used for an hour")
	cmd.Flags().BoolVar(&ask, "ask", false, "ask the knowledge agent of the tree, with the role academic, what nothing decides")
	cmd.Flags().DurationVar(&q.Timeout, "timeout", 30*time.Second, "the time limit of --ask, as a `TIME`")
	cmd.Flags().BoolVar(&install, "install", false, "install what is missing and listed in the settings, or the tools that the arguments name")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "let the checks and installations of this project run, now and later, without a question")
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatName, formatWide)
	cmd.AddCommand(newChooseCmd(a))
	return cmd
}

// researched says what a knowledge agent said.
func (a *app) researched(r *ops.Research) {
	if r == nil {
		return
	}
	if r.Why != "" {
		a.note("no agent decides: %s", clean(r.Why))
	}
	for _, why := range r.Refused {
		a.note("%s does not decide: %s", r.Agent, clean(why))
	}
}

// installTools installs tools, and asks a person at a terminal about those that the settings do not list.
func (a *app) installTools(ctx context.Context, q ops.InstallToolsRequest) error {
	install := func() (*ops.InstallToolsResult, error) {
		return trusted(a, &q.CheckRequest, func() (*ops.InstallToolsResult, error) { return ops.InstallTools(ctx, a.env(), q) })
	}
	r, err := install()
	if unlisted, ok := errors.AsType[*ops.UnlistedError](err); ok && isTerminal(a.stdin) && isTerminal(a.stderr) {
		for i, name := range unlisted.Tools {
			fmt.Fprintf(a.stderr, "The settings do not list %s. To install it, this would run:\n  %s\n", clean(name), clean(unlisted.Commands[i]))
			if !a.confirmed("Install it? [y/N] ") {
				return badUsage("nothing was installed")
			}
			q.Accepted = append(q.Accepted, name)
		}
		r, err = install()
	}
	return a.result(r, err, func() error {
		return a.table(len(r.Installed), "nothing is to be installed", func(i int) []string {
			t := r.Installed[i]
			return []string{t.Tool, t.Says, cmp.Or(strings.Join(t.Proved, ", "), "-"), clean(t.Program)}
		}, "TOOL", "VERSION", "PROVED", "PROGRAM")
	})
}

func newChooseCmd(a *app) *cobra.Command {
	q := ops.ChooseToolRequest{}
	cmd := &cobra.Command{
		Use: "choose CATEGORY LANGUAGE [TOOL]", Short: "Choose the tool of a category for a language", Args: arguments(2, 3, "category, language and tool"),
		Long: `Write a preference, which wins from then on over what is discovered. It is for a tree of reconcile. Without TOOL the choices are
shown, and a terminal asks. What an agent chooses in its run is inferred: it holds where the project says nothing, and never
wins over what a person chose.`,
		Example: "  reconcile tools choose formatter python black --reason \"the code is formatted so\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Category, q.Language = checks.Category(args[0]), strings.ToLower(args[1])
			if len(args) > 2 {
				q.Tool = args[2]
			}
			return a.chooseTool(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&q.Session, "session", "", "only for the `SESSION`")
	cmd.Flags().StringVar(&q.Reason, "reason", "", "`TEXT` that says why")
	cmd.Flags().StringVar(&q.By, "by", "", "the `NAME` of who chooses (default: the account)")
	return cmd
}

func (a *app) chooseTool(ctx context.Context, q ops.ChooseToolRequest) error {
	if q.Tool == "" {
		options, err := ops.ToolOptions(ctx, a.env(), a.project, q)
		if err != nil {
			return err
		}
		a.note("%s", render.ToolOptions(options))
		if !isTerminal(a.stdin) || !isTerminal(a.stderr) {
			return badUsage("name one of these tools")
		}
		fmt.Fprint(a.stderr, "which? ")
		line, err := bufio.NewReader(a.stdin).ReadString('\n')
		if q.Tool = strings.TrimSpace(line); err != nil || q.Tool == "" {
			return badUsage("nothing was chosen")
		}
	}
	r, err := ops.ChooseTool(ctx, a.env(), q)
	return a.result(r, err, func() error { return nil })
}

func (a *app) tools(ctx context.Context, q ops.ToolsRequest, ask bool) error {
	find := ops.Tools
	if ask {
		find = ops.AskTools
	}
	r, err := find(ctx, a.env(), q)
	wide := a.global.output == formatWide
	switch {
	case err != nil:
		return err
	case a.global.output == formatName:
		names := map[string]bool{}
		for _, t := range r.Tools {
			names[t.Tool] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			a.printf("%s\n", name)
		}
		return nil
	case wide:
		a.global.output = formatTable
	}
	return a.result(r, err, func() error {
		if len(r.Tools) == 0 && len(r.Undecided) == 0 {
			a.note("no tool is known for the files here")
			return nil
		}
		err := render.ToolsTable(a.palette(), r.Tools, wide).Write(a.stdout)
		a.researched(r.Research)
		for _, o := range r.Undecided {
			a.note("no configuration or manifest says which %s the project uses for %s: %s is recommended; reconcile tools choose %s %s %s", o.Category, o.Language,
				o.Options[0].Tool, o.Category, o.Language, o.Options[0].Tool)
			if wide {
				a.note("%s", render.ToolOptions(o.Options))
			}
		}
		return err
	})
}
