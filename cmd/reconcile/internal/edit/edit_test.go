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

func TestAddToList(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"block", "spec:\n  commands:\n    allow:\n      - a b # why\n      - c\n", "spec:\n  commands:\n    allow:\n      - \"x y\"\n      - a b # why\n      - c\n"},
		{"block at the column of its name", "spec:\n  commands:\n    allow:\n    - a\n", "spec:\n  commands:\n    allow:\n    - \"x y\"\n    - a\n"},
		{"flow", "spec: {commands: {allow: [a]}} # c\n", "spec: {commands: {allow: [\"x y\", a]}} # c\n"},
		{"empty flow", "spec: {commands: {allow: []}}\n", "spec: {commands: {allow: [\"x y\"]}}\n"},
		{"no list", "spec:\n  commands:\n    block: [a]\n", "spec:\n  commands:\n    allow: [\"x y\"]\n    block: [a]\n"},
		{"no object", "spec:\n  runs: {keep: 3} # c\n", "spec:\n  commands: {\"allow\": [\"x y\"]}\n  runs: {keep: 3} # c\n"},
		{"nothing", "spec: {}\n", "spec: {\"commands\": {\"allow\": [\"x y\"]}}\n"},
		{"json", "{\"spec\": {\"commands\": {\"block\": []}}}", "{\"spec\": {\"commands\": {\"allow\": [\"x y\"], \"block\": []}}}"},
		{"crlf", "spec:\r\n  commands:\r\n    allow:\r\n      - a\r\n", "spec:\r\n  commands:\r\n    allow:\r\n      - \"x y\"\r\n      - a\r\n"},
	} {
		got, err := AddToList([]byte(c.src), []string{"commands", "allow"}, []string{"x y"})
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
	for name, src := range map[string]string{"no spec": "kind: Settings\n", "null": "spec:\n  commands:\n", "a word": "spec: {commands: x}\n",
		"no list": "spec: {commands: {allow: x}}\n", "inline": "spec:\n  commands:\n    allow: !!seq\n      - a\n", "broken": "spec: ["} {
		got, err := AddToList([]byte(src), []string{"commands", "allow"}, []string{"x"})
		var doc any
		if err == nil && yaml.Unmarshal(got, &doc) != nil {
			t.Errorf("%s: accepted as %q", name, got)
		}
	}
}
