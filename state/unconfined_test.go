package state_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"reconcile.dev/reconcile/state"
)

// TestUnconfined marks runs that nothing confines, vouches for files while there is a mark, and forgets both with the last run.
func TestUnconfined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vouched := func(want bool) {
		t.Helper()
		if got, err := s.Vouched("a.yaml"); err != nil || got != want {
			t.Fatalf("vouched: %v, %v; want %v", got, err, want)
		}
	}
	marked := func(want ...string) {
		t.Helper()
		if got, err := s.Unconfined(); err != nil || !slices.Equal(got, want) {
			t.Fatalf("marked: %v, %v; want %v", got, err, want)
		}
	}
	write("one")
	if err := state.Vouch(s.Root(), "a.yaml", []byte("one")); err != nil {
		t.Fatal(err)
	}
	marked()
	vouched(false) // nothing ran: there is no receipt
	for _, key := range []string{"dags/b/n-1", "dags/a/n-1"} {
		if err := state.MarkUnconfined(s.Root(), key); err != nil {
			t.Fatal(err)
		}
	}
	marked("dags/a/n-1", "dags/b/n-1")
	if err := state.Vouch(s.Root(), "a.yaml", []byte("one")); err != nil {
		t.Fatal(err)
	}
	vouched(true)
	write("two") // by somebody else, afterwards
	vouched(false)
	write("one")
	if err := s.ForgetUnconfined([]string{"dags/a/n-1"}); err != nil {
		t.Fatal(err)
	}
	marked("dags/b/n-1")
	vouched(true)
	if err := s.ForgetUnconfined([]string{"dags/b/n-1", "dags/gone/n-1"}); err != nil {
		t.Fatal(err)
	}
	marked()
	vouched(false)
}
