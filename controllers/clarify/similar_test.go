package clarify

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/similar"
)

func TestEvasive(t *testing.T) {
	const q = "Dual layer or migrate?"
	for answer, want := range map[string]bool{"": true, " \t\n": true, q: true, "dual layer, or migrate": true,
		"Migrate or dual layer?!": true, "You ask: dual layer or migrate?": true,
		"Should we migrate or keep a dual layer?":                             true,
		"ADR-42 says PostgreSQL, codebase uses SQLite; dual-layer or migrate": false,
		"Migrate.": false, "Dual layer.": false, "Why not both?": false, "No.": false, "?": false,
		"Dual layer: SQLite for dev, PostgreSQL for prod.": false} {
		if got := evasiveAnswer(q, answer); got != want {
			t.Errorf("%q: %t, similarity %.2f", answer, got, similar.OfWords(q, answer))
		}
	}
}

// FuzzSimilarity: any two texts have a similarity between 0 and 1, the same both ways; a text is like itself.
func FuzzSimilarity(f *testing.F) {
	f.Add("Dual layer or migrate?", "数据库 \xff é")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := similar.OfWords(a, b), similar.OfWords(b, a)
		if x != y || x < 0 || x > 1 || similar.OfWords(a, a) != 1 {
			t.Fatalf("%q and %q: %v, %v, %v", a, b, x, y, similar.OfWords(a, a))
		}
		if strings.TrimSpace(a) == "" && !evasiveAnswer(b, a) {
			t.Fatalf("%q is an answer", a)
		}
	})
}

// TestChoiceIsAnswer: an answer that repeats most of the question and takes one of its ways is an answer.
func TestChoiceIsAnswer(t *testing.T) {
	for answer, want := range map[string]bool{
		"ADR-42 says PostgreSQL but codebase uses SQLite: migrate.":                false,
		"ADR-42 says PostgreSQL but the codebase uses SQLite. Dual-layer. Migrate": true,
	} {
		if got := evasiveAnswer(question, answer); got != want {
			t.Errorf("%q: %t", answer, got)
		}
	}
}
