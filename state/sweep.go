package state

import (
	"context"
	"fmt"
	"strings"
)

// SweepLedgers takes out of the way what killed processes left of the locks of ledgers. A fold does so for its own ledger;
// this is for those that need no fold, because the killed process had written all. Locks that are held are left alone.
func (s *Store) SweepLedgers(ctx context.Context) error {
	return s.sweepLocks(ctx, s.layout().state+"/"+ledgersFolder)
}

func (s *Store) sweepLocks(ctx context.Context, dir string) error {
	files, err := s.lockedIn(dir)
	if err != nil {
		return fmt.Errorf("look for locks in %s: %w", dir, err)
	}
	for name := range files {
		if err := s.sweepLock(ctx, dir+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// lockedIn returns the names of the files in a folder beside which there is a file of the lock protocol.
func (s *Store) lockedIn(dir string) (map[string]bool, error) {
	d, err := openFolder(s.root, dir)
	if err != nil {
		return nil, nil // there is none, or Load says why it cannot be looked at
	}
	defer d.close()
	files := map[string]bool{}
	var l listing
	for more := true; more; {
		l.reset()
		if more, err = d.list(&l); err != nil {
			return nil, err
		}
		for i := range l.len() {
			if name, ok := strings.CutSuffix(string(l.name(i)), ".lock"); ok {
				name = strings.TrimSuffix(strings.TrimSuffix(name, ".new"), ".reap")
				files[name] = true
			}
		}
	}
	return files, nil
}
