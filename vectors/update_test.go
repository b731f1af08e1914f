package vectors_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors"
)

// What comes of changes one after the other is what comes of building anew, and what is read back from the two files.
func TestUpdateIsARebuild(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		w := newWorld(seed)
		base := build(t, w.inputs(), options())
		x := open(t, base, nil, options())
		rebuilt, updated := 0, 0
		for range 12 {
			var changed []vectors.Input
			var gone []string
			for range 1 + w.IntN(3) {
				name, went := w.change()
				changed = slices.DeleteFunc(changed, func(in vectors.Input) bool { return in.Name == name })
				gone = slices.DeleteFunc(gone, func(s string) bool { return s == name })
				if went {
					gone = append(gone, name)
				} else {
					changed = append(changed, w.input(strings.TrimPrefix(name, "file:")))
				}
			}
			snapshot := build(t, w.inputs(), options())
			want := answers(t, open(t, snapshot, nil, options()))
			next, err := x.Stored.Update(t.Context(), changed, gone)
			if errors.Is(err, vectors.ErrRebuild) {
				rebuilt++
				base = snapshot
				x = open(t, base, nil, options())
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			updated++
			if got := answers(t, next); got != want {
				t.Fatalf("seed %d: changed %v, gone %v:\n%s", seed, names(changed), gone, difference(got, want))
			}
			if x = next; w.IntN(2) == 0 { // the next change finds the vectors of this one in a file, or in memory
				x = open(t, base, joined(next.Delta()), options())
				if got := answers(t, x); got != want {
					t.Fatalf("seed %d: read back:\n%s", seed, difference(got, want))
				}
			}
		}
		if updated < rebuilt {
			t.Errorf("seed %d: %d of %d changes need a rebuild", seed, rebuilt, rebuilt+updated)
		}
	}
}

func names(inputs []vectors.Input) []string {
	var out []string
	for _, in := range inputs {
		out = append(out, in.Name)
	}
	return out
}

// difference are the lines that only one of two texts has.
func difference(got, want string) string {
	var b strings.Builder
	has, wants := strings.Split(got, "\n"), strings.Split(want, "\n")
	for _, line := range has {
		if !slices.Contains(wants, line) {
			b.WriteString("has   " + line + "\n")
		}
	}
	for _, line := range wants {
		if !slices.Contains(has, line) {
			b.WriteString("lacks " + line + "\n")
		}
	}
	return b.String()
}
