package ops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/scaffold"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/merge"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// The configuration of git for the merge driver.
const (
	driverName    = "merge.reconcile.name"
	driverTitle   = "reconcile: statuses and records, field by field"
	driverKey     = "merge.reconcile.driver"
	driverCommand = "reconcile merge-driver %O %A %B %P"
	attributes    = ".gitattributes"
)

// MergeRequest names the versions of a state file: the common ancestor, and the two sides. Ours is overwritten with the
// result.
type MergeRequest struct{ Base, Ours, Theirs string }

// MergeFiles merges the files ours and theirs of a MergeRequest, with their base, field by field, into ours. If no side
// is JSON it merges them as text, like git without a driver, and marks conflicts. With an error, ours is unchanged.
func MergeFiles(ctx context.Context, env Env, q MergeRequest) (conflicts bool, err error) {
	defer func() { err = typed(err) }()
	var sides [3][]byte
	for i, name := range []string{q.Base, q.Ours, q.Theirs} {
		if sides[i], err = regular.ReadPath(name); err != nil {
			return false, fmt.Errorf("read a side of the merge: %w", err)
		}
	}
	merged, err := merge.Files(env.kinds(), sides[0], sides[1], sides[2])
	if errors.Is(err, merge.ErrNoJSON) {
		merged, conflicts, err = gitrepo.MergeFile(ctx, q.Base, q.Ours, q.Theirs)
	}
	if err != nil {
		return false, err
	}
	root, err := regular.Root(filepath.Dir(q.Ours))
	if err == nil {
		defer root.Close()
		err = durable.WriteFile(root, ".", filepath.Base(q.Ours), merged)
	}
	if err != nil {
		return false, fmt.Errorf("write the merged file: %w", err)
	}
	return conflicts, nil
}

// InstallMergeDriver configures the merge driver: in the attributes of the tree, and in the configuration of the clone.
// It notes each change.
func InstallMergeDriver(ctx context.Context, env Env) (err error) {
	defer func() { err = typed(err) }()
	if err := errors.Join(ctx.Err(), env.authorize("InstallMergeDriver")); err != nil {
		return err
	}
	s, err := env.Tree.Open()
	if err != nil {
		return err
	}
	defer s.Close()
	folder := path.Dir(path.Dir(s.StatusPath(schemas.Ref{Kind: schemas.DAGKind.Name, Name: "x"})))
	wrote, err := scaffold.AddLines(s.Root(), attributes, func(old string) []string { return env.lacksAttribute(old, folder+"/**") })
	if err != nil {
		return err
	}
	if wrote {
		env.noteWritten(filepath.Join(env.Tree.Dir, attributes))
	}
	repo, err := gitrepo.Open(env.Tree.Dir)
	if errors.Is(err, gitrepo.ErrNotARepo) {
		env.note("merges of state files: once the tree is in a git repository, run \"reconcile merge-driver --install\"")
		return nil
	}
	if err != nil {
		return err
	}
	changed, err := repo.Configure(ctx, [2]string{driverName, driverTitle}, [2]string{driverKey, driverCommand})
	if err != nil {
		return fmt.Errorf("%w; git merges state files as text until \"reconcile merge-driver --install\" succeeds", err)
	}
	if changed {
		env.note("git of this clone merges state files with \"reconcile merge-driver\"")
	}
	return nil
}

// lacksAttribute returns the line that .gitattributes lacks, unless it already has a merge attribute for the pattern.
func (e Env) lacksAttribute(old, pattern string) []string {
	for line := range strings.Lines(old) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != pattern || !strings.Contains(line, "merge") {
			continue
		}
		if words[1] != "merge=reconcile" {
			e.note("%s is left as it is: it has a line of its own for %s", attributes, pattern)
		}
		return nil
	}
	return []string{pattern + " merge=reconcile"}
}
