package edit

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestSpec(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"block", "kind: Session\nspec:\n  title: x # why\n  phase: Paused   # for now\n",
			"kind: Session\nspec:\n  title: x # why\n  phase: Active   # for now\n"},
		{"same", "spec: {phase: Active}\n", "spec: {phase: Active}\n"},
		{"double quotes", "spec:\n    phase: \"Paused\"\n", "spec:\n    phase: \"Active\"\n"},
		{"single quotes", "spec: {phase: 'Paused'} # c\n", "spec: {phase: 'Active'} # c\n"},
		{"no value", "spec:\n  phase: Paused", "spec:\n  phase: Active"},
		{"insert block", "# head\nspec:\n  # about the title\n  title: x\n", "# head\nspec:\n  # about the title\n  phase: Active\n  title: x\n"},
		{"insert crlf", "spec:\r\n  title: x\r\n", "spec:\r\n  phase: Active\r\n  title: x\r\n"},
		{"insert flow", "spec: {title: x}\n", "spec: {phase: Active, title: x}\n"},
		{"insert empty flow", "spec: {}\n", "spec: {phase: Active}\n"},
		{"json", `{"spec": {"phase": "Paused", "title": "x"}}`, `{"spec": {"phase": "Active", "title": "x"}}`},
		{"json insert", "{\n  \"spec\": {\n    \"title\": \"x\"\n  }\n}\n",
			"{\n  \"spec\": {\n    \"phase\": \"Active\",\n    \"title\": \"x\"\n  }\n}\n"},
		{"wide characters before", "spec: {title: \"日本\U0001F600\", phase: Paused}\n", "spec: {title: \"日本\U0001F600\", phase: Active}\n"},
		{"byte order mark", "\ufeffspec: {phase: Paused}\n", "\ufeffspec: {phase: Active}\n"},
	} {
		got, err := Spec([]byte(c.src), "phase", "Active")
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
}

func TestSpecRefuses(t *testing.T) {
	for name, src := range map[string]string{
		"no spec":     "kind: Session\n",
		"null spec":   "spec:\n",
		"a list":      "[1]\n",
		"broken":      "spec: {phase: [\n",
		"block value": "spec:\n  phase: |\n    Paused\n",
		"escapes":     "spec: {phase: \"Pa\\x75sed\"}\n",
		"a mapping":   "spec: {phase: {a: b}}\n",
		"empty":       "",
	} {
		if got, err := Spec([]byte(src), "phase", "Active"); err == nil {
			t.Errorf("%s: accepted as %q", name, got)
		}
	}
}

// Whatever the text: either it is refused, or the field has the value and nothing else changed.
func FuzzSpec(f *testing.F) {
	f.Add("spec:\n  title: x\n  phase: Paused\n")
	f.Add("{\"spec\": {\"title\": \"x\"}}")
	f.Add("\ufeffspec: {é: 'ü', phase: Paused}")
	f.Fuzz(func(t *testing.T, src string) {
		var before, after map[string]any
		if yaml.Unmarshal([]byte(src), &before) != nil || strings.ContainsAny(src, "&*!") {
			return
		}
		if _, ok := before["spec"].(map[string]any); !ok {
			return
		}
		got, err := Spec([]byte(src), "phase", "Active")
		if err != nil {
			return
		}
		if err := yaml.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q became %q: %v", src, got, err)
		}
		spec, _ := after["spec"].(map[string]any)
		if spec["phase"] != "Active" {
			t.Fatalf("%q became %q", src, got)
		}
	})
}
