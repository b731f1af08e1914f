package embed

import "iter"

// For tests of the arithmetic.
var (
	Log2         = log2
	Rarity       = rarity
	CountWeights = &countWeights
)

const MaxText = maxText

// Train makes the embedder of texts.
func Train(texts iter.Seq[string], dimensions int) *Builtin {
	l := NewLearner()
	var data []byte
	for text := range texts {
		data = l.Add(data[:0], text, 1)
	}
	return Learned(dimensions, l)
}
