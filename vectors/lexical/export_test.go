package lexical

import "math"

const TitleWeight = titleWeight

// RoundedLength is the length that is kept for a length.
func RoundedLength(n int) int { return lengthOf(lengthClass(n)) }

// BM25 is the formula as the books have it.
func BM25(docs, df, tf, length int, average float64) float64 {
	const k1, b = 1.2, 0.75
	idf := math.Log(1 + (float64(docs-df)+0.5)/(float64(df)+0.5))
	return max(idf, 1.0/16) * float64(tf) * (k1 + 1) / (float64(tf) + k1*(1-b+b*float64(length)/average))
}
