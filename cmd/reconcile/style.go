package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newStyleCmd(a *app) *cobra.Command {
	q := ops.StyleRequest{}
	cmd := &cobra.Command{
		Use:   "style [LANGUAGE] [PATH]",
		Short: "Show how the code of the project is written: names, formatting, patterns",
		Long: `Show by majority how the code of a language is written: how names are joined, how lines are indented, which quotation marks are used, how
errors leave and imports are grouped, each with its share, the number of samples and an example. What a formatter's configuration says (.editorconfig,
prettier, ruff, black, rustfmt, clang-format) counts before what the files do. At most 500 files of a language are read; the result is kept
until one of them, or the configuration, changes.

--check compares files with the style of all others; the exit code is 4 if they differ.`,
		Example: "  reconcile style\n  reconcile style typescript web/ -o json\n  reconcile style --check api/handler.go",
		Args:    arguments(0, 2, "a language and a path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Dir = a.here
			if len(args) > 0 {
				q.Language = args[0]
			}
			if len(args) > 1 {
				q.Paths = args[1:]
			}
			if len(q.Check) > 0 && len(args) > 0 {
				return badUsage("--check takes the language of each file; leave out %q", args[0])
			}
			return a.style(cmd.Context(), q)
		},
	}
	cmd.Flags().StringArrayVar(&q.Check, "check", nil, "compare `FILE` with the style of the project; may be repeated")
	return cmd
}

func (a *app) style(ctx context.Context, q ops.StyleRequest) error {
	r, err := ops.Style(ctx, a.env(), q)
	if err := a.result(r, err, func() error { return a.styleTable(q, r) }); err != nil {
		return err
	}
	if len(r.Differences) > 0 {
		return exitWith(exitNotReady)
	}
	return nil
}

func (a *app) styleTable(q ops.StyleRequest, r *ops.StyleResult) error {
	if len(q.Check) > 0 {
		for _, d := range r.Differences {
			name := d.Name
			if name != "" {
				name = " of " + name
			}
			if _, err := fmt.Fprintf(a.stdout, "%s:%d: %s%s: %s; the project has %s\n", clean(d.File), d.Line, d.Aspect, clean(name), d.Is, d.Wanted); err != nil {
				return err
			}
		}
		return nil
	}
	if len(r.Styles) == 0 {
		if q.Language == "" {
			a.note("there is no source code of a language that is looked for; name the language to see how its lines are indented: reconcile style LANGUAGE")
			return nil
		}
		a.note("there is no source code of that language")
		return nil
	}
	t := render.NewTable(a.palette(), "LANGUAGE", "ASPECT", "VALUE", "SHARE", "SAMPLES", "EXAMPLE", "DECLARED")
	for _, s := range r.Styles {
		for _, c := range s.Rows() {
			share := "-"
			if c.Samples > 0 {
				share = fmt.Sprintf("%.0f%%", 100*c.Share)
			}
			t.Row(s.Language, c.Name, c.Value, share, fmt.Sprint(c.Samples), c.Example, c.Declared)
		}
	}
	if err := t.Write(a.stdout); err != nil {
		return err
	}
	for _, s := range r.Styles {
		if n := s.Files - s.Parsed; n > 0 {
			a.note("%s: the names and patterns of %s of %d were found line by line, without a parser", s.Language, schemas.Count(n, "file"), s.Files)
		}
	}
	return nil
}
