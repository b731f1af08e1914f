package engine

import (
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// maxProblems bounds the lines about one turn: a branch switch may break any number of files.
const maxProblems = 20

// reportProblems warns of new problems of the tree's files after each turn of a watcher. A watcher prints its report
// only at its end, and a user who saves a broken file needs to know at once.
func reportProblems(l *loop.Loop, warn func(text string)) {
	observe := l.Observe
	known := map[string]bool{}
	l.Observe = func(reports []settle.Report, t *state.Tree) {
		observe(reports, t)
		if reports != nil || t == nil {
			return
		}
		lines, now := newProblems(t.Problems(), known)
		for _, line := range lines[:min(len(lines), maxProblems)] {
			warn(line)
		}
		switch {
		case len(lines) > maxProblems:
			warn(fmt.Sprintf("and %d more problems; \"reconcile validate\" lists them", len(lines)-maxProblems))
		case len(now) == 0 && len(known) > 0:
			warn("the problems of the files are gone")
		}
		known = now
	}
}

// newProblems returns a line for each problem that is not in known, and the set of all lines.
func newProblems(problems []schemas.Problem, known map[string]bool) (lines []string, now map[string]bool) {
	now = make(map[string]bool, len(problems))
	for _, p := range problems {
		line := p.Error()
		if p.Severity == schemas.Warning {
			line = "warning: " + line
		}
		if !known[line] && !now[line] {
			lines = append(lines, line)
		}
		now[line] = true
	}
	return lines, now
}
