package workspaces

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestNobodyIsAccusedOfALanding: what git is just changing is looked at when it has done so.
func TestNobodyIsAccusedOfALanding(t *testing.T) {
	f := newFixture(t)
	changed, err := f.open(request("n", "1", schemas.WorkspaceClone)).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.write("file", "two\n")
	lock := filepath.Join(f.tree, ".git", "index.lock")
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, err := changed(ctx, false); err == nil || len(got) > 0 {
		t.Errorf("it did not wait for git: %q, %v", got, err)
	}
	f.write("file", "one\n") // as git would have it
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if got, err := changed(t.Context(), false); err != nil || len(got) > 0 {
		t.Errorf("found %q, %v", got, err)
	}
}
