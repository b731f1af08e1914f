package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/plan"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

// plannedCall is a call that would change something on GitHub, as -o json prints it.
type plannedCall struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// planGitHub prints each call that would bring GitHub in step with the tree as it is, without making it. What stands
// there is looked at.
func (a *app) planGitHub(ctx context.Context) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	planned, err := plan.GitHub(ctx, a.config(), s, t)
	if planned == nil {
		return err
	}
	for _, n := range planned.Notes {
		a.note("%s", n)
	}
	calls := []plannedCall{}
	for _, c := range planned.Calls {
		calls = append(calls, plannedCall{c.Method, c.Path, c.Body})
	}
	return errors.Join(a.printCalls(calls, err == nil), err)
}

// printCalls prints calls; whole says that there are no others.
func (a *app) printCalls(calls []plannedCall, whole bool) error {
	if a.global.output != formatTable {
		return a.print(calls)
	}
	if len(calls) == 0 && whole && !a.global.quiet {
		fmt.Fprintln(a.stdout, "nothing to do")
	}
	for _, c := range calls {
		if _, err := fmt.Fprintln(a.stdout, render.Line(github.Call(c).String())); err != nil {
			return err
		}
	}
	return nil
}
