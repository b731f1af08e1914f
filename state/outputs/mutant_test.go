package outputs

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are faults that a test of this package must notice: those that believe bytes which others wrote.
var mutants = []struct{ name, good, bad, test string }{
	{"the bytes of a reference are trusted", "if err == nil && (n != out.Size ||", "if false && (n != out.Size ||", "TestFillTrustsNobody"},
	{"as much is read as somebody sends", "io.LimitReader(from, out.Size+1)", "from", "TestFillTrustsNobody"},
}

const mutantEnv = "OUTPUTS_MUTANT"

func TestMutants(t *testing.T) {
	if testing.Short() || os.Getenv(mutantEnv) != "" {
		t.Skip("takes a build for each mutant")
	}
	src, err := os.ReadFile("outputs.go")
	here, err2 := filepath.Abs("outputs.go")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			if n := strings.Count(string(src), m.good); n != 1 {
				t.Fatalf("%q stands %d times in outputs.go, want once", m.good, n)
			}
			dir := t.TempDir()
			changed, list := filepath.Join(dir, "outputs.go"), filepath.Join(dir, "overlay.json")
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {here: changed}})
			err = errors.Join(err, os.WriteFile(list, overlay, 0o644),
				os.WriteFile(changed, []byte(strings.Replace(string(src), m.good, m.bad, 1)), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-failfast", "-vet=off", "-overlay", list, "-run", m.test, ".")
			cmd.Env = append(os.Environ(), mutantEnv+"=1")
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL") {
				t.Errorf("no test notices that %s: %v\n%s", m.name, err, out)
			}
		})
	}
}
