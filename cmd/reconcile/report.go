package main

import (
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

// progress is the view of a run that fits stderr.
func (a *app) progress() render.Progress {
	if a.global.quiet {
		return render.Silent{}
	}
	return &render.Lines{W: a.stderr, Palette: a.paletteFor(a.stderr)}
}

// report prints how a run ended.
func (a *app) report(out outcome) error { return a.print(out.Counts) }
