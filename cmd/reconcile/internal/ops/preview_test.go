package ops_test

import (
	"context"
	"os"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

func TestPreview(t *testing.T) {
	env := open(t)
	write(t, env, "a.txt", "one\n")
	ask := func(q ops.PreviewRequest) (lines int, err error) {
		c, err := ops.Preview(t.Context(), env, q)
		if err != nil {
			return 0, err
		}
		return c.Lines(), nil
	}
	if n, err := ask(ops.PreviewRequest{Paths: []string{"a.txt", "b.txt"}, Proposed: [][]byte{[]byte("two\n"), nil}}); err != nil || n != 2 {
		t.Errorf("%d lines, %v", n, err)
	}
	if text, err := os.ReadFile(env.CallerPath("a.txt")); err != nil || string(text) != "one\n" {
		t.Errorf("the file is %q now, %v", text, err)
	}
	// A new file that is too large to be compared is not read, as little as a binary one.
	gitIn(t, env.CallerPath("."), "init", "-q")
	gitIn(t, env.CallerPath("."), "commit", "-q", "--allow-empty", "-m", "start")
	write(t, env, "large.txt", "")
	if err := os.Truncate(env.CallerPath("large.txt"), 1<<40); err != nil {
		t.Skip(err) // no sparse files here
	}
	c, err := ops.Preview(t.Context(), env, ops.PreviewRequest{Paths: []string{"large.txt"}})
	if err != nil || len(c.Files) != 1 || !c.Files[0].Binary {
		t.Errorf("%+v, %v", c, err)
	}
	for name, q := range map[string]ops.PreviewRequest{
		"a base":       {Paths: []string{"a.txt"}, Proposed: [][]byte{nil}, Base: "main"},
		"another path": {Paths: []string{"a.txt"}, Proposed: [][]byte{nil, nil}},
	} {
		if _, err := ask(q); ops.CodeOf(err) != ops.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Preview(ctx, env, ops.PreviewRequest{})
		return err
	})
}
