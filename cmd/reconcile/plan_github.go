package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/mirroring"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
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
	set := &t.Settings().GitHub
	switch {
	case set.Repo == "":
		return fmt.Errorf("which repository the tree is mirrored to is not known: set github.repo in %s", schemas.SettingsPath)
	case a.egress().GitHubToken() == "":
		return fmt.Errorf("neither %s nor %s is set: it takes a token to see what stands on the issues of %s", egress.TokenVariable,
			egress.OtherToken, set.Repo)
	}
	calls := []plannedCall{}
	client, err := a.egress().GitHub(a.global.dir, set, set.Repo, func(c github.Call) {
		calls = append(calls, plannedCall{c.Method, c.Path, c.Body})
	})
	if err != nil {
		return err
	}
	records := mirroring.NewRecords(s, set.Repo, true, func(string) {})
	keys, err := mirroring.KeysOf(ctx, a.getenv, records)
	if err != nil {
		return err
	}
	issues, err := mirroring.ProjectTree(ctx, t, records, mirroring.FilesOnline(a.config(), set))
	if err != nil {
		return err
	}
	e := &mirroring.Mirror{Remote: client, Records: records, Keys: keys, Now: a.now, Dry: true}
	rep, err := e.Out(ctx, issues)
	for _, n := range rep.Notes {
		a.note("%s", n)
	}
	if err = errors.Join(err, rep.Later); rep.Left > 0 && err == nil {
		err = fmt.Errorf("what %s would take cannot be told; the notes say why", render.Plural(rep.Left, "issue"))
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
