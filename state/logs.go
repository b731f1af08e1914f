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

// LogPath is where the full output of the effect with the given key goes, below the root. Logs are local to a clone, and
// go with the records of their runs.
func LogPath(key string) string { return logDir + "/" + key + ".log" }

// dropLogs removes the logs of runs whose records were removed among the changes: afterwards, so that no record names a
// log that is gone because of a kill. What is left of one stays for LooseLogs to find.
func (s *Store) dropLogs(changes []Change) {
	for _, c := range changes {
		if a, _ := s.layout().classify(c.Path); c.Data != nil || a != areaRuns {
			continue
		}
		log := LogPath(s.layout().runKey(c.Path))
		if s.root.Remove(log) == nil {
			_ = s.root.Remove(path.Dir(log)) // fails, as it should, while there are others in it
		}
	}
}

// LooseLogs lists the logs of runs that no record, journal or status tells of, sorted: of a removal that was killed half
// way, or of records that somebody else removed.
func (s *Store) LooseLogs(ctx context.Context) ([]string, error) {
	logs, err := s.logs()
	if err != nil || len(logs) == 0 {
		return nil, err
	}
	// After the logs, so that what starts meanwhile is known: it is claimed before it has a log.
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

// RemoveLooseLogs removes what LooseLogs lists. The tree must be locked by this store.
func (s *Store) RemoveLooseLogs(ctx context.Context) error {
	loose, err := s.LooseLogs(ctx)
	for _, log := range loose {
		if e := s.root.Remove(log); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove the log %s: %w", log, e))
		}
		_ = s.root.Remove(path.Dir(log)) // unless others are in it
	}
	return err
}

// logs lists all logs, sorted.
func (s *Store) logs() ([]string, error) {
	var logs []string
	err := fs.WalkDir(regular.FS(s.root), logDir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // there are none, or it was removed just now
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

// knownLogs are the logs of what ran or runs, also of what a killed process left running, and those that statuses name.
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
