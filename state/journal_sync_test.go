package state

import (
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// What is recorded is on disk before anything that may depend on it.
func TestRecordsAreSyncedBeforeWhatFollows(t *testing.T) {
	steps := map[string]func(t *testing.T, s *Store, j *Journal) error{
		"Sync":        func(_ *testing.T, _ *Store, j *Journal) error { return j.Sync() },
		"SyncJournal": func(_ *testing.T, s *Store, _ *Journal) error { return s.SyncJournal() },
		"Write": func(t *testing.T, s *Store, _ *Journal) error {
			l, err := s.Lock(t.Context())
			if err != nil {
				return err
			}
			defer l.Release() //nolint:errcheck // nobody else wants it
			_, err = s.Write(t.Context(), []Change{{Path: "state/dags/d.json", Data: []byte("{}\n")}})
			return err
		},
		"Fold": func(t *testing.T, s *Store, _ *Journal) error {
			return s.Fold(t.Context(), "state/agent-status.json", func(was []byte) ([]byte, error) { return append(was, "{}\n"...), nil })
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			j, err := s.Journal()
			if err != nil {
				t.Fatal(err)
			}
			for what, write := range map[string]func([]schemas.Run) error{"claim": j.Claim, "record": j.Record} {
				if err := write([]schemas.Run{finished(1)}); err != nil {
					t.Fatal(err)
				}
				if !j.unsynced {
					t.Fatalf("the %s was synced at once: a turn with many would cost a sync for each", what)
				}
				if err := step(t, s, j); err != nil {
					t.Fatal(err)
				}
				if j.unsynced {
					t.Errorf("the %s is still not synced", what)
				}
			}
		})
	}
}
