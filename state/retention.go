package state

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Prune removes the surplus records of runs in the tree t: beyond keep for each node, the oldest first. It keeps records
// with the node's current key, those that verify or land such a run, and those by which an agent holds an item of work. The tree must
// be locked by this store; records that are not in t stay.
func (s *Store) Prune(ctx context.Context, t *Tree, keep int) error {
	var changes []Change
	for _, key := range t.surplus(keep) {
		changes = append(changes, Change{Path: s.RunPath(key)})
	}
	_, err := s.Write(ctx, changes)
	return err
}

// surplus returns the keys of the surplus records of active entries, those beyond keep for a node, which Prune would remove.
// Dormant objects have none: they were pruned before the tree was settled.
func (t *Tree) surplus(keep int) []string {
	var out []string
	for _, kind := range t.Kinds() {
		for _, e := range t.Active(kind) {
			out = append(out, e.surplus(keep)...)
		}
	}
	return out
}

func (e *Entry) surplus(keep int) []string {
	if e.RunCount() <= keep {
		return nil
	}
	now := schemas.NodesIn(e.Status())
	byNode, present := map[string][]*schemas.Run{}, map[string]bool{}
	for _, r := range e.Runs() {
		byNode[r.Node] = append(byNode[r.Node], r)
		present[r.Key] = r.NodeKey == now.Of(r.Node).Key
	}
	var out []string
	open := Unended(e.Runs())
	for _, runs := range byNode {
		slices.SortStableFunc(runs, e.newestFirst)
		for i, r := range runs {
			claims := r.For != "" && slices.Contains(open, r)
			if i >= keep && !present[r.Key] && !present[cmp.Or(r.Lands, r.Verifies)] && !claims {
				out = append(out, r.Key)
			}
		}
	}
	slices.Sort(out)
	return out
}

// newestFirst compares records by their ends. Records of an agent, which all have the same key, are compared by number,
// so that after a clock step backwards no end of work is removed before its beginning.
func (e *Entry) newestFirst(a, b *schemas.Run) int {
	if e.Kind == schemas.AgentKind.Name {
		return cmp.Compare(b.Seq, a.Seq)
	}
	return b.FinishedAt.Compare(a.FinishedAt.Time)
}

// Unended returns the open runs of hooks, in their order: those whose outcome is started, without a later run of the issue
// that is done. runs are in the order of an entry. An end applies to all earlier work on its issue, or, if it names an item
// of work (Run.For), only to that item.
func Unended(runs []*schemas.Run) []*schemas.Run {
	var open []*schemas.Run
	for _, r := range runs {
		switch r.Outcome {
		case schemas.OutcomeStarted:
			open = append(open, r)
		case schemas.OutcomeDone:
			open = slices.DeleteFunc(open, func(s *schemas.Run) bool {
				return s.Issue == r.Issue && (r.For == "" || s.For == r.For)
			})
		}
	}
	return open
}

// OrphanLogs lists the loose logs, those not known to a run with a record, journal entry or status, sorted. They are left if
// a removal was killed, or another program removed the records.
func (s *Store) OrphanLogs(ctx context.Context) ([]string, error) {
	logs, err := s.logs()
	if err != nil || s.allRecorded(logs) {
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

// allRecorded reports whether each of some logs has a record among the files that were loaded.
func (s *Store) allRecorded(logs []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := make(map[string]bool, len(logs))
	for _, log := range logs {
		left[log] = true
	}
	if s.model != nil && len(left) > 0 {
		for _, f := range s.model.files {
			if r, ok := f.body.(*lazyRun); ok {
				delete(left, LogPath(r.key))
			}
		}
	}
	return len(left) == 0
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
			for _, n := range schemas.NodesIn(e.Status()).All() {
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

// ArchivePath returns the path in the archive of stateFolder for a spec file: a folder for its kind's plural, one for the
// year and month of at, and its name. at is when the spec had its effect.
func ArchivePath(stateFolder, plural string, at time.Time, name string) string {
	return ArchiveDir(stateFolder) + "/" + plural + "/" + at.UTC().Format("2006-01") + "/" + name
}

// Move moves a spec file to another path, byte for byte.
type Move struct{ From, To string }

// Archive moves spec files into the archive, each at once, and returns the moves that were done, which are durable then. It does not
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
	mover := durable.NewMover(s.root)
	done, err := s.moveEach(mover, moves)
	if err := errors.Join(err, mover.Sync()); err != nil {
		return done, err
	}
	return done, s.bumpGeneration()
}

func (s *Store) moveEach(mover *durable.Mover, moves []Move) (done []Move, err error) {
	for _, m := range moves {
		err := mover.Move(m.From, m.To)
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
		s.Working("archive")
	}
	return done, nil
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
