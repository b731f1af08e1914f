package ops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

const sessionText = `apiVersion: reconcile.dev/v1alpha1
kind: Session
metadata: {name: garden}
spec: {title: Plant a garden}
`

func TestApply(t *testing.T) {
	env := open(t)
	apply := func(text string) ([]ops.SpecChange, error) {
		return ops.Apply(t.Context(), env, ops.ApplyRequest{Texts: []ops.SpecText{{Name: "a.yaml", Text: []byte(text)}}})
	}
	for _, change := range []string{"created", "unchanged"} {
		got, err := apply(sessionText)
		if want := (ops.SpecChange{Ref: "session/garden", Path: "specs/sessions/garden.yaml", Change: change}); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	var failed *ops.Error
	var wrong *ops.ProblemsError
	another := strings.ReplaceAll(sessionText, "garden", "house")
	_, err := apply(another + "---\nkind: Session\n")
	if !errors.As(err, &failed) || failed.Code != ops.Invalid || !errors.As(err, &wrong) || wrong.Problems[0].Line != 6 {
		t.Errorf("with a broken document: %v", err)
	}
	if _, err := os.Stat(filepath.Join(env.Tree.Dir, "specs/sessions/house.yaml")); err == nil {
		t.Error("the valid one of two was written")
	}
	if _, err = apply(sessionText + "---\n" + sessionText); !errors.As(err, &failed) || failed.Code != ops.BadRequest {
		t.Errorf("the same object twice: %v", err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Apply(ctx, env, ops.ApplyRequest{})
		return err
	})
}

func TestCreateEditDelete(t *testing.T) {
	env := open(t)
	q := ops.CreateRequest{Kind: "session", Name: "garden", Fields: map[string]string{"title": "Plant: a garden"}}
	if _, _, err := ops.Create(t.Context(), env, q); err == nil || !strings.Contains(err.Error(), "title") {
		t.Errorf("a value that is no text: %v", err)
	}
	q.Fields["title"] = "'Plant: a garden'"
	made, text, err := ops.Create(t.Context(), env, q)
	if err != nil || len(made) != 1 || made[0].Change != "created" || !strings.Contains(string(text), "title: 'Plant: a garden'\n") {
		t.Errorf("%v, %v:\n%s", made, err, text)
	}
	change := func(_ context.Context, copy string) error {
		text, err := os.ReadFile(copy)
		return errors.Join(err, os.WriteFile(copy, []byte(strings.ReplaceAll(string(text), "Plant", "Water")), 0o600))
	}
	edited, err := ops.Edit(t.Context(), env, ops.EditRequest{Object: "session/garden", Change: change})
	data, err2 := os.ReadFile(filepath.Join(env.Tree.Dir, "specs/sessions/garden.yaml"))
	if err != nil || err2 != nil || len(edited) != 1 || !strings.Contains(string(data), "Water: a garden") {
		t.Errorf("%v, %v, %v:\n%s", edited, err, err2, data)
	}
	gone, err := ops.Delete(t.Context(), env, []string{"session/garden"})
	if _, err2 := os.Stat(filepath.Join(env.Tree.Dir, "specs/sessions/garden.yaml")); err != nil || len(gone) != 1 || err2 == nil {
		t.Errorf("%v, %v, %v", gone, err, err2)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Delete(ctx, env, []string{"session/garden"})
		return err
	})
}
