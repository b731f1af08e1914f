package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const program0 = `package main

import "fmt"

type word string

func (word) length(string, ...int) int { return 1 }

func (w *word) set(_ int, to ...string) { *w = word(to[0]) }

func first[K comparable, V any](m map[K]V, _ V, k K) (v V) {
	v = m[k]
	return
}

const two = 2

func main() {
	var w word
	w.set(0, "a", "b")
	fmt.Print(w.length("", 1, 2), w, " ", first(map[int]int{1: 3}, 0, 1), two)
}
`

// TestSwitched: one program shows each fault that is in the body of a function, and none of another number.
func TestSwitched(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, []byte(program0), 0o644); err != nil {
		t.Fatal(err)
	}
	s := switched{files: map[string]*switchedFile{}, packages: map[string]string{}}
	faults := []Mutant{
		{"", main, "return 1", "return 7"}, {"", main, "word(to[0])", "word(to[1])"}, {"", main, "v = m[k]", "_ = v"},
		{"", main, "*w = ", "_ = "}, {"", main, "two = 2", "two = 5"},
	}
	for i, m := range faults {
		if in, err := s.add(m, i); err != nil || in != (i < 4) {
			t.Fatalf("%q: %v, %v", m[2], in, err)
		}
	}
	list, err := overlay(dir, s.contents())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "program")
	// All files are named, as the folder has no go.mod.
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "-o", bin, main, filepath.Join(dir, "active_mutant.go"))
	build.Env = environ
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, want := range []string{"7a 3 2", "1b 3 2", "1a 0 2", "1 3 2", "1a 3 2"} {
		out, err := Suite{}.output(t.Context(), strconv.Itoa(i), bin)
		if got := strings.TrimSpace(out); err != nil || got != want {
			t.Errorf("fault %d: %q, want %q: %v", i, got, want, err)
		}
	}
}
