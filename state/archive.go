package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// ArchivePath returns the path in the archive of stateFolder for a spec file: a folder for its kind's plural, one for the
// year and month of at, and its name. at is when the spec had its effect.
func ArchivePath(stateFolder, plural string, at time.Time, name string) string {
	return ArchiveDir(stateFolder) + "/" + plural + "/" + at.UTC().Format("2006-01") + "/" + name
}

// Move moves a spec file to another path, byte for byte.
type Move struct{ From, To string }

// Archive moves spec files into the archive, each durably and at once, and returns the moves that were done. It does not
// overwrite: if the target exists with the same content, the source is removed; otherwise the file stays. The tree must be
// locked by this store.
func (s *Store) Archive(ctx context.Context, moves []Move) ([]Move, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(moves) == 0 {
		return nil, nil
	}
	if err := s.mayWrite(ctx); err != nil {
		return nil, err
	}
	if err := s.bumpGeneration(); err != nil {
		return nil, err
	}
	var done []Move
	for _, m := range moves {
		err := durable.Move(s.root, m.From, m.To)
		if errors.Is(err, fs.ErrExist) {
			err = s.removeArchived(m)
		}
		switch {
		case err == nil:
			done = append(done, m)
		case errors.Is(err, errDiffers), errors.Is(err, fs.ErrNotExist), errors.Is(err, durable.ErrRefused):
			// The file stays.
		default:
			return done, fmt.Errorf("move %s to the archive: %w", m.From, err)
		}
		s.Working()
	}
	return done, s.bumpGeneration()
}

var errDiffers = errors.New("another file is there")

// removeArchived removes a spec that the archive has already.
func (s *Store) removeArchived(m Move) error {
	here, err := regular.Read(s.root, m.From)
	if err != nil {
		return err
	}
	there, err := regular.Read(s.root, m.To)
	if err != nil {
		return err
	}
	if !bytes.Equal(here, there) {
		return errDiffers
	}
	return durable.Apply(s.root, tmpDir, []durable.Op{{Path: m.From}})
}
