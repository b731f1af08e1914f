package specs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestWrite writes a spec once, takes the very content for written, and replaces nothing. What is wrong or secret is
// refused before anything is written, without repeating the secret.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	tree, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secret := "gh" + "p_R8tY2kLmQ9zX4vB7nC1dF6gH3jK5sW0pTqZu" // of no account
	for _, c := range []struct {
		name    string
		spec    schemas.ReplySpec
		where   string
		invalid bool
		says    string
	}{
		{name: "first", spec: schemas.ReplySpec{Clarification: "q", Type: schemas.TurnAnswer, From: "ada", Body: "Yes."},
			where: "specs/replies/first.yaml"},
		{name: "first", spec: schemas.ReplySpec{Clarification: "q", Type: schemas.TurnAnswer, From: "ada", Body: "Yes."},
			where: "specs/replies/first.yaml"},
		{name: "first", spec: schemas.ReplySpec{Clarification: "q", Type: schemas.TurnAnswer, From: "ada", Body: "No."},
			says: "specs/replies/first.yaml exists already"},
		{name: "second", spec: schemas.ReplySpec{Clarification: "q", Type: "shout", From: "ada", Body: "Yes."}, invalid: true, says: "type: "},
		{name: "third", spec: schemas.ReplySpec{Clarification: "q", Type: schemas.TurnAnswer, From: "ada", Body: secret}, invalid: true,
			says: "holds a secret"},
	} {
		where, err := Write(store, tree, schemas.ReplyKind, c.name, &c.spec)
		var invalid *invalidError
		switch {
		case c.says == "" && (err != nil || where != c.where):
			t.Errorf("%s: %q, %v", c.name, where, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || errors.As(err, &invalid) != c.invalid):
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		case err != nil && strings.Contains(err.Error(), secret):
			t.Errorf("%s: the error repeats the secret", c.name)
		}
	}
	files, err := os.ReadDir(filepath.Join(dir, "specs/replies"))
	if err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "specs/replies/first.yaml")); err != nil || !strings.Contains(string(data), "body: Yes.") {
		t.Errorf("%s, %v", data, err)
	}
}
