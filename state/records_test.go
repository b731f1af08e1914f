package state

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

const many = 5 * minDrafts

// finishMany puts results in the journal, in bursts, and waits until they are drafted.
func finishMany(t *testing.T, j *Journal) {
	t.Helper()
	for i := 0; i < many; i += 8 {
		var runs []schemas.Run
		for n := i + 1; n <= i+8; n++ {
			runs = append(runs, finished(n))
		}
		must(t, j.Claim(runs))
		must(t, j.Finish(runs))
	}
	j.drafts.working.Wait()
}

func drafted(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, tmpDir, "*.tmp"))
	must(t, err)
	return files
}

func wantRecords(t *testing.T, dir string) {
	t.Helper()
	for i := 1; i <= many; i++ {
		r := finished(i)
		want, err := EncodeRun(&r)
		must(t, err)
		got, err := os.ReadFile(filepath.Join(dir, "state/runs", r.Key+".json"))
		if err != nil || string(got) != string(want) {
			t.Fatalf("record %d is %q, %v; want %q", i, got, err, want)
		}
	}
	if left := drafted(t, dir); len(left) > 0 {
		t.Errorf("%d drafts are left: %v", len(left), left[0])
	}
}

// Records are the same whatever became of their drafts.
func TestDrafts(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(dir string) error{
		"kept": func(string) error { return nil },
		"lost": func(dir string) error { return os.RemoveAll(filepath.Join(dir, tmpDir)) },
		"one is lost": func(dir string) error {
			files, err := filepath.Glob(filepath.Join(dir, tmpDir, "*.tmp"))
			if err != nil || len(files) == 0 {
				return fmt.Errorf("no drafts: %w", err)
			}
			return os.Remove(files[len(files)/2])
		},
		"one came from elsewhere": func(dir string) error {
			r := finished(3)
			data, err := EncodeRun(&r)
			if err != nil {
				return err
			}
			name := filepath.Join(dir, "state/runs", r.Key+".json")
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				return err
			}
			return os.WriteFile(name, data, 0o666)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			j := journal(t, s)
			finishMany(t, j)
			if got := len(drafted(t, dir)); got != many {
				t.Errorf("%d records are drafted, want %d", got, many)
			}
			must(t, do(dir))
			must(t, j.Checkpoint(t.Context()))
			wantRecords(t, dir)
			must(t, j.Close())
		})
	}
}

// A few results are not drafted, and what is drafted does not outlive the journal.
func TestDraftsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	j := journal(t, s)
	must(t, j.Finish([]schemas.Run{finished(1)}))
	j.drafts.working.Wait()
	if left := drafted(t, dir); len(left) > 0 {
		t.Errorf("one result was drafted: %v", left)
	}
	finishMany(t, j)
	must(t, j.Close())
	wantRecords(t, dir)
}
