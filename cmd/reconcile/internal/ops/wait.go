package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// WaitRequest requests to wait until objects have a condition or a phase.
type WaitRequest struct {
	Objects []string      // kind/name, or the ids of clarifications
	For     string        // condition=NAME[=VALUE] or phase=NAME
	Timeout time.Duration // maximum time; 0: check once
}

// Met is an object that has the condition or phase.
type Met struct {
	Ref       string `json:"ref"`
	Condition string `json:"condition,omitempty"` // or
	Phase     string `json:"phase,omitempty"`
	Status    string `json:"status,omitempty"` // of the condition
}

// String returns the met condition or phase of the object, such as "dag/checks: Ready True".
func (m Met) String() string {
	if m.Condition == "" {
		return m.Ref + ": phase " + m.Phase
	}
	return m.Ref + ": " + m.Condition + " " + m.Status
}

// Wait waits until all objects of a WaitRequest have met its condition or phase, or until its timeout. It follows the
// files that other processes write, and runs nothing itself. It warns of stalled objects, and keeps waiting. At the
// timeout it fails, and names the objects that it still waits for.
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
	w := &waiter{env: env, open: o, goal: g, reported: map[schemas.Ref]string{}}
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

// goal is a condition with a value, or a phase.
type goal struct {
	condition string // "": the phase is compared
	value     string
}

// parseGoal parses condition=Ready, condition=Stalled=False or phase=Succeeded. A missing condition counts as False.
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

// misspelt returns the condition that someone who waits for an unknown one probably meant, or "". Other names may be conditions of a
// kind.
func misspelt(name string) string {
	common := []string{schemas.Ready, schemas.Reconciling, schemas.Stalled}
	if slices.Contains(common, name) {
		return ""
	}
	return schemas.GuessWord(name, common)
}

func (g goal) String() string {
	if g.condition == "" {
		return "phase " + g.value
	}
	return g.condition + " " + g.value
}

// metBy reports whether an object has reached the goal for its present spec: a status of an earlier spec does not
// count.
func (g goal) metBy(e *state.Entry) bool {
	switch {
	case e == nil || outdated(e):
		return false
	case e.Broken():
		c := readiness.ConditionOf(e, g.condition)
		return c != nil && c.Reason == settle.ReasonInvalidSpec && strings.EqualFold(string(c.Status), g.value)
	}
	if g.condition == "" {
		return e.HasStatus() && strings.EqualFold(e.Status().Base().Phase, g.value)
	}
	c := readiness.ConditionOf(e, g.condition)
	switch {
	case c != nil:
		return strings.EqualFold(string(c.Status), g.value)
	case !readiness.ExpectsStatus(e) && g.condition == schemas.Ready:
		return strings.EqualFold(g.value, string(schemas.True))
	}
	return e.HasStatus() && g.condition != schemas.Ready && strings.EqualFold(g.value, string(schemas.False))
}

func outdated(e *state.Entry) bool {
	return e.Object != nil && e.HasStatus() && e.Status().Base().ObservedDigest != e.Object.Digest
}

// until returns when all objects have reached the goal, or with an error at the timeout. It uses real time, not the
// clock of the records.
func (w *waiter) until(ctx context.Context, timeout time.Duration) error {
	up, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for open := w.unmet(); len(open) > 0; open = w.unmet() {
		if timeout == 0 {
			return w.timeoutError(timeout)
		}
		w.reportStalled(open)
		if w.follower == nil {
			f, err := w.env.follow(followInterval, w.paths()...)
			if err != nil {
				return err
			}
			defer f.close()
			w.follower = f
		}
		switch err := w.next(up); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return w.timeoutError(timeout)
		case err != nil:
			return err
		}
	}
	return nil
}

// waiter follows the files of some objects.
type waiter struct {
	env      Env
	open     *openTree
	goal     goal
	refs     []schemas.Ref
	follower *follower
	reported map[schemas.Ref]string // the last reported reason of a stalled object
}

// unmet lists the objects that have not reached the goal.
func (w *waiter) unmet() []schemas.Ref {
	var out []schemas.Ref
	for _, ref := range w.refs {
		if !w.goal.metBy(w.open.tree.Entry(ref)) {
			out = append(out, ref)
		}
	}
	return out
}

// reportStalled reports stalled objects, once for each reason.
func (w *waiter) reportStalled(open []schemas.Ref) {
	for _, ref := range open {
		e := w.open.tree.Entry(ref)
		if !isStalled(e) {
			delete(w.reported, ref)
			continue
		}
		if why := readiness.Because(e); why != w.reported[ref] {
			w.reported[ref] = why
			w.env.warn(fmt.Sprintf("%s is stalled, and nothing will change that by itself: %s", ref, why))
		}
	}
}

// isStalled reports whether an object cannot progress without an action.
func isStalled(e *state.Entry) bool {
	return e != nil && (e.Broken() || !outdated(e) && readiness.IsStalled(e))
}

// next waits for changed files, and refreshes the objects.
func (w *waiter) next(ctx context.Context) error {
	paths, err := w.follower.next(ctx)
	if err != nil {
		return err
	}
	if paths == nil {
		paths = w.paths()
	}
	if err := w.open.refresh(ctx, paths); err != nil {
		return fmt.Errorf("look again: %w", err)
	}
	return nil
}

func (w *waiter) paths() []string {
	var out []string
	for _, ref := range w.refs {
		if p := w.open.store.StatusPath(ref); p != "" {
			out = append(out, p)
		}
		if e := w.open.tree.Entry(ref); e != nil && e.Object != nil {
			out = append(out, e.Object.Path)
		}
	}
	return out
}

// timeoutError names the objects that have not reached the goal.
func (w *waiter) timeoutError(timeout time.Duration) error {
	var parts []error
	for _, ref := range w.unmet() {
		parts = append(parts, fmt.Errorf("%s: waited %s for %s; %s", ref, timeout, w.goal, w.currentState(ref)))
	}
	return errors.Join(parts...)
}

func (w *waiter) currentState(ref schemas.Ref) string {
	e := w.open.tree.Entry(ref)
	if e == nil {
		return "it is gone"
	}
	s := "it is " + cmp.Or(readiness.PhaseWord(e), "-")
	if why := readiness.Because(e); why != "" {
		s += " (" + why + ")"
	}
	if isStalled(e) {
		s += ", and nothing will change that by itself"
	}
	return s
}
