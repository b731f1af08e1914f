package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// reportRows is how many objects a run lists; "reconcile get" lists all.
const reportRows = 50

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

// runReport is the result of a run for machines.
type runReport struct {
	Objects   []kindCount `json:"objects"` // in the order of the table of kinds
	Ready     int         `json:"ready"`
	Total     int         `json:"total"`
	Unchanged bool        `json:"unchanged,omitempty"` // nothing had changed since the last run
	Ran       int         `json:"ran"`
	Wrote     int         `json:"wrote"`
	Commit    string      `json:"commit,omitempty"`
	Pushed    bool        `json:"pushed,omitempty"`   // all that is committed is on the remote
	Took      bool        `json:"took,omitempty"`     // what others pushed was taken in
	Held      bool        `json:"held,omitempty"`     // the memory waits for a lock; the next run goes on
	Waits     []string    `json:"waits,omitempty"`    // what people have to do, a line each
	NotReady  []objectRow `json:"notReady,omitempty"` // left out where the run did not need to look

	sent     bool                      // something was pushed
	standing controllers.StandingCount // of all objects, where the run looked
	notReady []*state.Entry
}

// kindCount counts the objects of a kind.
type kindCount struct {
	Kind  string `json:"kind"`
	Ready int    `json:"ready"`
	Total int    `json:"total"`
}

// objectRow is one object, and why it is as it is.
type objectRow struct {
	Ref    string `json:"ref"`
	Phase  string `json:"phase,omitempty"`
	Reason string `json:"reason"`
}

// newReport gathers what there is to say about a run.
func newReport(out engine.Result) runReport {
	r := runReport{Waits: out.Waits, Unchanged: out.Unchanged, Ran: out.Ran, Wrote: out.Wrote, Commit: out.Commit, Held: out.Held,
		Pushed: out.Pushed, Took: out.Took, sent: out.Sent}
	counts := out.Counts
	if out.Tree != nil {
		counts = nil
		list := slices.Collect(out.Only.Active(out.Tree))
		counted := controllers.StandingByKind(list)
		if out.Only == nil {
			addDormant(counted, out.Tree)
		}
		for kind, c := range counted {
			counts = append(counts, state.Count{Kind: kind, Ready: c.Ready, Total: c.Total()})
			r.standing.Add(c)
		}
		r.notReady = controllers.NotReady(list)
	}
	for _, k := range kinds() {
		for _, c := range counts {
			if c.Kind == k.Name {
				r.Objects = append(r.Objects, kindCount{k.Name, c.Ready, c.Total})
				r.Ready += c.Ready
				r.Total += c.Total
			}
		}
	}
	return r
}

// report prints how a run ended: the objects, or where they are many those that are not ready, and a line that sums up.
// A run for which nothing had changed lists only what failed.
func (a *app) report(out engine.Result) error {
	r := newReport(out)
	if a.global.output != formatTable {
		r.NotReady = rowsOf(r.notReady)
		return a.print(r)
	}
	if err := a.problems(problemsIn(out)); err != nil {
		return err
	}
	if err := render.StandingTable(a.stdout, a.palette(), a.listed(out, r), reportRows); err != nil {
		return err
	}
	if a.global.quiet {
		return nil
	}
	if r.Total == 0 {
		a.note("%s", a.noObjects())
		return nil
	}
	if err := a.printWrapped(r.summary()); err != nil {
		return err
	}
	return a.waits(r.Waits)
}

// waits tells what people have to do before all is done.
func (a *app) waits(lines []string) error {
	const most = 10
	for _, line := range lines[:min(most, len(lines))] {
		if err := a.printWrapped(render.Line(line)); err != nil {
			return err
		}
	}
	if len(lines) <= most {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "… and %d more; \"reconcile ready\" lists them\n", len(lines)-most)
	return err
}

// noObjects says what to do about a tree without objects.
func (a *app) noObjects() string {
	return fmt.Sprintf("no objects in %s yet; \"reconcile init --example\" makes some to look at", a.global.dir)
}

// listed chooses the objects that a run lists.
func (a *app) listed(out engine.Result, r runReport) []*state.Entry {
	if a.global.quiet {
		return slices.DeleteFunc(r.notReady, func(e *state.Entry) bool { return controllers.Standing(e).Waiting == 1 })
	}
	if out.Tree == nil || out.Unchanged || r.Total > reportRows {
		return r.notReady
	}
	var rows []*state.Entry
	for _, e := range entriesOf(out) {
		if controllers.Standing(e).Total() == 1 && (e.HasStatus() || controllers.ExpectsStatus(e)) && !spent(e) {
			rows = append(rows, e)
		}
	}
	return rows
}

