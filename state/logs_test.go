package state

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestLogsGoWithTheirRuns prunes all but two of six runs, and then removes the others.
func TestLogsGoWithTheirRuns(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	keys := recorded(t, s, dir, 6)
	tree := load(t, s)
	locked(t, s, func() { must(t, s.Prune(t.Context(), tree, 2)) })
	if got, want := logNames(t, dir), names(keys[4:]); !slices.Equal(got, want) {
		t.Errorf("logs %q, want %q", got, want)
	}
	locked(t, s, func() { write(t, s, Change{Path: s.RunPath(keys[4])}, Change{Path: s.RunPath(keys[5])}) })
	if _, err := os.Stat(filepath.Join(dir, ".reconcile/logs/dags/checks")); !os.IsNotExist(err) {
		t.Errorf("the folder of the logs is left: %v", err)
	}
}

// TestLogsOutliveAFailure holds Prune to its order: while a record is there, so is its log.
func TestLogsOutliveAFailure(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	keys := recorded(t, s, dir, 3)
	tree := load(t, s)
	runs, away := filepath.Join(dir, "state/runs/dags/checks"), filepath.Join(dir, "away")
	must(t, os.Rename(runs, away))
	must(t, os.Symlink(away, runs)) // no write goes through a link
	locked(t, s, func() {
		if err := s.Prune(t.Context(), tree, 1); err == nil {
			t.Error("records were removed through a link")
		}
	})
	if got, want := logNames(t, dir), names(keys); !slices.Equal(got, want) {
		t.Errorf("logs %q, want %q", got, want)
	}
}

// TestOrphanLogs leaves logs without a record, journal or status among those of records, statuses and processes, living and killed.
func TestOrphanLogs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	recorded(t, s, dir, 2)
	live := journal(t, s)
	defer live.Close()
	must(t, live.Claim([]schemas.Run{run(3)}))
	st := &schemas.DAGStatus{Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"build": {Log: LogPath(run(4).Key)}})}
	b, err := EncodeStatus(checks, st)
	must(t, err)
	locked(t, s, func() { write(t, s, Change{Path: s.StatusPath(checks), Data: b}) })
	for _, key := range []string{run(3).Key, run(4).Key, run(5).Key, "dags/gone/build-1"} {
		put(t, dir, map[string]string{LogPath(key): "x\n"})
	}
	want := []string{LogPath(run(5).Key), ".reconcile/logs/dags/gone/build-1.log"}
	if got, err := s.OrphanLogs(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Fatalf("loose: %q, %v; want %q", got, err, want)
	}
	locked(t, s, func() { must(t, s.RemoveOrphanLogs(t.Context())) })
	if got := logNames(t, dir); len(got) != 4 {
		t.Errorf("left: %q, want those of runs 1 to 4", got)
	}
	if _, err := os.Stat(filepath.Join(dir, ".reconcile/logs/dags/gone")); !os.IsNotExist(err) {
		t.Errorf("an empty folder is left: %v", err)
	}
}

// TestLogsOfTheKilled keeps the log of what a killed process left running.
func TestLogsOfTheKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := holder(t, dir)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	s := open(t, dir)
	load(t, s)
	var keys []string
	for _, v := range s.model.journals {
		for key := range v.keys {
			keys = append(keys, key)
			put(t, dir, map[string]string{LogPath(key): "x\n"})
		}
	}
	if loose, err := s.OrphanLogs(t.Context()); err != nil || len(keys) == 0 || len(loose) > 0 {
		t.Errorf("loose: %q, %v, with %q left running", loose, err, keys)
	}
}

// recorded leaves n finished runs of one node, with logs, and returns their keys.
func recorded(t *testing.T, s *Store, dir string, n int) (keys []string) {
	t.Helper()
	load(t, s)
	j := journal(t, s)
	var runs []schemas.Run
	for i := 1; i <= n; i++ {
		r := finished(i)
		runs, keys = append(runs, r), append(keys, r.Key)
		put(t, dir, map[string]string{LogPath(r.Key): "hello\n"})
	}
	must(t, j.Finish(runs))
	must(t, j.Close())
	return keys
}

func logNames(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, ".reconcile/logs/dags/checks/*.log"))
	must(t, err)
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".log")
	}
	return files
}

func names(keys []string) []string {
	var out []string
	for _, key := range keys {
		out = append(out, filepath.Base(key))
	}
	slices.Sort(out)
	return out
}
