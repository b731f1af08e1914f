package clarify

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
	{"a pending question can be resolved", "moves.go", "schemas.ClarificationPending: {",
		"schemas.ClarificationPending: {schemas.ClarificationResolved, "},
	{"moves are not checked", "moves.go", "if !Legal(from, to) {", "if false {"},
	{"the order of what happened is ignored", "decide.go", "e.at.Before(first.at.Time)", "true"},
	{"a question too many is asked", "decide.go", "if e.Round > d.st.MaxRounds {", "if e.Round > d.st.MaxRounds+1 {"},
	{"a cancelled run is an attempt", "runs.go", "case schemas.OutcomeSucceeded, ",
		"case schemas.OutcomeCancelled, schemas.OutcomeSucceeded, "},
	{"every answer that is too long is asked for again", "runs.go", "long++; long == 1", "long++; long >= 1"},
	{"an answer that is too long is a failure at once", "runs.go", "long++; long == 1", "long++; long == 0"},
	{"a record that cannot be used takes a number", "file.go", "if r.bad && r.Request == \"\" {", "if false {"},
	{"the first record keeps its number before ours", "renumber.go", "o.Request != \"\" }", "false }"},
	{"a success without the answer resolves", "task.go", "&& d.sawAnswer(r)", ""},
	{"what was refused is taken later", "replies.go", "if f := refusalOf(st, r); f != nil {",
		"if f := refusalOf(st, r); false {"},
	{"a foreign turn is written over", "fold.go", "len(foreign(r.Thread, c.Thread)) > 0 ||", ""},
	{"a foreign status is written over", "fold.go", "|| ahead(&r.Clarification, c.Status, c.Round)", ""},
	{"a broken deadlock is a question that is turned round", "monitor.go", " || deadlock(c, first) {", " {"},
	{"the upstream agent gives way", "rings.go", "cmp.Compare(a.Rank, b.Rank)", "cmp.Compare(b.Rank, a.Rank)"},
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
			if n := strings.Count(string(src), m.good); n != 1 {
				t.Fatalf("%q stands %d times in %s, want once", m.good, n, m.file)
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

const mutantEnv = "CLARIFY_MUTANT"

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
	cmd := exec.Command("go", "test", "-short", "-failfast", "-vet=off", "-overlay", path, ".")
	cmd.Env = append(os.Environ(), mutantEnv+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
