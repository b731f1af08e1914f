package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/term"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas/document"
)

// print writes a result as -o json or yaml says.
func (a *app) print(v any) error {
	if a.global.output == formatYAML {
		return document.YAML(a.stdout, v)
	}
	return document.JSON(a.stdout, v)
}

// palette is what stdout can do: on a terminal it paints, unless somebody objects, and fits the width.
func (a *app) palette() render.Palette { return a.paletteFor(a.stdout) }

func (a *app) paletteFor(w io.Writer) render.Palette {
	off := a.global.noColor || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb"
	if !isTerminal(w) {
		return render.Palette{}
	}
	width, _ := terminalSize(w)
	return render.Palette{On: !off, Width: width}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// note prints a line for people beside the results: to stderr, and not with --quiet.
func (a *app) note(format string, args ...any) {
	if !a.global.quiet {
		fmt.Fprintln(a.stderr, clean(fmt.Sprintf(format, args...)))
	}
}

// warnLine prints a warning, on one line: what it quotes cannot pass for another message. --quiet does not silence it.
func (a *app) warnLine(text string) { fmt.Fprintln(a.stderr, "warning: "+render.Line(text)) }

// reporter prints what an operation reports besides its result.
type reporter struct {
	app  *app
	last time.Time // when a line about counted work was printed
}

func (r *reporter) Note(text string) { r.app.note("%s", text) }
func (r *reporter) Warn(text string) { r.app.warnLine(text) }

// Count prints a line now and then.
func (r *reporter) Count(step string, done, total int) {
	const often = 2 * time.Second
	if now := time.Now(); now.Sub(r.last) >= often && total > 0 {
		r.last = now
		r.app.note("%s %s of %s", step, render.Grouped(done), render.Grouped(total))
	}
}

// clean makes text from files fit for the terminal.
func clean(s string) string { return render.Text(s) }

// sink shows on stderr what a run has to say.
type sink struct {
	render.Progress
	quiet func(text string) // prints a warning where progress shows nothing; nil: progress shows it
	talk  bool              // show what is said in clarifications
}

// Report shows what the performer reports of a node.
func (s sink) Report(r controllers.Report) {
	s.Progress.Report(r)
	if r.Kind == controllers.Finished && r.Why != "" {
		s.Note(r.Why)
	}
}

// Said shows what was said in a clarification.
func (s sink) Said(c *controllers.Clarified) {
	if !s.talk {
		return
	}
	for _, line := range render.TalkLines(c) {
		s.Note(line)
	}
}

// Missed shows that more was said.
func (s sink) Missed(n int) {
	if s.talk {
		s.Note(fmt.Sprintf("%d more events about questions; \"reconcile events\" lists them", n))
	}
}

// Warn shows what is wrong while the run goes on. It is no progress: --quiet does not silence it.
func (s sink) Warn(text string) {
	if s.quiet != nil {
		s.quiet(text)
		return
	}
	s.Note(text)
}

// view shows a run on stderr; talk shows what is said in clarifications.
func (a *app) view(talk bool) ops.View {
	out := sink{Progress: a.progress(), talk: talk}
	if a.global.quiet {
		out.quiet = func(text string) { fmt.Fprintln(a.stderr, clean(text)) }
	}
	return out
}

// progress is the view of a run that fits stderr: live on a terminal, lines elsewhere and beside a log, nothing with
// --quiet.
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

// terminalSize asks the terminal; one that does not tell is taken for 80 by 24.
func terminalSize(w any) (width, height int) {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width, height
		}
	}
	return 80, 24
}

// printDone prints what was done to things that have ids.
func (a *app) printDone(ids []string, what string) error {
	if a.global.output != formatTable {
		return a.print(doneReport{IDs: ids})
	}
	for _, id := range ids {
		fmt.Fprintf(a.stdout, "%s: %s\n", clean(id), what)
	}
	return nil
}

// doneReport is what verify and remove print for machines.
type doneReport struct {
	IDs []string `json:"ids"`
}
