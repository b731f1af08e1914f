package engine

import (
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// mostProblems bounds the lines about one turn: a branch switch may break any number of files.
const mostProblems = 20

// reportProblems reports which problems of the tree's files came up, after each turn of a watcher: it prints its report only
// when it ends, and whoever saved a broken file is to know at once.
func reportProblems(l *loop.Loop, warn func(text string)) {
	observe := l.Observe
	told := map[string]bool{}
	l.Observe = func(reports []controllers.Report, t *state.Tree) {
		observe(reports, t)
		if reports != nil || t == nil {
			return
		}
		lines, now := newProblems(t.Problems(), told)
		for _, line := range lines[:min(len(lines), mostProblems)] {
			warn(line)
		}
		switch {
		case len(lines) > mostProblems:
			warn(fmt.Sprintf("and %d more problems; \"reconcile validate\" lists them", len(lines)-mostProblems))
		case len(now) == 0 && len(told) > 0:
			warn("the problems of the files are gone")
		}
		told = now
	}
}

// newProblems returns a line for each problem that is not in told, and the set of all lines.
func newProblems(problems []schemas.Problem, told map[string]bool) (lines []string, now map[string]bool) {
	now = make(map[string]bool, len(problems))
	for _, p := range problems {
		line := p.Error()
		if p.Severity == schemas.Warning {
			line = "warning: " + line
		}
		if !told[line] && !now[line] {
			lines = append(lines, line)
		}
		now[line] = true
	}
	return lines, now
}
