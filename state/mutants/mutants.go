// Package mutants does mutation testing: it builds a package with one fault at a time and expects its tests to fail. It
// is for tests only.
package mutants

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Mutant is a fault: its name, a file by its path from the folder of the test, a text that occurs there once, its
// replacement, and the tests that must fail, in the form of go test -run; if empty, all that the suite runs.
type Mutant [5]string

// Suite has the faults that the tests of one package must detect.
type Suite struct {
	Mutants []Mutant
	Args    []string // further arguments of go test
	Env     []string // further environment variables
	// Parallel builds and tests several mutants at once.
	Parallel bool
}

// environ is the environment in which this process began. Tests change theirs, and with HOME the caches of the go command: a mutant
// would build everything, down to the standard library.
var environ = os.Environ()

// underTest is set in the environment of the tests of a mutant.
const underTest = "RECONCILE_MUTANT"

// Sweep is the environment variable that, set to "all", has [All] return true.
const Sweep = "RECONCILE_SWEEP"

// All reports whether tests that sample a large set, such as mutants or system calls, test all of it.
func All() bool { return os.Getenv(Sweep) == "all" }

// Size returns how many of a large set a test tries: all if [All], short with -short, unless it tests a mutant, else usual.
func Size(short, usual, all int) int {
	switch {
	case All():
		return all
	case testing.Short() && os.Getenv(underTest) == "":
		return short
	}
	return usual
}

// Run makes a subtest of each mutant. Of a large suite it tests a sample, which is a function of the files' content, so
// that a change of them selects others; for the rest, and with -short for all, it only checks that the mutant can still
// be made.
func (s Suite) Run(t *testing.T) {
	if os.Getenv(underTest) != "" {
		t.Skip("this is a mutant")
	}
	sample := s.sample(t)
	for i, m := range s.Mutants {
		t.Run(strings.ReplaceAll(m[0], " ", "_"), func(t *testing.T) {
			if s.Parallel {
				t.Parallel()
			}
			overlay := m.overlay(t)
			if testing.Short() || !sample[i] {
				return
			}
			out, err := s.test(t, m, overlay)
			switch {
			case err == nil:
				t.Errorf("no test notices that %s", m[0])
			case !strings.Contains(out, "--- FAIL"):
				t.Errorf("the mutant does not run: %v\n%s", err, out)
			}
		})
	}
}

// sampleShare is the share of the mutants of a suite that is tested, at least one of them.
const sampleShare = 10

// sample chooses the mutants to test, by their index.
func (s Suite) sample(t *testing.T) map[int]bool {
	t.Helper()
	seed := fnv.New64a()
	for _, m := range s.Mutants {
		src, err := os.ReadFile(m[1])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = seed.Write(src)
	}
	order := rand.New(rand.NewPCG(seed.Sum64(), 0)).Perm(len(s.Mutants))
	size := max(1, len(order)/sampleShare)
	if All() {
		size = len(order)
	}
	chosen := map[int]bool{}
	for _, i := range order[:min(size, len(order))] {
		chosen[i] = true
	}
	return chosen
}

// overlay writes the file with the fault, and a file for go test -overlay, whose path it returns.
func (m Mutant) overlay(t *testing.T) string {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	file, good, bad := m[1], m[2], m[3]
	src, err := os.ReadFile(file)
	must(err)
	if n := strings.Count(string(src), good); n != 1 {
		t.Fatalf("%q stands %d times in %s, want once", good, n, file)
	}
	here, err := filepath.Abs(file)
	must(err)
	dir := t.TempDir()
	changed, list := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {here: changed}})
	must(err)
	must(os.WriteFile(changed, []byte(strings.Replace(string(src), good, bad, 1)), 0o644))
	must(os.WriteFile(list, replace, 0o644))
	return list
}

// test runs the tests with the fault and returns their output.
func (s Suite) test(t *testing.T, m Mutant, overlay string) (string, error) {
	args := append([]string{"test", "-failfast", "-vet=off", "-overlay", overlay}, s.Args...)
	if tests := m[4]; tests != "" {
		args = append(args, "-run", tests)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Env = slices.Concat(environ, s.Env, []string{underTest + "=1"})
	out, err := cmd.CombinedOutput()
	return string(out), err
}
