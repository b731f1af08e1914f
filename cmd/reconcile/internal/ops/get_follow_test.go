package ops_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// A follower sees what is there, each change and each removal, and ends with its context.
func TestFollowObjects(t *testing.T) {
	env := open(t)
	const name = "specs/sessions/garden.yaml"
	steps := []func(){
		func() { write(t, env, name, sessionText) },
		func() { write(t, env, name, sessionText+"# only a comment\n") },
		func() {
			if err := os.Remove(filepath.Join(env.Tree.Dir, name)); err != nil {
				t.Fatal(err)
			}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, created, gone := true, 0, 0
	for r, err := range ops.FollowObjects(ctx, env, ops.GetRequest{What: []string{"sessions"}}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Entries {
			if e.Name == "garden" {
				created++
			} else if !first {
				t.Errorf("%s was told of, and did not change", e.Ref)
			}
		}
		gone += len(r.Gone)
		switch {
		case first:
			steps[0]()
		case created == 1 && len(r.Entries) > 0:
			steps[1]()
			steps[2]()
		case gone > 0:
			cancel()
		}
		first = false
	}
	if created != 1 || gone != 1 {
		t.Errorf("created %d times, gone %d times, want 1 and 1", created, gone)
	}
	for _, err := range ops.FollowObjects(t.Context(), env, ops.GetRequest{At: "HEAD"}) {
		badField(t, err, "at")
	}
	env.Tree.Dir = filepath.Join(env.Tree.Dir, "nowhere")
	for _, err := range ops.FollowObjects(t.Context(), env, ops.GetRequest{}) {
		if ops.CodeOf(err) != ops.Failure {
			t.Errorf("without a tree: %v", err)
		}
	}
}
