package state

import (
	"errors"
	"fmt"
	"io/fs"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// Open returns the store of the tree in the folder dir, which it opens as root. The folder must exist; an empty one is a
// tree without objects. It reads and writes nothing yet. The error wraps ErrFolder if the folder of local files is not a
// folder.
func Open(dir string, o Options) (*Store, error) {
	root, err := regular.Root(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("tree %s does not exist; make the folder, or point -C at another: %w", dir, err)
		}
		return nil, fmt.Errorf("tree %s: %w", dir, err)
	}
	if o.DormantFrom == 0 {
		o.DormantFrom = minDormantFiles
	}
	if o.FileNow == nil {
		o.FileNow = o.Now
	}
	s := &Store{root: root, dir: dir, opts: o, settings: new(schemas.SettingsSpec), against: checksAgainst(o.Kinds),
		lost: map[string]bool{}, shapes: shapesOf(o.Kinds), deferFrom: minDeferredRecords}
	s.settings.Default()
	s.decoder = schemas.DecoderFor(o.Kinds, s.settings)
	s.cache = newCache(s)
	if err := s.checkFolder(localDir, ""); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

// Close closes the folder. Journals and locks must be closed before.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.close()
	s.unwatch()
	return s.root.Close()
}

func checksAgainst(kinds schemas.Kinds) map[string]func(o, to *schemas.Object, r *schemas.Report) {
	checks := map[string]func(o, to *schemas.Object, r *schemas.Report){}
	for _, k := range kinds {
		if k.CheckAgainst != nil {
			checks[k.Name] = k.CheckAgainst
		}
	}
	return checks
}

// minDormantFiles is the number of files of dormant objects from which on a load skips dormant objects.
const minDormantFiles = 1000
