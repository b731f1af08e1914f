package plan

import (
	"context"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/mirroring"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Calls are the calls that would update GitHub's issues from a tree.
type Calls struct {
	Calls []github.Call
	Notes []string // notes for the user
}

// GitHub plans the calls with which the mirror would update the issues on GitHub from the tree, with a dry client that
// makes none. It reads the present state of the issues. With an error the calls may be incomplete; they are nil if
// nothing could be read.
func GitHub(ctx context.Context, c tree.Config, s *state.Store, t *state.Tree) (*Calls, error) {
	set, policy := &t.Settings().GitHub, egress.Policy{Getenv: c.Getenv}
	switch {
	case set.Repo == "":
		return nil, fmt.Errorf("which repository the tree is mirrored to is not known: set github.repo in %s", schemas.SettingsPath)
	case policy.GitHubToken() == "":
		return nil, fmt.Errorf("neither %s nor %s is set: it takes a token to see what stands on the issues of %s",
			egress.TokenVariable, egress.OtherToken, set.Repo)
	}
	out := &Calls{}
	client, err := policy.GitHub(c.Dir, set, set.Repo, func(call github.Call) { out.Calls = append(out.Calls, call) })
	if err != nil {
		return nil, err
	}
	records := mirroring.NewRecords(s, set.Repo, true, func(string) {})
	keys, err := mirroring.KeysOf(ctx, c.Getenv, records)
	if err != nil {
		return nil, err
	}
	issues, err := mirroring.ProjectTree(ctx, t, records, mirroring.FilesOnline(c, set))
	if err != nil {
		return nil, err
	}
	m := &mirroring.Mirror{Remote: client, Records: records, Keys: keys, Now: c.Now, Dry: true}
	rep, err := m.Out(ctx, issues)
	out.Notes = rep.Notes
	if err = errors.Join(err, rep.Later); rep.Left > 0 && err == nil {
		err = fmt.Errorf("what %s would take cannot be told; the notes say why", schemas.Count(rep.Left, "issue"))
	}
	return out, err
}
