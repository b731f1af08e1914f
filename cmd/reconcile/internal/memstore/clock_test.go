package memstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// TestLostLockIsBusy: whose lock of the manifest is lost while it is held, as when the clock jumps, is told to try again.
func TestLostLockIsBusy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	f := Open(store, Options{Now: time.Now, Kinds: controllers.Schemas()})
	defer func() {
		if err := errors.Join(f.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(dir, filepath.FromSlash(f.manifestPath()))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = f.underManifestLock(t.Context(), func([]byte, *manifestState) ([][]byte, error) {
		other := errors.Join(os.WriteFile(path+".new", []byte("{}"), 0o666), os.Rename(path+".new", path+".lock"))
		return [][]byte{[]byte("{}")}, other
	}, nil)
	if !errors.Is(err, state.ErrBusy) || !errors.Is(err, state.ErrStolen) {
		t.Errorf("%v, want that the lock is busy, as it was lost", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the manifest was written without the lock")
	}
}
