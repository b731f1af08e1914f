package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// OrphanLogs lists the loose logs, those not known to a run with a record, journal entry or status, sorted. They are left if
// a removal was killed, or another program removed the records.
func (s *Store) OrphanLogs(ctx context.Context) ([]string, error) {
	logs, err := s.logs()
	if err != nil || len(logs) == 0 {
		return nil, err
	}
	// After the list of logs, so that runs that start meanwhile are known: a run is claimed before it has a log.
	t, err := s.Load(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.model.knownLogs(t)
	var loose []string
	for _, log := range logs {
		if !known[log] {
			loose = append(loose, log)
		}
	}
	return loose, nil
}

// RemoveOrphanLogs removes the logs that OrphanLogs lists. The tree must be locked by this store.
func (s *Store) RemoveOrphanLogs(ctx context.Context) error {
	loose, err := s.OrphanLogs(ctx)
	for _, log := range loose {
		if e := s.root.Remove(log); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove the log %s: %w", log, e))
		}
		_ = s.root.Remove(path.Dir(log)) // fails while the folder has other logs
	}
	return err
}

// logs lists all logs, sorted.
func (s *Store) logs() ([]string, error) {
	var logs []string
	err := fs.WalkDir(regular.FS(s.root), logDir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // no logs, or removed just now
		case err == nil && d.Type().IsRegular() && path.Ext(name) == ".log":
			logs = append(logs, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the logs: %w", err)
	}
	return logs, nil
}

// knownLogs returns the logs of finished and claimed runs, including those of killed processes, and of the runs that
// statuses name.
func (m *model) knownLogs(t *Tree) map[string]bool {
	known := map[string]bool{}
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			for _, r := range e.Runs() {
				known[LogPath(r.Key)] = true
			}
			for _, n := range schemas.NodesIn(e.Status()) {
				known[n.Log] = true
			}
		}
	}
	for _, v := range m.journals {
		for key := range v.keys {
			known[LogPath(key)] = true
		}
	}
	return known
}
