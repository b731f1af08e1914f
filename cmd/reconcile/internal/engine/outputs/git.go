package outputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	cache "reconcile.dev/reconcile/state/outputs"
)

// keptLimit bounds the outputs of one run that are kept in git, in bytes. Many servers refuse larger files.
const keptLimit = 50 << 20

// keptDiff is the difference between the outputs that git keeps and those that it should keep.
type keptDiff struct {
	wanted  []*schemas.Run    // according to records and specs, ordered by key
	local   map[string]string // trees that references of this repository name, by key
	surplus func(key string) bool
}

// compare returns nil if nothing is kept and nothing should be. A run that does not commit leaves the work to one that
// does.
func (k *Keeper) compare(t *state.Tree) (*keptDiff, error) {
	if k.o.Git == nil {
		return nil, nil
	}
	runs, unsure := nodes.Kept(t)
	runs = slices.DeleteFunc(runs, func(r *schemas.Run) bool {
		_, err := k.o.Store.Root().Lstat(k.o.Store.RunPath(r.Key))
		return err != nil // just pruned
	})
	here, err := k.o.Git.Kept()
	if err != nil || len(runs)+len(here) == 0 {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, r := range runs {
		wanted[r.Key] = true
	}
	return &keptDiff{runs, here, func(key string) bool { return !wanted[key] && !unsure(key) }}, nil
}

// Keep implements loop.Outputs.
func (k *Keeper) Keep(ctx context.Context, t *state.Tree) error {
	d, err := k.compare(t)
	if d == nil || err != nil {
		return err
	}
	for _, r := range d.wanted {
		if d.local[r.Key] == "" && !k.unkept[r.Key] {
			err = errors.Join(err, k.keepInGit(ctx, r))
		}
	}
	return err
}

// Publish implements loop.Outputs.
func (k *Keeper) Publish(ctx context.Context, t *state.Tree) error {
	d, err := k.compare(t)
	if d == nil || err != nil {
		return err
	}
	if k.o.Share != nil {
		if err := k.push(ctx, d); err != nil {
			return err
		}
	}
	maps.DeleteFunc(d.local, func(key, _ string) bool { return !d.surplus(key) })
	return k.o.Git.Drop(ctx, d.local)
}

// keepInGit stores the outputs of a run in git, if they exist and may be kept.
func (k *Keeper) keepInGit(ctx context.Context, r *schemas.Run) error {
	var files []gitrepo.KeptFile
	size := int64(0)
	for _, o := range r.Outputs {
		size += o.Size
	}
	if size > keptLimit {
		k.warnNotKept(r, fmt.Sprintf("they have more than %d MiB", keptLimit>>20))
		return nil
	}
	for _, o := range r.Outputs {
		data, err := cache.Read(ctx, k.o.Store.Root(), o)
		if errors.Is(err, cache.ErrMissing) {
			return nil
		}
		if err != nil {
			return err
		}
		if rules := secrets.InFile(data); len(rules) > 0 {
			k.warnNotKept(r, fmt.Sprintf("%s has what looks like a secret (%s); take it out, or leave out outputs.keep", o.Path, rules[0]))
			return nil
		}
		files = append(files, gitrepo.KeptFile{Path: o.Path, Executable: o.Mode == schemas.OutputExecutable, Data: data})
	}
	_, err := k.o.Git.Keep(ctx, r.Key, files)
	return err
}

// warnNotKept warns once that outputs are not kept in git.
func (k *Keeper) warnNotKept(r *schemas.Run, why string) {
	k.unkept[r.Key] = true
	k.o.Warn(fmt.Sprintf("the outputs of %s of %s are not kept in git: %s", r.Node, r.Owner, why))
}

// push updates the remote: it pushes outputs whose records are on the branch, and deletes those whose records were
// removed from the branch. It does so only if the branch's head is ours.
func (k *Keeper) push(ctx context.Context, d *keptDiff) error {
	head, there, err := k.o.Share.Remote().Kept(ctx)
	if err != nil {
		return err
	}
	is, err := k.o.Git.Head(ctx)
	if err != nil || is.Hash != head {
		return err // another push came first, or GitHub makes the commits: the next run continues
	}
	var new []string
	for key, hash := range d.local {
		if hash != there[key] && !d.surplus(key) {
			new = append(new, key)
		}
	}
	recorded, err := k.o.Share.Recorded(ctx, head, new)
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, key := range recorded {
		now[key] = d.local[key]
	}
	for key := range there {
		if d.surplus(key) {
			now[key] = ""
		}
	}
	return k.o.Share.Remote().ChangeKept(ctx, there, now)
}

// fill adds missing outputs of a run to the local cache, from this repository or else from the remote.
func (k *Keeper) fill(ctx context.Context, r settle.Restore) error {
	repo, err := gitrepo.OpenToCommit(k.o.Dir)
	if err != nil {
		return err
	}
	here, err := repo.Kept()
	if err != nil {
		return err
	}
	if hash := here[r.Run.Key]; hash != "" {
		err := k.fillFrom(ctx, func(path string) (io.ReadCloser, error) { return repo.OpenKept(ctx, hash, path) }, r)
		if err == nil {
			return nil
		}
	}
	remote, err := repo.Source(ctx, k.o.Settings.Git.Remote)
	if err != nil {
		return err
	}
	return remote.FetchKept(ctx, r.Run.Key, fetchLimit(r.Run.Outputs), func(open gitrepo.OpenFunc) error {
		return k.fillFrom(ctx, open, r)
	})
}

// fetchLimit bounds the bytes that git needs for kept outputs, including names and framing.
func fetchLimit(all []schemas.Output) int64 {
	const names = 1 << 20
	size, most := int64(0), int64(keptLimit)
	for _, o := range all {
		size += min(max(o.Size, 0), most) + 4096
	}
	return min(size, most+int64(len(all))*4096)*101/100 + names
}

// fillFrom adds files of a tree to the cache, which accepts only files that match the record.
func (k *Keeper) fillFrom(ctx context.Context, open gitrepo.OpenFunc, r settle.Restore) error {
	for _, o := range r.Outputs {
		if cache.Has(k.o.Store.Root(), o) {
			continue
		}
		from, err := open(o.Path)
		if err == nil {
			err = errors.Join(cache.Fill(ctx, k.o.Store.Root(), o, from), from.Close())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Ref, err)
		}
	}
	return nil
}
