// Package embed computes vectors of texts, so that texts can be compared by subject: the dot product of two is larger
// if they have more in common.
//
// [Embedder] is the interface of all embedders. [Builtin] is one that needs neither a network nor a model: it takes its
// word statistics from the indexed texts.
//
// # Features
//
// A text is its title, which is its first line, and its body. Each is cut into the terms of package lexical, so that a
// word means the same to both searches: words without their endings, whole identifiers and their parts, paths, pairs of
// characters in scripts without spaces. Each term is cut further into runs of three and four characters, with marks at
// its begin and end: they make config similar to configuration, and a mistyped word similar to the right one. A
// frequency n counts as 1+ln(n), the rarity among the texts as the fourth root of ln(1+N/(df+1/2)), from two buckets of
// a count-min sketch; a piece counts 0.2 of a term.
//
// # Projection
//
// Each feature adds its weight to eight components of the vector (pieces: four) or subtracts it from them, as its hash
// selects: dot products are preserved, except for noise of about 1/sqrt(dimensions). The sums of title and body are
// scaled to lengths 1.25 and 1 and added, and the result is scaled to length 1. So a long body does not dominate the
// title, and a question, which is a single line, is compared with both.
//
// # What was measured
//
// By package eval: the queries are the first sentences of the documentation of functions, without the function's name,
// of Go's standard library and of other modules.
//
//	                                      lexical          vector           hybrid
//	                   functions  asked   MRR@10  recall   MRR@10  recall   MRR@10  recall
//	standard library      33,685  4,342    0.392   0.637   0.428   0.653    0.451   0.700
//	go-git v5.19.3         2,250    601    0.516   0.764    0.561   0.805    0.586   0.824
//	x/tools v0.52.0        3,462    735    0.468   0.722    0.511   0.744    0.551   0.786
//	go-github v60          4,382  1,705    0.683   0.893    0.783   0.938    0.780   0.938
//	reconcile              3,259    514    0.287   0.512    0.262   0.461    0.287   0.514
//
// The last has doc comments of one sentence, so that no text is left to search. A title that counts more improves the
// first three, and worsens the others.
//
// Not kept, since they did not help on the standard library: pairs of adjacent words (worse by 0.02, as they add noise),
// pieces of five characters, a fixed place for the most frequent features, equal variance of all components, and what
// goes beyond words by their company in the texts: random indexing of a second order (Kanerva and others, 2000; Sahlgren,
// 2005), which gained 0.02 over words, but nothing over words and their pieces, and latent semantic analysis (Deerwester
// and others, 1990) of 64, 128 or 256 of the components: 0.004 at most. Without projection, hybrid would gain 0.01.
//
// # The same everywhere
//
// Equal texts make equal statistics, in any order and on any number of processors, and these make equal vectors on any
// machine: sums are of integers, logarithms are taken by integers, and of floating-point numbers only operations are used
// that are rounded correctly everywhere, none of them fused.
//
// # Format
//
// A file of package sections: the dimensions and the number of texts, 8 bytes each; for each of 2 times 131,072 buckets the
// weight of features in it, one byte, used in place. Any other file gives [ErrDamaged].
//
// # Statistics and indexes
//
// [Builtin.Model] has the digest of the statistics. An index that only a few files change keeps its statistics, and so
// its vectors: rarities hardly move. It takes new ones when it is rebuilt.
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
