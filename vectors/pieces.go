package vectors

import (
	"unicode/utf8"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
)

// pieceSize is the number of bytes of a body that one vector represents: models read a limited length.
const pieceSize = 8 << 10

// pieces returns the texts to embed for an item: one, or for a long body several of about the same length, each under the
// title.
func pieces(it *graph.Item) (texts []string) {
	body := it.Body
	for left := pieceCount(it); left > 1; left-- {
		n := cutAt(body, len(body)/left)
		texts = append(texts, embed.Text(it.Title, body[:n]))
		body = body[n:]
	}
	return append(texts, embed.Text(it.Title, body))
}

// pieceCount is how many pieces there are of an item.
func pieceCount(it *graph.Item) int { return max(1, (len(it.Body)+pieceSize-1)/pieceSize) }

// addTo adds the vector of another piece of a text.
func addTo(sum, v []float32) {
	for i, x := range v {
		sum[i] += x
	}
}

// scaleMean makes a vector of the sum of those of several pieces.
func scaleMean(sum []float32) {
	if embed.Unit(sum) != nil {
		copy(sum, embed.Nothing(len(sum)))
	}
}

// cutAt is a place near n where a text can be cut: behind a space, else between two characters.
func cutAt(s string, n int) int {
	const far = 256
	for at := n; at > max(n-far, 0); at-- {
		if c := s[at-1]; c == ' ' || c == '\n' || c == '\t' {
			return at
		}
	}
	for at := n; at > max(n-utf8.UTFMax, 0); at-- {
		if utf8.RuneStart(s[at]) {
			return at
		}
	}
	return n
}
