package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// RefreshInputs scans all files that match the input globs of the given nodes, and returns the tree after prev and the refs
// that changed. It works as Refresh does with a hint for each file.
func (s *Store) RefreshInputs(ctx context.Context, prev *Tree, nodes map[schemas.Ref][]string) (*Tree, []schemas.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || s.needsFullLoad.Load() || prev == nil {
		return s.reload(ctx, prev)
	}
	u := s.update()
	var globs []string
	for ref, some := range nodes {
		for _, node := range some {
			globs = append(globs, s.model.inputs.nodes[ref][node]...)
		}
	}
	slices.Sort(globs)
	if err := errors.Join(u.refreshGlobs(ctx, slices.Compact(globs)), u.written(ctx)); err != nil {
		s.model = nil
		return nil, nil, fmt.Errorf("look at the inputs of %s: %w", s.dir, err)
	}
	next, changed := u.apply(prev)
	return next, changed, nil
}

// refreshGlobs scans the files that some globs match. If the clean rules changed, it scans all inputs.
func (u *update) refreshGlobs(ctx context.Context, globs []string) error {
	if len(globs) == 0 {
		return nil
	}
	s, in := u.store, u.model.inputs
	whole := s.cleanRules(globs) != in.stored
	found, ruling := map[string]disk.Stat{}, map[string]bool{}
	err := walkInputs(ctx, s.root, u.model.layout, globs, func(p string, st disk.Stat) { found[p] = st }, func(p string, st disk.Stat) {
		ruling[p] = true
		whole = whole || in.ruling[p] != st
	})
	if err != nil {
		return err
	}
	for p, was := range in.ruling {
		if !ruling[p] {
			st, err := disk.Lstat(s.root, p)
			whole = whole || err != nil || st != was
		}
	}
	before := in.digests
	if whole {
		refs, err := s.readInputs(ctx, u.model, nil)
		u.touchDigested(before, refs)
		return err
	}
	var changed []string
	for p, st := range found {
		if in.set(p, s.inputFile(in, p, st)) {
			changed = append(changed, p)
		}
	}
	for _, g := range globs {
		for _, p := range in.matched[g] {
			if _, ok := found[p]; !ok && in.set(p, nil) {
				changed = append(changed, p)
			}
		}
	}
	slices.Sort(changed)
	u.touchDigested(before, s.digestChanged(in, changed))
	return nil
}

// touchDigested touches the objects among refs whose inputs have other digests than before.
func (u *update) touchDigested(before map[schemas.Ref]map[string]string, refs []schemas.Ref) {
	for _, ref := range refs {
		if !maps.Equal(before[ref], u.model.inputs.digests[ref]) {
			u.touch(ref)
		}
	}
}

// inputs scans the files of the globs that hints, or a change of the globs, concern.
func (u *update) inputs(ctx context.Context, hints []string) error {
	was := u.model.inputs
	if u.changedGlobs() {
		u.model.inputs = u.store.newInputs(u.model)
	}
	next := u.model.inputs
	if !slices.Equal(next.globs, was.globs) {
		hints = nil
	}
	if len(was.globs)+len(next.globs) == 0 {
		return nil
	}
	look, globs := u.inputHints(next, hints)
	if next == was && look != nil && len(look) == 0 {
		return u.refreshGlobs(ctx, globs)
	}
	before := was.digests
	refs, err := u.store.readInputs(ctx, u.model, look)
	if err != nil {
		return err
	}
	if next != was {
		refs = slices.AppendSeq(refs, maps.Keys(before)) // some may have no globs any more
	}
	u.touchDigested(before, refs)
	return u.refreshGlobs(ctx, globs)
}

// inputHints returns the hints that are or were inputs (nil: all files), and the globs that match below hints that are or
// were folders.
func (u *update) inputHints(in *inputs, hints []string) (look, globs []string) {
	if hints == nil {
		return nil, nil
	}
	look = []string{}
	for _, p := range hints {
		if strings.HasSuffix(p, "/") {
			continue
		}
		p = path.Clean(p)
		if in.files[p] != nil || !neverInput(u.model.layout, p) && in.matches(p) {
			look = append(look, p)
		}
		if len(in.globs) > 0 && u.mayHoldInputs(in, p) {
			globs = append(globs, in.globsBelow(p)...)
		}
	}
	slices.Sort(globs)
	return look, slices.Compact(globs)
}

// mayHoldInputs reports whether p is a folder that may have inputs, or was one that had some.
func (u *update) mayHoldInputs(in *inputs, p string) bool {
	if st, err := disk.Lstat(u.store.root, p); err == nil {
		return st.Form() == disk.Folder && !neverInput(u.model.layout, p+"/x")
	}
	for known := range in.files {
		if within(p, known) {
			return true
		}
	}
	return false
}

// globsBelow returns the globs that may match a file below a folder.
func (in *inputs) globsBelow(dir string) []string {
	var out []string
	for _, glob := range in.globs {
		g, reaches, depth := splitGlob(glob), true, 0
		if dir != "." {
			for name := range strings.SplitSeq(dir, "/") {
				reaches = reaches && g.below(depth, name)
				depth++
			}
		}
		if reaches {
			out = append(out, glob)
		}
	}
	return out
}

// changedGlobs reports whether the globs of a touched object changed.
func (u *update) changedGlobs() bool {
	for ref := range u.touched {
		if !maps.EqualFunc(u.model.inputs.nodes[ref], u.model.globsOf(ref), slices.Equal) {
			return true
		}
	}
	return false
}
