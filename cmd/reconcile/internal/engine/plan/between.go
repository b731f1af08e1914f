// Package plan computes what a run would do: between two commits, on a pull request, and on GitHub's issues. It
// executes nothing.
package plan

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
)

// plannedTree is the tree of one of the two commits of a plan, with the steps of a run over it.
type plannedTree struct {
	tree     *state.Tree
	problems []schemas.Problem // of the specs
	steps    []settle.Step
	specs    map[string][sha256.Size]byte // by path
	settings string
}

// Between plans the specs of head with the settings and the state of base. It ignores the work tree, and head's own
// settings and state: the author of head may not be trusted.
func Between(ctx context.Context, c tree.Config, repo *gitrepo.Repo, base, head string) (*mirror.Pull, []schemas.Problem, error) {
	before, err := planTree(ctx, c, repo, base, base)
	if err != nil {
		return nil, nil, fmt.Errorf("plan over the base %s: %w", base, err)
	}
	after, err := planTree(ctx, c, repo, base, head)
	if err != nil {
		return nil, nil, fmt.Errorf("plan over %s: %w", head, err)
	}
	p := &mirror.Pull{
		Version: mirror.PullVersion, Base: base, Head: head,
		Specs: !maps.Equal(before.specs, after.specs), Settings: before.settings != after.settings,
	}
	for _, problem := range after.problems {
		if problem.Severity == schemas.Error {
			p.Errors++
		} else {
			p.Warnings++
		}
	}
	anyway := make(map[settle.Step]bool, len(before.steps))
	for _, s := range before.steps {
		anyway[s] = true
	}
	var added []settle.Step
	for _, s := range after.steps {
		if anyway[s] && !(s.Verb == settle.StepRun && specDiffers(before.tree, after.tree, s.Ref)) {
			p.Anyway++
		} else {
			added = append(added, s)
		}
	}
	p.Steps = pullSteps(before.tree, after.tree, added)
	p.Bounds = Bounds(after.tree, added, c.Now())
	return p, after.problems, nil
}

// specDiffers reports whether an object has different specs in two trees: then its runs differ, too.
func specDiffers(a, b *state.Tree, ref schemas.Ref) bool {
	x, y := a.Entry(ref), b.Entry(ref)
	return x == nil || y == nil || x.Object == nil || y.Object == nil || x.Object.Digest != y.Object.Digest
}

// planTree checks out and plans one commit.
func planTree(ctx context.Context, c tree.Config, repo *gitrepo.Repo, base, head string) (*plannedTree, error) {
	dir, err := os.MkdirTemp("", "reconcile-plan-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the tree: %w", err)
	}
	defer os.RemoveAll(dir) // the system removes the rest
	m, err := c.Checkout(ctx, repo, base, head, dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	s := &plannedTree{specs: map[string][sha256.Size]byte{}}
	if s.tree, err = m.Store.Load(ctx); err != nil {
		return nil, err
	}
	folders := s.tree.Settings().Folders
	look := func(f gitrepo.Stored) error {
		if f.Path == schemas.SettingsPath {
			s.settings = string(f.Data)
		} else {
			s.specs[f.Path] = sha256.Sum256(f.Data)
		}
		return nil
	}
	if err := repo.Files(ctx, head, []string{folders.Specs, schemas.SettingsPath}, look); err != nil {
		return nil, err
	}
	if wanted := inputsOf(s.tree); wanted != nil {
		if err := repo.FilesLike(ctx, head, wanted, m.Put); err != nil {
			return nil, err
		}
		if s.tree, err = m.Store.Load(ctx); err != nil {
			return nil, err
		}
	}
	for _, p := range tree.Problems(m.Store, s.tree) {
		if treepath.Below(p.Path, folders.Specs) {
			s.problems = append(s.problems, p)
		}
	}
	s.steps = controllers.Plan(s.tree, c.Now(), nil, nil)
	return s, nil
}

// inputsOf returns a predicate for the input files of a tree's nodes; nil if no node declares inputs. It excludes
// specs, which are checked out already, and settings and state, which come from the base.
func inputsOf(t *state.Tree) func(string) bool {
	var globs []string
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		if spec := schemas.SpecAs[*schemas.DAGSpec](e.Object); spec != nil && len(e.Inputs) > 0 {
			for _, n := range spec.Nodes {
				globs = append(globs, n.Inputs...)
			}
		}
	}
	if globs == nil {
		return nil
	}
	slices.Sort(globs)
	globs = slices.Compact(globs)
	folders := t.Settings().Folders
	ours := []string{folders.Specs, folders.State, schemas.SettingsPath, ".reconcile"}
	return func(p string) bool {
		if slices.ContainsFunc(ours, func(dir string) bool { return treepath.Below(strings.ToLower(p), strings.ToLower(dir)) }) {
			return false
		}
		return slices.ContainsFunc(globs, func(g string) bool {
			ok, err := doublestar.Match(g, p)
			return ok && err == nil
		})
	}
}

// Bounds are what the runs among the steps of a plan of the tree cost at most.
func Bounds(t *state.Tree, steps []settle.Step, now time.Time) mirror.PullBounds {
	b := controllers.Bound(t, steps, now)
	out := mirror.PullBounds{Runs: b.Runs, Seconds: seconds(b.Time), Endless: b.Endless, People: b.People,
		Budgets: b.Budgets, Agents: []mirror.PullAgent{}}
	for _, g := range b.Agents {
		out.Agents = append(out.Agents, mirror.PullAgent{Name: g.Name, Model: g.Model, Window: g.Window, Runs: g.Runs,
			Seconds: seconds(g.Time), Endless: g.Endless})
	}
	return out
}

// seconds rounds up, since the result is an upper bound.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
