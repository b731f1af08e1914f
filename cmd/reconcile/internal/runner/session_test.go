package runner

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

func TestConfinedArguments(t *testing.T) {
	two := []string{"--port", "{port}"}
	for _, c := range []struct {
		name     string
		argv     []string
		prompt   int
		confined bool
		args     []string
		port     string
		want     []string
		at       int
	}{
		{"confined", []string{"a", "{confined}", "-p", "?"}, 3, true, two, "7000", []string{"a", "--port", "7000", "-p", "?"}, 4},
		{"no workspace", []string{"a", "{confined}"}, 0, true, two, "", []string{"a", "--port", "0"}, 0},
		{"not confined", []string{"a", "{confined}", "-p", "?"}, 3, false, two, "7000", []string{"a", "-p", "?"}, 2},
		{"the prompt before", []string{"a", "?", "{confined}"}, 1, true, two, "1", []string{"a", "?", "--port", "1"}, 1},
		{"nothing to add", []string{"a", "{confined}", "?"}, 2, true, nil, "1", []string{"a", "?"}, 1},
		{"no placeholder", []string{"a", "?"}, 1, true, two, "1", []string{"a", "?"}, 1},
	} {
		a := &attempt{task: &settle.Command{Sandbox: &settle.Sandbox{Confined: schemas.ProfileConfined{Args: c.args}}}}
		if c.port != "" {
			a.command.env = []string{"RECONCILE_PORT_BASE=" + c.port}
		}
		if c.confined {
			a.policy = &sandbox.Policy{}
		}
		before := slices.Clone(c.argv)
		if got, at := a.confinedArguments(c.argv, c.prompt); !slices.Equal(got, c.want) || at != c.at || !slices.Equal(c.argv, before) {
			t.Errorf("%s: %q with the prompt at %d, want %q at %d", c.name, got, at, c.want, c.at)
		}
	}
}
