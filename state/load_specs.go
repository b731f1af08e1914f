package state

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/schemas"
)

// LoadSpecs reads only the specs of a kind: its entries have neither statuses nor runs. The kind must have no CheckAgainst. The result is no
// base for Refresh.
func (s *Store) LoadSpecs(ctx context.Context, kind string) (*Tree, error) {
	return s.loadSpecs(ctx, kind, false)
}

// LoadSpecsAndClaims is LoadSpecs with the claims of live processes, for a caller that edits specs.
func (s *Store) LoadSpecsAndClaims(ctx context.Context, kind string) (*Tree, error) {
	return s.loadSpecs(ctx, kind, true)
}

func (s *Store) loadSpecs(ctx context.Context, kind string, claims bool) (*Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := s.newSettings()
	s.useSettings(settings.spec)
	if err := s.checkFolders(s.layout()); err != nil {
		return nil, err
	}
	m := newModel(s.layout())
	m.settings = settings
	if claims {
		s.readJournals(m)
	}
	known := s.cache.load(kind)
	sc := newScanner(s.root, s.layout(), len(known) == 0)
	found, troubles, err := s.collect(ctx, sc, sc.specs())
	if err != nil {
		return nil, fmt.Errorf("load the specs of the tree %s: %w", s.dir, err)
	}
	m.reserve(len(found))
	want := found[:0] // never longer than the part of found that was iterated
	for _, f := range found {
		old := known[f.path]
		if old.current(f) {
			m.put(old)
			continue
		}
		if want = append(want, f); old != nil && m.refOf(old).Kind != kind {
			delete(known, f.path) // only its name was decoded: its body is no content for the cache
		}
	}
	read, more, err := s.readFiles(ctx, s.root, want, known)
	if err != nil {
		return nil, fmt.Errorf("load the specs of the tree %s: %w", s.dir, err)
	}
	for _, f := range read {
		m.put(f)
	}
	for _, t := range append(troubles, more...) {
		m.scanErrors[t.path] = t
	}
	s.crossCheckAll(m, kind)
	s.cache.flush()
	return m.treeOf(func(ref schemas.Ref) bool { return ref.Kind == kind || m.hasInJournals(ref) }), nil
}
