package schemas_test

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestLinesOf(t *testing.T) {
	t.Parallel()
	yaml := `kind: DAG
spec:
  nodes:
  - name: one
    script: |
      first

      second

  # of the next
  - {name: two, run: [a, b]}
  - name: three
    needs:
    - one
    - two
    prompt: "said
      in two lines"
  session: s
`
	json := `{
  "kind": "DAG",
  "spec": {
    "nodes": [
      {"name": "one"},
      {
        "name": "two",
        "run": ["a"]
      }
    ]
  }
}
`
	for name, c := range map[string]struct {
		path, text string
		want       []schemas.Lines
	}{
		"yaml":    {"a.yaml", yaml, []schemas.Lines{{From: 4, To: 8}, {From: 11, To: 11}, {From: 12, To: 17}}},
		"windows": {"a.yaml", "spec:\r\n  nodes:\r\n  - name: a\r\n    script: |\r\n      b\r\n\r\n  session: s\r\n", []schemas.Lines{{From: 3, To: 5}}},
		"json":    {"a.json", json, []schemas.Lines{{From: 5, To: 5}, {From: 6, To: 8}}},
		"none":    {"a.yaml", "spec: {nodes: 3}\n", nil},
		"empty":   {"a.yaml", "spec: {nodes: []}\n", []schemas.Lines{}},
		"broken":  {"a.yaml", "spec: [\n", nil},
	} {
		got := schemas.LinesOf(c.path, []byte(c.text), "spec", "nodes")
		if !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
