package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"sigs.k8s.io/yaml"
)

// TestUpToDate fails when a Go type, a comment, an example or a page changed and nobody ran the generator.
func TestUpToDate(t *testing.T) {
	t.Chdir("../../../../..")
	if err := run(".", true); err != nil {
		t.Error(err)
	}
}

// TestSchemasForOthers: every schema keeps the meta-schema that it names, and a validator that knows nothing of this
// project accepts the example of its kind, and refuses it with a field that no kind has.
func TestSchemasForOthers(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "..")
	published, err := filepath.Glob(filepath.Join(root, "schemas", "*.schema.json"))
	if err != nil || len(published) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	for _, name := range published {
		schema, err := jsonschema.Compile(name) // against its meta-schema, too
		if err != nil {
			t.Errorf("%#v", err)
			continue
		}
		kind := strings.TrimSuffix(filepath.Base(name), ".schema.json")
		if kind == "workflow.toml" {
			continue // its example is not JSON, nor YAML
		}
		text, err := os.ReadFile(filepath.Join(root, "examples", kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("examples/%s.yaml: %#v", kind, err)
		}
		doc["spec"].(map[string]any)["noSuchField"] = true
		if schema.Validate(doc) == nil {
			t.Errorf("%s: an unknown field is accepted", kind)
		}
	}
}

func TestApply(t *testing.T) {
	root := t.TempDir()
	files := []file{{"a", []byte("1")}, {"b", []byte("2")}}
	if err := apply(root, files, true); err == nil || !strings.Contains(err.Error(), "out of date: a, b") {
		t.Errorf("missing files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "a")); err == nil {
		t.Error("a check has written")
	}
	if err := apply(root, files, false); err != nil {
		t.Fatal(err)
	}
	if err := apply(root, files, true); err != nil {
		t.Errorf("after writing: %v", err)
	}
	files[1].data = []byte("3")
	if err := apply(root, files, true); err == nil || !strings.Contains(err.Error(), "out of date: b;") {
		t.Errorf("an edited file: %v", err)
	}
}

func TestReplace(t *testing.T) {
	got, err := replace([]byte("a\n<!-- x -->\nold\n<!-- /x -->\nb\n"), "x", "new\n")
	if err != nil || string(got) != "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "<!-- x -->\n", "<!-- /x -->"} {
		if _, err := replace([]byte(bad), "x", ""); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct{ name, comment, want string }{
		{"Title", "Title says in a line\nwhat it is.", "Says in a line what it is."},
		{"Steps", "Steps are the steps.", "The steps."},
		{"Run", "Commands run.", "Commands run."},
	} {
		if got := describe(c.name, c.comment); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
