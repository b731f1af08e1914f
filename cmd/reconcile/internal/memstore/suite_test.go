package memstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore/storetest"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

func TestFilesConform(t *testing.T) { storetest.Run(t, openForSuite) }

func openForSuite(t *testing.T) storetest.Opened {
	dir := t.TempDir()
	env := &storetest.Env{Now: noon}
	now := func() time.Time { return env.Now }
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: now, FileNow: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	files := memstore.Open(store, memstore.Options{
		Now: now, Kinds: controllers.Schemas(), Warn: func(s string) { t.Error("warned:", s) },
	})
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	env.Digest = files.Digest
	env.WriteFile = func(path string, content []byte) {
		p := filepath.Join(dir, path)
		err := os.MkdirAll(filepath.Dir(p), 0o777)
		if content == nil {
			err = os.Remove(p)
		} else if err == nil {
			err = os.WriteFile(p, content, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return storetest.Opened{Store: files, Env: env}
}
