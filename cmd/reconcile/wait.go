package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// lookEvery is how often wait looks whether the file of a status changed. One lstat costs some microseconds.
const lookEvery = 100 * time.Millisecond

// waitOptions are the flags of wait.
type waitOptions struct {
	condition string
	timeout   time.Duration
}

func newWaitCmd(a *app) *cobra.Command {
	o := &waitOptions{}
	cmd := &cobra.Command{
		Use:   "wait KIND/NAME…",
		Short: "Wait until objects have a condition or a phase",
		Long: `Wait until all the objects have a condition or a phase. It looks at the files that other processes write, and runs
nothing itself. Of an object that is stalled it says why as soon as it sees it, and waits on: somebody may put it right.
When the time is up it exits with 1 and says what it still waits for.`,
		Example: "  reconcile wait dag/checks --timeout 10m\n" +
			"  reconcile wait session/health --for=phase=Completed\n" +
			"  reconcile wait dag/checks --for=condition=Stalled=False",
		Args:              arguments(1, -1, "an object"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.wait(cmd.Context(), args, *o) },
		ValidArgsFunction: a.completeObjects(false),
	}
	cmd.Flags().StringVar(&o.condition, "for", "condition=Ready",
		"what to wait for: `condition=NAME[=VALUE]` or phase=NAME")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "wait at most this `DURATION`, for example 5m; 0 looks once")
	return cmd
}

// goal is what wait waits for: a condition with a value, or a phase.
type goal struct {
	condition string // "" means that the phase is meant
	value     string
}

// parseGoal reads condition=Ready, condition=Stalled=False or phase=Succeeded. A condition that is absent is False.
func parseGoal(s string) (goal, error) {
	what, rest, _ := strings.Cut(s, "=")
	name, value, given := strings.Cut(rest, "=")
	switch {
	case name == "":
	case what == "phase" && !given:
		return goal{value: name}, nil
	case what == "condition" && misspelt(name) != "":
		return goal{}, badUsage("--for %q: there is no condition %q (did you mean %q?)", s, name, misspelt(name))
	case what == "condition" && !given:
		return goal{condition: name, value: string(schemas.True)}, nil
	case what == "condition" && value != "":
		return goal{condition: name, value: value}, nil
	}
	return goal{}, badUsage("--for %q: write condition=Ready, condition=Stalled=False or phase=Succeeded", s)
}

// misspelt is the common condition that a name, which is none of them, was probably meant to be; "" if there is none.
// Other names are conditions that a kind may have.
func misspelt(name string) string {
	common := []string{schemas.Ready, schemas.Reconciling, schemas.Stalled}
	if slices.Contains(common, name) {
		return ""
	}
	return schemas.Nearest(name, common)
}

func (g goal) String() string {
	if g.condition == "" {
		return "phase " + g.value
	}
	return g.condition + " " + g.value
}

// metBy looks at what a run made of the spec as it is now: a status of an earlier spec meets nothing.
func (g goal) metBy(e *state.Entry) bool {
	switch {
	case e == nil || outdated(e):
		return false
	case e.Broken():
		c := controllers.ConditionOf(e, g.condition)
		return c != nil && c.Reason == controllers.ReasonInvalidSpec && strings.EqualFold(string(c.Status), g.value)
	}
	if g.condition == "" {
		return e.HasStatus() && strings.EqualFold(e.Status().Base().Phase, g.value)
	}
	c := controllers.ConditionOf(e, g.condition)
	switch {
	case c != nil:
		return strings.EqualFold(string(c.Status), g.value)
	case !controllers.ExpectsStatus(e) && g.condition == schemas.Ready:
		return strings.EqualFold(g.value, string(schemas.True))
	}
	return e.HasStatus() && g.condition != schemas.Ready && strings.EqualFold(g.value, string(schemas.False))
}

func outdated(e *state.Entry) bool {
	return e.Object != nil && e.HasStatus() && e.Status().Base().ObservedDigest != e.Object.Digest
}

