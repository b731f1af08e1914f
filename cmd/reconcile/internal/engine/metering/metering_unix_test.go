//go:build unix

package metering

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

const (
	upstream = "http://127.0.0.1:9/v1"
	canary   = "sk-canary-77d0"
)

// open opens an endpoint for a tree, with the addresses that the user allows.
func open(t *testing.T, dir, allow string, from schemas.KeySource) error {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	env := map[string]string{egress.AllowVariable: allow, "TEAM_API_KEY": canary}
	getenv := func(name string) string { return env[name] }
	m := New(Options{Dir: dir, Getenv: getenv, Policy: egress.Policy{Getenv: getenv}})
	defer m.Close()
	e, err := m.Open(t.Context(), &settle.Metering{Upstream: upstream, Key: &from, In: "agent/coder", Setting: "proxy.upstream"}, nil, nil)
	if err != nil {
		if key := (*runner.KeyError)(nil); !errors.As(err, &key) || strings.Contains(err.Error(), canary) {
			t.Errorf("the error is %v", err)
		}
		return err
	}
	defer e.Close()
	if e.Secret() != canary || e.Token() == canary {
		t.Errorf("the key is %q, the token %q", e.Secret(), e.Token())
	}
	return nil
}

// TestKeysAreSentOnlyWhereAllowed tests that an address gets a key only if the user allows it.
func TestKeysAreSentOnlyWhereAllowed(t *testing.T) {
	from := schemas.KeySource{Env: "TEAM_API_KEY"}
	if err := open(t, t.TempDir(), "", from); err == nil || !strings.Contains(err.Error(), "reconcile allow") {
		t.Errorf("an address that is not allowed: %v", err)
	}
	if err := open(t, t.TempDir(), upstream, from); err != nil {
		t.Errorf("one that is: %v", err)
	}
}

// TestKeysOfFilesArePrivate tests that a file holds a key only if nobody else reads it and git does not commit it.
func TestKeysOfFilesArePrivate(t *testing.T) {
	for _, c := range []struct {
		ignored string
		mode    os.FileMode
		err     string
	}{
		{"key\n", 0o600, ""}, {"key\n", 0o644, "can be read by others"}, {"", 0o600, "git does not ignore it"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"key": canary + "\n", ".gitignore": c.ignored} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), c.mode); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		err := open(t, dir, upstream, schemas.KeySource{File: "key"})
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMutants tests that these faults are noticed.
func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: []mutants.Mutant{
		{"keys are sent anywhere", "metering.go", "if err := m.o.Policy.Check(q.Destination()); err != nil {", "if err := m.o.Policy.Check(q.Destination()); false {", "TestKeysAreSentOnlyWhereAllowed"},
		{"others may read a key", "key.go", "info.Mode().Perm()&0o077 != 0", "info.Mode().Perm() == 0", "TestKeysOfFilesArePrivate"},
		{"git may commit a key", "key.go", "if err := m.mayBeHere(ctx, name, real); err != nil {", "if err := m.mayBeHere(ctx, name, real); false {", "TestKeysOfFilesArePrivate"},
	}}.Run(t)
}
