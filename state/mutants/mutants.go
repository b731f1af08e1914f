// Package mutants does mutation testing: it builds a package with one fault at a time and expects its tests to fail. It
// is for tests only.
package mutants

import (
	"context"
	"encoding/json"
	"fmt"
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

// NoticedBy gives those of the mutants that name no tests these, so that mutants with different tests share a suite and its program.
func NoticedBy(tests string, all []Mutant) []Mutant {
	out := slices.Clone(all)
	for i := range out {
		if out[i][4] == "" {
			out[i][4] = tests
		}
	}
	return out
}

// Suite has the faults that the tests of one package must detect.
type Suite struct {
	Mutants []Mutant
	First   []string // the tests that notice most faults soonest, each in the form of go test -run; the next ones run only for a fault that these leave
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
// be made. It builds one program for all faults in bodies of functions, which its environment tells what to show; a fault
// that is elsewhere, or that the program does not show because a child has another environment, gets a program of its own.
func (s Suite) Run(t *testing.T) {
	if os.Getenv(underTest) != "" {
		t.Skip("this is a mutant")
	}
	sample := s.sample(t)
	var p *program
	if !testing.Short() && len(sample) > 1 {
		p = s.build(t, sample)
	}
	for i, m := range s.Mutants {
		t.Run(strings.ReplaceAll(m[0], " ", "_"), func(t *testing.T) {
			if s.Parallel {
				t.Parallel()
			}
			m.check(t)
			if testing.Short() || !sample[i] || p.shows(t, m[4], i) {
				return
			}
			out, err := s.test(t, m)
			switch {
			case err == nil:
				t.Errorf("no test notices that %s", m[0])
			case !strings.Contains(out, failure):
				t.Errorf("the mutant does not run: %v\n%s", err, out)
			}
		})
	}
}

// failure is in the output of each failed test.
const failure = "--- FAIL"

// One of sampleShare mutants is tested. A small suite has none in most versions of its files: each has a program that takes seconds to build.
const sampleShare = 30

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
	random := rand.New(rand.NewPCG(seed.Sum64(), 0))
	order := random.Perm(len(s.Mutants))
	size := (len(order) + random.IntN(sampleShare)) / sampleShare
	if All() {
		size = len(order)
	}
	chosen := map[int]bool{}
	for _, i := range order[:min(size, len(order))] {
		chosen[i] = true
	}
	return chosen
}

// check fails if the fault cannot be made.
func (m Mutant) check(t *testing.T) []byte {
	t.Helper()
	src, err := os.ReadFile(m[1])
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), m[2]); n != 1 {
		t.Fatalf("%q stands %d times in %s, want once", m[2], n, m[1])
	}
	return src
}

// overlay writes files with the given contents, and the file for go test -overlay with which they replace those at the paths of the map;
// it returns the path of that file.
func overlay(dir string, contents map[string]string) (string, error) {
	replace := map[string]string{}
	for path, text := range contents {
		here, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		replace[here] = filepath.Join(dir, fmt.Sprintf("changed%d.go", len(replace)))
		if err := os.WriteFile(replace[here], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, data, 0o644)
}

// test runs the tests with the fault, in a program of its own, and returns their output.
func (s Suite) test(t *testing.T, m Mutant) (string, error) {
	list, err := overlay(t.TempDir(), map[string]string{m[1]: strings.Replace(string(m.check(t)), m[2], m[3], 1)})
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"test", "-failfast", "-vet=off", "-overlay", list}, s.Args...)
	if tests := m[4]; tests != "" {
		args = append(args, "-run", tests)
	}
	return s.output(t.Context(), "1", "go", append(args, ".")...)
}

// output runs a command with the environment of the suite and a fault, by its number.
func (s Suite) output(ctx context.Context, fault, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.Concat(environ, s.Env, []string{underTest + "=" + fault})
	out, err := cmd.CombinedOutput()
	return string(out), err
}
