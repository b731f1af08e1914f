package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/term"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state/worktree"
)

// app is the environment of every command: the streams, the environment variables, the clock, the loop and the global
// flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	args           []string // of the command line
	getenv         func(string) string
	sandbox        *sandbox.Host         // confines the programs of agents; nil: it cannot
	ancestry       iter.Seq[[]string]    // the environments of this process's ancestors; nil: ancestors are ignored
	inherits       func(dir string) bool // whether this process has the lease of a run; nil: that is not examined
	now            func() time.Time
	engine         func(context.Context, engine.Options, engine.Request) (engine.Result, error)
	collector      *process.Collector // nil: the garbage collector is not tuned
	global         globalFlags
	here           string       // the user's folder: the current directory, or -C; set with global.dir by enterTree
	project        string       // the user's folder, also in the workspace of a run, where here is the tree
	prefix         string       // the path of here relative to the tree in global.dir; "" at its root
	log            *slog.Logger // nil: nothing is logged
	logTo          *os.File     // of --log-file
	unwritten      error        // the first error of printf
}

// globalFlags are the flags of every command.
type globalFlags struct {
	dir     string
	output  string
	noColor bool
	quiet   bool
	// logLevel and logFile configure the structured log.
	logLevel, logFile string
}

// The output formats.
const (
	formatTable    = "table"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatMarkdown = "markdown"
	formatSARIF    = "sarif"
	formatGitHub   = "github"
)

// print writes a result in the format of -o json or yaml.
func (a *app) print(v any) error {
	if a.global.output == formatYAML {
		return document.YAML(a.stdout, v)
	}
	return document.JSON(a.stdout, v)
}

// result prints the result of an operation, unless that failed: as -o json or yaml, or else by table.
func (a *app) result(v any, err error, table func() error) error {
	switch {
	case err != nil:
		return err
	case a.global.output != formatTable:
		return a.print(v)
	}
	return table()
}

// printf prints a part of a result. Its first error is that of the command.
func (a *app) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(a.stdout, format, args...); a.unwritten == nil {
		a.unwritten = err
	}
}

// conclude prints the last line of a result, unless --quiet, with an empty one before it where something is above it.
func (a *app) conclude(apart bool, format string, args ...any) {
	if a.global.quiet {
		return
	}
	if apart {
		a.printf("\n")
	}
	a.printf(format+"\n", args...)
}

// table prints a row for each of n items, or notes that there is none.
func (a *app) table(n int, none string, row func(i int) []string, heads ...string) error {
	if n == 0 && none != "" {
		a.note("%s", none)
	}
	t := render.NewTable(a.palette(), heads...)
	for i := range n {
		t.Row(row(i)...)
	}
	return t.Write(a.stdout)
}

// indexResult is result for an operation on the index. It then finishes the new index.
func (a *app) indexResult(ctx context.Context, v any, rest *ops.Pending, err error, table func() error) error {
	return errors.Join(a.result(v, err, table), rest.Finish(ctx))
}

// problemReport prints problems as annotations for GitHub or as SARIF, and otherwise the result that contains them.
func (a *app) problemReport(v any, problems []schemas.Problem, table func() error) error {
	switch a.global.output {
	case formatGitHub:
		return render.GitHub(a.stdout, a.repositoryPath(), problems)
	case formatSARIF:
		return render.SARIF(a.stdout, process.ReadBuild().Version, a.repositoryPath(), problems)
	}
	return a.result(v, nil, table)
}

// repositoryPath returns the path of the tree relative to the root of its git work tree, which annotations are relative
// to.
func (a *app) repositoryPath() string { return worktree.Below(a.global.dir) }

// palette returns the capabilities of stdout: on a terminal, colours unless they are disabled, and the width.
func (a *app) palette() render.Palette { return a.paletteFor(a.stdout) }

func (a *app) paletteFor(w io.Writer) render.Palette {
	off := a.global.noColor || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb"
	if !isTerminal(w) {
		return render.Palette{}
	}
	width, _ := terminalSize(w)
	return render.Palette{On: !off, Width: width}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// note prints a line for people to stderr, in addition to the results; --quiet silences it.
func (a *app) note(format string, args ...any) {
	if !a.global.quiet {
		fmt.Fprintln(a.stderr, clean(fmt.Sprintf(format, args...)))
	}
}

// warnLine prints a warning on one line, so that quoted text cannot be mistaken for another message. --quiet does not
// silence it.
func (a *app) warnLine(text string) { fmt.Fprintln(a.stderr, "warning: "+render.Line(text)) }

// reporter prints the reports of an operation besides its result.
type reporter struct {
	app  *app
	last time.Time // time of the last progress line
}

func (r *reporter) Note(text string) { r.app.note("%s", text) }
func (r *reporter) Warn(text string) { r.app.warnLine(text) }

// Count prints a line at intervals.
func (r *reporter) Count(step string, done, total int) {
	const often = 2 * time.Second
	if now := time.Now(); now.Sub(r.last) >= often && total > 0 {
		r.last = now
		r.app.note("%s %s of %s", step, render.Grouped(done), render.Grouped(total))
	}
}

// clean escapes text from files for the terminal.
func clean(s string) string { return render.Text(s) }

// view shows a run on stderr; talk shows clarification events.
func (a *app) view(talk bool) ops.View {
	out := render.Run{Progress: a.progress(), Talk: talk}
	if a.global.quiet {
		out.Warnings = a.stderr
	}
	return out
}

// progress returns the display for stderr: live on a terminal, lines otherwise or with a log, nothing with --quiet.
func (a *app) progress() render.Progress {
	switch {
	case a.global.quiet:
		return render.Silent{}
	case isTerminal(a.stderr) && a.getenv("TERM") != "dumb" && (a.log == nil || a.logTo != nil):
		size := func() (int, int) { return terminalSize(a.stderr) }
		return render.NewLive(a.stderr, a.paletteFor(a.stderr), size, time.Now, runtime.NumCPU())
	}
	return &render.Lines{W: a.stderr, Palette: a.paletteFor(a.stderr), Now: time.Now}
}

// terminalSize returns the size of a terminal; 80 by 24 if it is unknown.
func terminalSize(w any) (width, height int) {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width, height
		}
	}
	return 80, 24
}

// printDone prints what was done with objects, by their ids.
func (a *app) printDone(ids []string, what string, err error) error {
	return a.result(map[string][]string{"ids": ids}, err, func() error {
		for _, id := range ids {
			a.printf("%s: %s\n", clean(id), what)
		}
		return nil
	})
}
