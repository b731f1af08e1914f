package loop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are faults in finding what differs from the settled tree, which the comparison with whole runs must notice.
var mutants = []struct{ name, file, good, bad string }{
	{"what becomes due is forgotten", "../../../../state/base.go", "range b.clocks {\n\t\tu.touch", "range b.clocks[:0] {\n\t\tu.touch"},
	{"who refers to what changed is forgotten", "../../../../state/base.go", "\tu.readers()\n", ""},
	{"inputs are forgotten", "../../../../state/base.go", "\tu.inputs()\n", ""},
	{"outputs are forgotten", "../../../../state/base.go", "\tu.outputs(was)\n", ""},
	{"what is gone is forgotten", "../../../../state/base.go", "if left--; !u.forget(p, sum) {", "if left--; sum == 0 {"},
	{"a status changed by hand is believed", "../../../../state/base.go", "if had && sum == f.content() {",
		"if had && (f.area == areaStatus || sum == f.content()) {"},
	{"ledgers are believed", "../../../../state/base.go", "\t\tu.about(f, !had)\n",
		"\t\tif f.area != areaLedgers {\n\t\t\tu.about(f, !had)\n\t\t}\n"},
}

// TestMutants runs the comparison with one fault at a time and expects it to fail.
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
			if n := strings.Count(string(src), m.good); n != 1 {
				t.Fatalf("%q stands %d times in %s, want once", m.good, n, m.file)
			}
			out, err := runMutant(t, m.file, strings.Replace(string(src), m.good, m.bad, 1))
			switch {
			case err == nil:
				t.Errorf("the comparison does not notice that %s", m.name)
			case !strings.Contains(out, "--- FAIL"):
				t.Errorf("the mutant does not run: %v\n%s", err, out)
			}
		})
	}
}

const mutantEnv = "LOOP_MUTANT"

// runMutant runs the comparison with one file replaced.
func runMutant(t *testing.T, file, src string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.go")
	here, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {here: changed}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	for name, text := range map[string]string{changed: src, path: string(overlay)} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-short", "-failfast", "-vet=off", "-overlay", path, "-run", "TestRunSinceSettled", ".")
	cmd.Env = append(os.Environ(), mutantEnv+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
