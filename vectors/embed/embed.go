package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Embedder makes vectors of texts: the nearer two are in meaning, the larger the dot product of theirs. It is safe for
// concurrent use.
type Embedder interface {
	// Model names what makes the vectors, with everything that changes them: vectors of different models are never
	// compared.
	Model() string
	// Embed makes one vector of length 1 for each text, all of as many numbers. The first line of a text is its title. A
	// text that says nothing (see Blank) has the vector of [Nothing]. The error is that of the context, or wraps
	// ErrUnavailable.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// ErrUnavailable reports that an embedder has no vectors now; search by words still answers.
var ErrUnavailable = errors.New("no vectors can be had")

// MaxDimensions is how many numbers a vector may have.
const MaxDimensions = 4096

// Text is the text of a title and a body, as an Embedder takes it.
func Text(title, body string) string {
	return strings.ReplaceAll(title, "\n", " ") + "\n" + body
}

// Blank reports whether a text is blank: nothing is left of it without its white space.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }

// Nothing returns the vector of that many dimensions for a text that says nothing: 1, then zeros.
func Nothing(dimensions int) []float32 {
	v := make([]float32, dimensions)
	v[0] = 1
	return v
}

// Unit scales a vector to length 1, and returns an error for a vector without a direction, which is zero or has a NaN
// or infinite number. The result is the same on every machine.
func Unit(v []float32) error {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x) // exact in float64, so that it does not matter whether the sum is fused
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return fmt.Errorf("a vector of %d numbers has no direction: the sum of their squares is %v", len(v), sum)
	}
	length := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
	return nil
}
