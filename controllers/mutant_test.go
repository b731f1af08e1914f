package controllers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are faults that the tests of this package must notice.
var mutants = []struct{ name, file, good, bad string }{
	{"a success under another key counts", "dag_node.go",
		"if runs[0].NodeKey == f.b.keys[i] {", "if runs[0].NodeKey != \"\" {"},
	{"a cancelled run counts as success", "dag_node.go",
		"case schemas.OutcomeSucceeded:", "case schemas.OutcomeSucceeded, schemas.OutcomeCancelled:"},
	{"a failed need lets a node start", "dag_node.go",
		"return s.State == schemas.NodeSucceeded ||", "return s.State == schemas.NodeSucceeded || s.State == schemas.NodeFailed ||"},
	{"pruned successes are forgotten", "dag_node.go",
		"case was.State == schemas.NodeSucceeded:\n\t\tr.won = true", "case was.State == schemas.NodeSucceeded:"},
	{"the new run starts beside the old one", "dag_node.go", "case r.other:", "case false:"},
	{"a key ignores its needs", "dag_keys.go", "inner.text(p.spec.Nodes[to].Name, keys[to])", "_ = to"},
	{"foreign claims are ignored", "admit.go", "\t\tu.foreign++\n", ""},
}

// TestMutants builds this package with one fault at a time and expects its tests to fail.
func TestMutants(t *testing.T) {
	if testing.Short() || os.Getenv(mutantEnv) != "" {
		t.Skip("takes a build for each mutant")
	}
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			src, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(src), m.good) != 1 {
				t.Fatalf("%q stands %d times in %s, want once", m.good, strings.Count(string(src), m.good), m.file)
			}
			out, err := runMutant(t, m.file, strings.Replace(string(src), m.good, m.bad, 1))
			switch {
			case err == nil:
				t.Errorf("no test notices that %s", m.name)
			case !strings.Contains(out, "--- FAIL"):
				t.Errorf("the mutant does not run: %v\n%s", err, out)
			}
		})
	}
}

const mutantEnv = "CONTROLLERS_MUTANT"

// runMutant runs the tests of the package with one file replaced.
func runMutant(t *testing.T, file, src string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	changed := filepath.Join(dir, file)
	if err := os.WriteFile(changed, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {here: changed}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-short", "-failfast", "-vet=off", "-overlay", path,
		"-run", "TestScenarios|TestRandomHistories|TestAdmit", ".")
	cmd.Env = append(os.Environ(), mutantEnv+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
