package vectors

import (
	"fmt"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
)

// texts are those of some items, each once: code for several systems is often the same.
type texts struct {
	items []*graph.Item // the first one with each text
	times []int         // how many items have it
	of    []int         // the number of the text of each item
}

// distinct finds the texts of items.
func (b *building) distinct(items []*graph.Item) *texts {
	t := &texts{of: make([]int, len(items))}
	known := make(map[uint64]int, len(items)) // by hash; of different texts with one hash the first
	for i, it := range items {
		hash := hashText(it)
		n, there := known[hash]
		if !there {
			known[hash] = len(t.items)
		}
		if !there || t.items[n].Title != it.Title || t.items[n].Body != it.Body {
			n = len(t.items)
			t.items, t.times = append(t.items, it), append(t.times, 0)
		}
		t.of[i] = n
		t.times[n]++
		if (i+1)%forgetAfter == 0 {
			b.Forget()
		}
	}
	return t
}

func hashText(it *graph.Item) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.WriteString(it.Title)
	_, _ = h.WriteString("\n")
	_, _ = h.WriteString(it.Body)
	return h.Sum64()
}

// featureWriter stores features.
type featureWriter struct {
	rows   *rows
	chunks []chunk // that were put aside
	data   []byte  // what waits
}

// flush stores the buffered features, if they are at least that many bytes.
func (w *featureWriter) flush(atLeast int) error {
	if len(w.data) < atLeast {
		return nil
	}
	c, err := w.rows.store(w.data)
	w.chunks, w.data = append(w.chunks, c), w.data[:0]
	return err
}

// featureReader makes vectors from stored features of texts.
type featureReader struct {
	*embed.Builtin
	rows   *rows
	chunks []chunk // that are still to be read
	data   []byte  // the rest of the previous chunk
	room   []byte
}

// vectors returns those of the items whose features are next: for a long one the mean of those of its pieces.
func (r *featureReader) vectors(items []*graph.Item) ([][]float32, error) {
	out := make([][]float32, len(items))
	var piece []float32
	for i, it := range items {
		v := make([]float32, r.Dimensions())
		if err := r.next(v); err != nil {
			return nil, err
		}
		n := pieceCount(it)
		for range n - 1 {
			if piece == nil {
				piece = make([]float32, len(v))
			}
			if err := r.next(piece); err != nil {
				return nil, err
			}
			addTo(v, piece)
		}
		if n > 1 {
			scaleMean(v)
		}
		out[i] = v
	}
	return out, nil
}

// next makes the vector of the next text.
func (r *featureReader) next(into []float32) (err error) {
	if len(r.data) == 0 && len(r.chunks) > 0 {
		if r.data, err = r.rows.load(r.chunks[0], r.room); err != nil {
			return err
		}
		r.room, r.chunks = r.data, r.chunks[1:]
	}
	r.data, err = r.EmbedFeatures(r.data, into)
	return err
}

// hasText reports whether an item is found by meaning.
func hasText(it *graph.Item) bool { return hasVectors(it.Type) && (it.Title != "" || it.Body != "") }

// hasVectors reports whether nodes of a type are found by meaning. Third-party packages are found by their names only; constants
// and variables, which are many and say little, by their words.
func hasVectors(t graph.NodeType) bool {
	return t != graph.Import && t != graph.Constant && t != graph.Variable
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
