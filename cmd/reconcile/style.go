package main

import (
	"context"
	"fmt"
	"strings"

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
			r, err := ops.Style(cmd.Context(), a.env(), q)
			err = a.result(r, err, func() error { return a.printStyle(q, r) })
			if err == nil && len(r.Differences) > 0 {
				err = exitWith(exitNotReady)
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&q.Check, "check", nil, "compare `FILE` with the style of the project; may be repeated")
	return cmd
}

func (a *app) printStyle(q ops.StyleRequest, r *ops.StyleResult) error {
	for _, d := range r.Differences {
		name := d.Name
		if name != "" {
			name = " of " + name
		}
		a.printf("%s:%d: %s%s: %s; the project has %s\n", clean(d.File), d.Line, d.Aspect, clean(name), d.Is, d.Wanted)
	}
	switch {
	case len(q.Check) > 0:
		return nil
	case len(r.Styles) == 0 && q.Language == "":
		a.note("there is no source code of a language that is looked for; name the language to see how its lines are indented: reconcile style LANGUAGE")
	case len(r.Styles) == 0:
		a.note("there is no source code of that language")
	}
	err := render.StylesTable(a.palette(), r.Styles).Write(a.stdout)
	for _, s := range r.Styles {
		if n := s.Files - s.Parsed; n > 0 {
			a.note("%s: the names and patterns of %s of %d were found line by line, without a parser", s.Language, schemas.Count(n, "file"), s.Files)
		}
	}
	return err
}

func newDepsCmd(a *app) *cobra.Command {
	q := ops.DepsRequest{}
	cmd := &cobra.Command{
		Use:   "deps [NAME] [PATH]",
		Short: "Show what the project depends on, and where and how its code uses that",
		Long: `Show the dependencies that manifests declare, with the versions of lock files, where the code imports them and which of their names it uses most;
what is declared and not imported, or imported and not declared; and what a lock file or Go's module cache calls deprecated, or needs a later version of
the language. Nothing is asked from the network.`,
		Example: "  reconcile deps\n  reconcile deps react -o json\n  reconcile deps --all",
		Args:    arguments(0, 2, "a dependency and a path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Dir = a.here
			if len(args) > 0 {
				q.Name = args[0]
			}
			if len(args) > 1 {
				q.Paths = args[1:]
			}
			return a.deps(cmd.Context(), q)
		},
	}
	cmd.Flags().BoolVar(&q.All, "all", false, "also show what only other dependencies need")
	return cmd
}

func (a *app) deps(ctx context.Context, q ops.DepsRequest) error {
	r, err := ops.Deps(ctx, a.env(), q)
	if err == nil {
		for _, why := range r.Unread {
			a.warnLine(why)
		}
	}
	return a.result(r, err, func() error {
		err := a.table(len(r.Dependencies), "no dependencies were found", func(i int) []string {
			d := r.Dependencies[i]
			return []string{d.Name, d.Ecosystem, d.Version, d.Locked, d.State, map[bool]string{true: "dev"}[d.DevOnly], fmt.Sprint(len(d.UsedIn)), d.Manifest,
				strings.Join(d.Warnings, "; ")}
		}, "NAME", "ECOSYSTEM", "VERSION", "LOCKED", "STATE", "DEV", "USES", "MANIFEST", "NOTES")
		if q.Name == "" {
			return err
		}
		for _, d := range r.Dependencies {
			for _, at := range d.UsedIn {
				a.printf("  %s\n", clean(at))
			}
			for _, api := range d.CommonAPIs {
				a.printf("  %s %d\n", clean(api.Name), api.Uses)
			}
		}
		return err
	})
}

const formatDiff = "diff"

func newPreviewCmd(a *app) *cobra.Command {
	q := ops.PreviewRequest{}
	var proposed []string
	cmd := &cobra.Command{
		Use:   "preview [PATH...]",
		Short: "Show what changes, and what a person should look at first",
		Long: `Show the changes of the work tree, new files included, as a unified diff with its numbers of lines, and flag what a person should look
at: more than 100 removed lines, files with secrets, workflows of the CI, lock files and settings, lines that look like secrets, binary files,
changed modes, and changes that are large enough for a review. Nothing is changed. Secrets are hidden, but with -o diff, whose output
git apply takes.

--proposed compares PATH with a text that it would get: a file, or the standard input for -. So it also compares two files. It may be
repeated, once for each PATH.`,
		Example: "  reconcile preview\n  reconcile preview --base main cmd/\n  generate | reconcile preview api.go --proposed -\n  reconcile preview -o diff > change.diff",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Paths = args
			for _, p := range proposed {
				text, err := a.read("--proposed", p, streamSize)
				if err != nil {
					return err
				}
				q.Proposed = append(q.Proposed, text)
			}
			q.Raw = a.global.output == formatDiff
			c, err := ops.Preview(cmd.Context(), a.env(), q)
			if err == nil && q.Raw {
				for i := range c.Files {
					a.printf("%s", c.Files[i].Diff)
				}
				return nil
			}
			return a.result(c, err, func() error {
				if len(c.Files) == 0 {
					a.note("nothing changes")
					return nil
				}
				return render.Preview(a.stdout, a.palette(), c)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Base, "base", "", "compare with the commit, branch or tag `REF` (default HEAD)")
	f.StringVar(&q.Commit, "commit", "", "compare the files of the commit `REF` (default those of the work tree)")
	f.BoolVar(&q.Staged, "staged", false, "compare what is staged, not the files")
	f.StringArrayVar(&proposed, "proposed", nil, "compare with the text in `FILE` that the path would get, - is the standard input; may be repeated")
	a.outputFlag(cmd, f, formatTable, formatJSON, formatYAML, formatDiff)
	return cmd
}
