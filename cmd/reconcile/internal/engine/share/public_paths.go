package share

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/commits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/ownership"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Public returns the public ones of the paths, those whose specs are as on the branch. Results of other specs would be
// retracted by other reconcilers on the branch, and redone by this clone. They stay local until their specs are
// committed, as do the statuses that mention them. private reports whether there are any.
func (s *Share) Public(ctx context.Context, t *state.Tree, paths []string) (public []string, private bool, err error) {
	about, removed := s.subjects(t, paths)
	changed, err := s.git.Dirty(ctx, "", slices.Sorted(maps.Keys(about)))
	if err != nil {
		return nil, false, err
	}
	own := map[schemas.Ref]bool{}
	var waits []string // specs
	for _, p := range changed {
		if slices.Contains(paths, p) {
			continue // committed together with its results
		}
		waits = append(waits, p)
		for _, ref := range about[p] {
			own[ref] = true
		}
	}
	left := ownership.Unsettled(t, slices.SortedFunc(maps.Keys(own), schemas.Ref.Compare))
	var gone []string
	if len(removed) > 0 {
		if gone, err = s.removedSpecs(ctx, t); err != nil {
			return nil, false, err
		}
	}
	s.reportPrivate(append(waits, gone...))
	public = slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		ref, ok := s.subject(t, p)
		// Objects that were removed together with a spec are in no list any more.
		return left(p) || ok && own[ref] || len(gone) > 0 && ok && (slices.Contains(removed, ref) || !s.isRecord(t, p))
	})
	return public, len(waits)+len(gone) > 0, nil
}

// subject returns the object that a file of the state folder belongs to.
func (s *Share) subject(t *state.Tree, path string) (schemas.Ref, bool) {
	below, ok := strings.CutPrefix(path, t.Settings().Folders.State+"/")
	if !ok {
		return schemas.Ref{}, false
	}
	ref, ok := ownership.Subject(t, below)
	return ref, ok && ref.Kind != state.MemoryKind
}

// subjects returns the objects that paths belong to: by spec file, and those whose spec is gone.
func (s *Share) subjects(t *state.Tree, paths []string) (about map[string][]schemas.Ref, removed []schemas.Ref) {
	about = map[string][]schemas.Ref{}
	for _, p := range paths {
		ref, ok := s.subject(t, p)
		if !ok {
			continue
		}
		switch e := t.Entry(ref); {
		case e == nil || e.Gone():
			removed = append(removed, ref)
		case e.Object != nil:
			about[e.Object.Path] = append(about[e.Object.Path], ref)
		default: // a broken object: the file of its first problem
			about[e.Problems[0].Path] = append(about[e.Problems[0].Path], ref)
		}
	}
	return about, removed
}

// removedSpecs are the files in the spec folder of the branch that were removed or changed here: their objects may have
// been removed only locally.
func (s *Share) removedSpecs(ctx context.Context, t *state.Tree) (gone []string, err error) {
	changed, err := s.git.Dirty(ctx, "", []string{t.Settings().Folders.Specs})
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	head, err := s.git.Head(ctx)
	if err != nil || head.Hash == "" {
		return nil, err
	}
	err = s.git.Files(ctx, head.Hash, changed, func(f gitrepo.Stored) error {
		gone = append(gone, f.Path)
		return nil
	})
	if err != nil || len(gone) == 0 {
		return gone, err
	}
	moved, err := commits.Archived(ctx, s.git, s.o.Store, t, gone)
	return slices.DeleteFunc(gone, func(p string) bool { return slices.Contains(moved, p) }), err
}

// reportPrivate warns once which specs are not committed yet.
func (s *Share) reportPrivate(specs []string) {
	slices.Sort(specs)
	text := strings.Join(specs[:min(len(specs), 5)], ", ")
	if more := len(specs) - 5; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if text != s.private && text != "" {
		s.o.Warn(text + ": not committed as it is here; until it is, what comes of it stays here, and is not pushed")
	}
	s.private = text
}
