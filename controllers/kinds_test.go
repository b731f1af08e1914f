package controllers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/schemas"
)

// TestKindsAreComplete says what is missing when a kind was added in one place only.
func TestKindsAreComplete(t *testing.T) {
	scenarios := scenarioText(t)
	words := map[string]string{}
	for _, k := range Kinds {
		for what, path := range map[string]string{
			"a real example":                     "../examples/" + k.Singular() + ".yaml",
			"a published schema (make generate)": "../schemas/" + k.Singular() + ".schema.json",
			"a page in the docs":                 "../docs/kinds/" + k.Singular() + ".md",
		} {
			if _, err := os.Stat(filepath.FromSlash(path)); err != nil {
				t.Errorf("kind %s lacks %s: add %s", k.Name, what, strings.TrimPrefix(path, "../"))
			}
		}
		if !strings.Contains(scenarios, "\nkind: "+k.Name+"\n") {
			t.Errorf("kind %s lacks a test case: add one to controllers/testdata/*.txtar", k.Name)
		}
		if k.Name == schemas.SettingsKind.Name {
			continue
		}
		if k.Decide == nil || k.NewStatus == nil {
			t.Errorf("kind %s lacks a decision or a status: add controllers/%s and name its row in controllers/kinds.go", k.Name,
				k.Plural)
		}
		for _, w := range append([]string{k.Singular(), k.Plural}, k.Aliases...) {
			if other, taken := words[w]; taken && other != k.Name {
				t.Errorf("kinds %s and %s are both called %q", k.Name, other, w)
			}
			words[w] = k.Name
		}
	}
}

func scenarioText(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			b.Write(f.Data)
		}
	}
	return b.String()
}
