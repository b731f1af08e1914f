package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// lookEvery is how often Wait looks whether the file of a status changed. One lstat costs some microseconds.
const lookEvery = 100 * time.Millisecond

// WaitRequest asks to wait until objects have a condition or a phase.
type WaitRequest struct {
	Objects []string      // kind/name, or the ids of clarifications
	For     string        // condition=NAME[=VALUE] or phase=NAME
	Timeout time.Duration // how long at most; 0: look once
}

// Met is an object that has what was waited for.
type Met struct {
	Ref       string `json:"ref"`
	Condition string `json:"condition,omitempty"` // or
	Phase     string `json:"phase,omitempty"`
	Status    string `json:"status,omitempty"` // of the condition
}

// String is "dag/checks: Ready True".
func (m Met) String() string {
	if m.Condition == "" {
		return m.Ref + ": phase " + m.Phase
	}
	return m.Ref + ": " + m.Condition + " " + m.Status
}

// Wait waits until all the objects have what is waited for. It looks at the files that other processes write, and runs nothing
// itself. It warns of an object that is stalled, and waits on. When the time is up it fails, and says what it still waits for.
func Wait(ctx context.Context, env Env, q WaitRequest) ([]Met, error) {
	g, err := parseGoal(q.For)
	if err != nil {
		return nil, err
	}
	if q.Timeout < 0 {
		return nil, badField("timeout", " %s is negative", q.Timeout)
	}
	o, err := env.open(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer o.store.Close()
	w := &waiter{env: env, openTree: o, goal: g, reported: map[schemas.Ref]string{}}
	found, err := findAll(o.tree, q.Objects)
	if err != nil {
		return nil, typed(err)
	}
	var out []Met
	for _, e := range found {
		w.refs = append(w.refs, e.Ref)
		m := Met{Ref: e.Ref.String(), Condition: g.condition, Status: g.value}
		if g.condition == "" {
			m.Phase, m.Status = g.value, ""
		}
		out = append(out, m)
	}
	if err := w.until(ctx, q.Timeout); err != nil {
		return nil, typed(err)
	}
	return out, nil
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
		return goal{}, badField("for", " %q: there is no condition %q (did you mean %q?)", s, name, misspelt(name))
	case what == "condition" && !given:
		return goal{condition: name, value: string(schemas.True)}, nil
	case what == "condition" && value != "":
		return goal{condition: name, value: value}, nil
	}
	return goal{}, badField("for", " %q: write condition=Ready, condition=Stalled=False or phase=Succeeded", s)
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

// until returns when nothing is left to wait for, or with an error when the time is up. The time is real time, whatever
// the clock of the records says.
func (w *waiter) until(ctx context.Context, timeout time.Duration) error {
	up, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for open := w.missing(); len(open) > 0; open = w.missing() {
		if timeout > 0 { // else the error says it, now
			w.reportStalled(open)
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
	env Env
	*openTree
	goal     goal
	refs     []schemas.Ref
	seen     map[string]stamp
	reported map[schemas.Ref]string // why an object is stalled, as reported last
}

// stamp is what the file system says of a file; the zero stamp is that of a file that does not exist.
type stamp struct {
	size  int64
	mtime time.Time
}

// missing lists the objects that are not there yet.
func (w *waiter) missing() []schemas.Ref {
	var out []schemas.Ref
	for _, ref := range w.refs {
		if !w.goal.metBy(w.tree.Entry(ref)) {
			out = append(out, ref)
		}
	}
	return out
}

// reportStalled reports of what is waited for why it is stalled, once for each reason.
func (w *waiter) reportStalled(open []schemas.Ref) {
	for _, ref := range open {
		e := w.tree.Entry(ref)
		if !isStalled(e) {
			delete(w.reported, ref)
			continue
		}
		if why := controllers.Because(e); why != w.reported[ref] {
			w.reported[ref] = why
			w.env.warn(fmt.Sprintf("%s is stalled, and nothing will change that by itself: %s", ref, why))
		}
	}
}

// isStalled reports whether waiting for an object is in vain until somebody does something.
func isStalled(e *state.Entry) bool {
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
	if err := w.refresh(ctx, w.changed()); err != nil {
		return fmt.Errorf("look again: %w", err)
	}
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
	for _, ref := range w.missing() {
		parts = append(parts, fmt.Errorf("%s: waited %s for %s; %s", ref, timeout, w.goal, w.standing(ref)))
	}
	return errors.Join(parts...)
}

func (w *waiter) standing(ref schemas.Ref) string {
	e := w.tree.Entry(ref)
	if e == nil {
		return "it is gone"
	}
	s := "it is " + cmp.Or(controllers.PhaseWord(e), "-")
	if why := controllers.Because(e); why != "" {
		s += " (" + why + ")"
	}
	if isStalled(e) {
		s += ", and nothing will change that by itself"
	}
	return s
}