func (a *app) wait(ctx context.Context, args []string, o waitOptions) error {
	g, err := parseGoal(o.condition)
	if err != nil {
		return err
	}
	if o.timeout < 0 {
		return badUsage("--timeout %s is negative", o.timeout)
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	w := &waiter{app: a, store: s, tree: t, goal: g, told: map[schemas.Ref]string{}}
	w.warn = func(text string) { fmt.Fprintln(a.stderr, clean(text)) } // also with --quiet: it is no progress
	for _, arg := range args {
		e, err := ops.Find(t, arg)
		if err != nil {
			return err
		}
		w.refs = append(w.refs, e.Ref)
	}
	if err := w.until(ctx, o.timeout); err != nil {
		return err
	}
	return a.printMet(w.refs, g)
}

// met is an object that has what was waited for, as -o json shows it.
type met struct {
	Ref       string `json:"ref"`
	Condition string `json:"condition,omitempty"` // or
	Phase     string `json:"phase,omitempty"`
	Status    string `json:"status,omitempty"` // of the condition
}

func (a *app) printMet(refs []schemas.Ref, g goal) error {
	if a.global.output != formatTable {
		all := make([]met, len(refs))
		for i, ref := range refs {
			all[i] = met{Ref: ref.String(), Condition: g.condition, Status: g.value}
			if g.condition == "" {
				all[i].Phase, all[i].Status = g.value, ""
			}
		}
		return a.print(all)
	}
	if a.global.quiet {
		return nil
	}
	for _, ref := range refs {
		fmt.Fprintf(a.stdout, "%s: %s\n", ref, g)
	}
	return nil
}

// until returns when nothing is left to wait for, or with an error when the time is up. The time is real time, whatever
// the clock of the records says.
func (w *waiter) until(ctx context.Context, timeout time.Duration) error {
	up, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for open := w.open(); len(open) > 0; open = w.open() {
		if timeout > 0 { // else it is said anyway, now
			w.tellStalled(open)
		}
		switch err := w.next(up); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return w.late(timeout)
		case err != nil:
			return err
		}
	}
	return nil
}

// waiter follows the files of some objects.
type waiter struct {
	app   *app
	store *state.Store
	tree  *state.Tree
	goal  goal
	refs  []schemas.Ref
	seen  map[string]stamp
	warn  func(string)
	told  map[schemas.Ref]string // why an object is stalled, as it was told last
}

// stamp is what the file system says of a file; the zero stamp is that of a file that does not exist.
type stamp struct {
	size  int64
	mtime time.Time
}

// open lists the objects that are not there yet.
func (w *waiter) open() []schemas.Ref {
	var out []schemas.Ref
	for _, ref := range w.refs {
		if !w.goal.metBy(w.tree.Entry(ref)) {
			out = append(out, ref)
		}
	}
	return out
}

// tellStalled says of what is waited for why it is stalled, once for each reason.
func (w *waiter) tellStalled(open []schemas.Ref) {
	for _, ref := range open {
		e := w.tree.Entry(ref)
		if !stalled(e) {
			delete(w.told, ref)
			continue
		}
		if why := controllers.Because(e); why != w.told[ref] {
			w.told[ref] = why
			w.warn(fmt.Sprintf("%s is stalled, and nothing will change that by itself: %s", ref, why))
		}
	}
}

// stalled reports whether waiting for an object is in vain until somebody does something.
func stalled(e *state.Entry) bool {
	return e != nil && (e.Broken() || !outdated(e) && controllers.IsStalled(e))
}

// next waits for a moment, and looks at the objects again whose files changed.
func (w *waiter) next(ctx context.Context) error {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	t, err := w.app.reader.Refresh(ctx, w.store, w.tree, w.changed())
	if err != nil {
		return fmt.Errorf("look again: %w", err)
	}
	w.tree = t
	return nil
}

// changed lists the files of the objects whose stamp differs from the last one seen; at first, all of them.
func (w *waiter) changed() []string {
	first := w.seen == nil
	if first {
		w.seen = map[string]stamp{}
	}
	out := []string{} // none: only the journals
	for _, path := range w.paths() {
		now := w.stamp(path)
		if now != w.seen[path] || first {
			w.seen[path] = now
			out = append(out, path)
		}
	}
	return out
}

func (w *waiter) paths() []string {
	var out []string
	for _, ref := range w.refs {
		if p := w.store.StatusPath(ref); p != "" {
			out = append(out, p)
		}
		if e := w.tree.Entry(ref); e != nil && e.Object != nil {
			out = append(out, e.Object.Path)
		}
	}
	return out
}

func (w *waiter) stamp(path string) stamp {
	info, err := w.store.Root().Lstat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

// late says what is still waited for.
func (w *waiter) late(timeout time.Duration) error {
	var parts []error
	for _, ref := range w.open() {
		parts = append(parts, fmt.Errorf("%s: waited %s for %s; %s", ref, timeout, w.goal, w.standing(ref)))
	}
	return errors.Join(parts...)
}

func (w *waiter) standing(ref schemas.Ref) string {
	e := w.tree.Entry(ref)
	if e == nil {
		return "it is gone"
	}
	s := "it is " + controllers.PhaseWord(e)
	if why := controllers.Because(e); why != "" {
		s += " (" + why + ")"
	}
	if stalled(e) {
		s += ", and nothing will change that by itself"
	}
	return s
}