// spent reports whether e is an action that was applied: it is over, and "get actions" lists it.
func spent(e *state.Entry) bool {
	return e.Kind == schemas.ActionKind.Name && controllers.Standing(e).Ready == 1
}

// problems prints the problems of files.
func (a *app) problems(list []schemas.Problem) error {
	if len(list) == 0 {
		return nil
	}
	if err := render.Problems(a.stdout, a.palette(), list); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.stdout)
	return err
}

// entries lists all objects of a tree, by kind and name.
func entries(t *state.Tree) []*state.Entry { return entriesOf(engine.Result{Tree: t}) }

// entriesOf lists the objects that a run was about, by kind and name.
func entriesOf(o engine.Result) []*state.Entry { return slices.Collect(o.Only.Entries(o.Tree)) }

// problemsIn lists what is wrong with the files of the objects that a run was about.
func problemsIn(o engine.Result) []schemas.Problem {
	switch {
	case o.Tree == nil:
		return nil
	case o.Only == nil:
		return o.Tree.Problems()
	}
	var out []schemas.Problem
	for _, e := range entriesOf(o) {
		out = append(out, e.Problems...)
	}
	return out
}

// rowsOf are objects as rows.
func rowsOf(list []*state.Entry) []objectRow {
	rows := make([]objectRow, len(list))
	for i, e := range list {
		rows[i] = objectRow{Ref: e.Ref.String(), Phase: cmp.Or(controllers.PhaseWord(e), "-"), Reason: controllers.Because(e)}
	}
	return rows
}

// addDormant counts the objects of a tree that are dormant: they are ready.
func addDormant(counts map[string]controllers.StandingCount, t *state.Tree) {
	for _, k := range kinds() {
		c := counts[k.Name]
		for range t.Dormant(k.Name) {
			c.Ready++
		}
		if c.Total() > 0 {
			counts[k.Name] = c
		}
	}
}

// printWrapped prints a sentence, on a terminal broken at words.
func (a *app) printWrapped(text string) error {
	lines := []string{text}
	if width := a.palette().Width; width > 0 {
		lines = render.Wrap(text, width)
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(lines, "\n"))
	return err
}

// summary is "12 of 13 objects ready (1 session, 12 dags), 1 waiting; 4 runs, 3 files written".
func (r runReport) summary() string {
	s := fmt.Sprintf("%d of %s ready (%s)", r.Ready, render.Plural(r.Total, "object"), r.kinds())
	for _, part := range []struct {
		n    int
		word string
	}{{r.standing.Waiting, "waiting"}, {r.standing.Failed, "failed"}, {r.standing.Invalid, "invalid"}} {
		if part.n > 0 {
			s += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	if s += "; " + r.deeds(); r.Held {
		s += "; the memory waits for a lock"
	}
	return s
}

func (r runReport) deeds() string {
	switch {
	case r.Unchanged:
		return "nothing changed since the last run"
	case r.Ran == 0 && r.Wrote == 0 && r.Commit == "":
		return "nothing to do" + r.exchanged()
	}
	s := render.Plural(r.Ran, "run") + ", " + render.Plural(r.Wrote, "file") + " written"
	if r.Commit != "" {
		s += ", committed as " + shortHash(r.Commit)
	}
	return s + r.exchanged()
}

// exchanged tells what went to the remote and what came from there.
func (r runReport) exchanged() string {
	var s string
	switch {
	case r.sent && r.Commit != "":
		s = " and pushed"
	case r.sent:
		s = ", pushed what was committed before"
	}
	if r.Took {
		s += ", took in what others pushed"
	}
	return s
}

// kinds lists the kinds with their counts.
func (r runReport) kinds() string {
	var parts []string
	for _, c := range r.Objects {
		k, _ := kinds().Find(c.Kind)
		word := k.Plural
		if c.Total == 1 {
			word = k.Singular()
		}
		parts = append(parts, fmt.Sprintf("%d %s", c.Total, word))
	}
	return strings.Join(parts, ", ")
}

func shortHash(hash string) string { return hash[:min(len(hash), 10)] }
