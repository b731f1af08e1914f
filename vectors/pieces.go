package vectors

import (
	"context"
	"fmt"
	"slices"
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

// embedding makes the vectors of some items.
type embedding struct {
	building *building
	embed.Embedder
	vectors [][]float32 // of the items; of an item of several pieces the sum of theirs
	several []bool
	texts   []string // that wait, and the items that they are of
	of      []int
}

// embedBatch makes the vectors of items: of a long one the mean of those of its pieces.
func (b *building) embedBatch(ctx context.Context, e embed.Embedder, items []*graph.Item) ([][]float32, error) {
	m := &embedding{building: b, Embedder: e, vectors: make([][]float32, len(items)), several: make([]bool, len(items))}
	for i, it := range items {
		for _, text := range pieces(it) {
			if m.texts, m.of = append(m.texts, text), append(m.of, i); len(m.texts) < batch {
				continue
			}
			if err := m.flush(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := m.flush(ctx); err != nil {
		return nil, err
	}
	for i, v := range m.vectors {
		if m.several[i] {
			scaleMean(v)
		}
	}
	return m.vectors, nil
}

// flush embeds the pending texts.
func (m *embedding) flush(ctx context.Context) error {
	if len(m.texts) == 0 {
		return nil
	}
	made, err := m.Embed(ctx, m.texts)
	if err == nil {
		err = checkVectors(made, len(m.texts), m.building.Dims)
	}
	if err != nil {
		return err
	}
	for n, v := range made {
		i := m.of[n]
		if m.vectors[i] == nil {
			m.vectors[i] = v
			continue
		}
		if !m.several[i] { // a vector may be the embedder's own
			m.vectors[i], m.several[i] = slices.Clone(m.vectors[i]), true
		}
		addTo(m.vectors[i], v)
	}
	m.texts, m.of = m.texts[:0], m.of[:0]
	return nil
}

func checkVectors(vs [][]float32, n, dims int) error {
	if len(vs) != n {
		return fmt.Errorf("the embedder made %d vectors of %d texts", len(vs), n)
	}
	for _, v := range vs {
		if len(v) != dims {
			return fmt.Errorf("the embedder makes vectors of %d numbers, and index.dimensions is %d; set it to what the model gives",
				len(v), dims)
		}
	}
	return nil
}
