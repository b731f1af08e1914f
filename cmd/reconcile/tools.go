package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
)

func newToolsCmd(a *app) *cobra.Command {
	q := ops.ToolsRequest{}
	cmd := &cobra.Command{
		Use:   "tools [CATEGORY] [PATH…]",
		Short: "Show the tools with which the project checks its code, and why these",
		Long: `Discover the linters, formatters, type checkers, test frameworks and language servers of the project, in any folder, with or
without a tree. A configuration file says so surely (high), a dependency in a manifest well (medium), a file of CI or a program
that is merely installed hardly (low). In a repository with several projects each folder has its own, and the nearest
configuration wins. Nothing is installed. Programs are only asked for their versions, and those of the project itself not before
its checks are allowed.

Where nothing says which tool to use, "reconcile tools choose" answers that, for good.

CATEGORY is linter, formatter, type_checker, test_framework or lsp.`,
		Example: "  reconcile tools\n  reconcile tools linter web\n  reconcile tools --language python -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && slices.Contains(checks.Categories(), checks.Category(args[0])) {
				q.Categories, args = []checks.Category{checks.Category(args[0])}, args[1:]
			}
			q.Paths, q.Dir = args, a.project
			return a.tools(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&q.Language, "language", "", "only tools of the `LANGUAGE`")
	cmd.Flags().BoolVar(&q.Refresh, "refresh", false, "discover again, and ask programs again for their versions; else a discovery is used for an hour")
	cmd.AddCommand(newChooseCmd(a))
	return cmd
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
		a.note("%s", optionLines(options))
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

// optionLines are a line for each tool that may be chosen.
func optionLines(all []tools.Option) string {
	var lines []string
	for _, o := range all {
		line := "  " + o.Tool
		if o.Recommended {
			line += " (recommended)"
		}
		if len(o.Pros) > 0 {
			line += "  + " + strings.Join(o.Pros, ", ")
		}
		if len(o.Cons) > 0 {
			line += "  - " + strings.Join(o.Cons, ", ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (a *app) tools(ctx context.Context, q ops.ToolsRequest) error {
	r, err := ops.Tools(ctx, a.env(), q)
	return a.result(r, err, func() error {
		if len(r.Tools) == 0 && len(r.Undecided) == 0 {
			a.note("no tool is known for the files here")
			return nil
		}
		table := render.NewTable(a.palette(), "CATEGORY", "LANGUAGE", "FOLDER", "TOOL", "CONFIDENCE", "INSTALLED", "WHY")
		for _, t := range r.Tools {
			installed := "no"
			if t.Program != "" {
				installed = cmp.Or(t.Version, "yes")
			}
			table.Row(string(t.Category), t.Language, cmp.Or(t.Folder, "."), t.Tool, string(t.Confidence), installed, strings.TrimSpace(t.Why))
		}
		if err := table.Write(a.stdout); err != nil {
			return err
		}
		for _, o := range r.Undecided {
			a.note("nothing says which %s the project uses for %s:\n%s\nto choose: reconcile tools choose %s %s %s", o.Category, o.Language,
				optionLines(o.Options), o.Category, o.Language, o.Options[0].Tool)
		}
		return nil
	})
}
