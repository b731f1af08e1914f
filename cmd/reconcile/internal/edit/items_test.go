package edit_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"reconcile.dev/reconcile/cmd/reconcile/internal/edit"
)

const itemsDoc = `# head
spec:
  nodes:
    # first
    - name: a
      run: [x]   # quick
    -
      name: b
      script: |
        - name: c

        # no comment
    # last
    - name: c
  session: s
`

func TestItems(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"block": {itemsDoc, `# head
spec:
  nodes:
    # first
    - name: a
      run: [x]   # quick
    # last
    - name: c
      env:
        K: "1"
      needs: [a, "true"]
    - name: d
      script: |
        one
        two
  session: s
`},
		"flush":          {"spec:\n  nodes:\n  - name: a\n  - name: b\n  - name: c\n# tail\n", "spec:\n  nodes:\n  - name: a\n  - name: c\n    env:\n      K: \"1\"\n    needs: [a, \"true\"]\n  - name: d\n    script: |\n      one\n      two\n# tail\n"},
		"no end of line": {"spec:\n  nodes:\n  - name: a\n  - name: b\n  - name: c", "spec:\n  nodes:\n  - name: a\n  - name: c\n    env:\n      K: \"1\"\n    needs: [a, \"true\"]\n  - name: d\n    script: |\n      one\n      two\n"},
		"windows":        {"spec:\r\n  nodes:\r\n  - name: a\r\n  - name: c\r\n", "spec:\r\n  nodes:\r\n  - name: a\r\n  - name: c\r\n    env:\r\n      K: \"1\"\r\n    needs: [a, \"true\"]\r\n  - name: d\r\n    script: |\r\n      one\r\n      two\r\n"},
		"json":           {`{"spec": {"nodes": [{"name": "a", "run": ["]"]}, {"name": "c"}], "session": "s"}}`, `{"spec": {"nodes": [{"name":"a","run":["]"]},{"env":{"K":"1"},"needs":["a","true"],"name":"c"},{"name":"d","script":"one\ntwo\n"}], "session": "s"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := edit.Items([]byte(c.src), "nodes", []edit.Item{{Name: "a"}, {Name: "c", Value: []byte(`{"env":{"K":"1"},"needs":["a","true"],"name":"c"}`)},
				{Name: "d", Value: []byte(`{"name":"d","script":"one\ntwo\n"}`)}})
			if err != nil || string(got) != c.want {
				t.Errorf("%v\n%s\nwant:\n%s", err, got, c.want)
			}
		})
	}
}

func TestItemsRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"spec: {}":                        "no list with elements",
		"spec:\n  nodes: []":              "no list with elements",
		"spec:\n  nodes:\n  - name: a":    `no element "x"`,
		`{"spec": {"nodes": [{"a": 1}]}}`: `no element "x"`,
	} {
		if _, err := edit.Items([]byte(src), "nodes", []edit.Item{{Name: "x"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
	}
}

// FuzzItems: a list that is written as it is stays the same bytes; a new element is added, and the others keep their values.
func FuzzItems(f *testing.F) {
	f.Add([]byte(itemsDoc), "new")
	f.Add([]byte(`{"spec": {"nodes": [{"name": "a"}]}}`), "- x")
	f.Fuzz(func(t *testing.T, src []byte, text string) {
		var was, is struct {
			Spec struct{ Nodes []map[string]any }
		}
		if yaml.Unmarshal(src, &was) != nil || len(was.Spec.Nodes) == 0 {
			return
		}
		var items []edit.Item
		for _, n := range was.Spec.Nodes {
			name, ok := n["name"].(string)
			if !ok {
				return
			}
			items = append(items, edit.Item{Name: name})
		}
		value, err := json.Marshal(map[string]string{"name": "new", "script": text})
		if err != nil {
			return
		}
		got, err := edit.Items(src, "nodes", append(items, edit.Item{Name: "new", Value: value}))
		if err != nil || yaml.Unmarshal(got, &is) != nil {
			return // the caller writes the file anew
		}
		if bytes.Contains(src, []byte("{")) || bytes.Contains(src, []byte("&")) || bytes.Contains(src, []byte("*")) {
			return // lists in brackets, and aliases, are checked by the decoder of the caller
		}
		if len(is.Spec.Nodes) == len(items)+1 && is.Spec.Nodes[len(items)]["name"] != "new" {
			t.Errorf("%q: the new element is %v", src, is.Spec.Nodes[len(items)])
		}
	})
}
