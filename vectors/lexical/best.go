package lexical

import "slices"

// candidate is a document with what decides its place.
type candidate struct {
	score uint32
	key   uint64
	doc   int
}

// before reports whether a comes before b in the result.
func (a candidate) before(b candidate) bool {
	switch {
	case a.score != b.score:
		return a.score > b.score
	case a.key != b.key:
		return a.key < b.key
	}
	return a.doc < b.doc
}

// best holds the best candidates so far, as a heap with the last one at the root.
type best struct {
	heap  []candidate
	limit int
	least uint32 // scores below it need not be offered
}

func (b *best) reset(limit int) { b.heap, b.limit, b.least = b.heap[:0], limit, 1 }

// wants reports whether c is among the best so far.
func (b *best) wants(c candidate) bool { return len(b.heap) < b.limit || c.before(b.heap[0]) }

// push puts in a candidate that is wanted.
func (b *best) push(c candidate) {
	if len(b.heap) < b.limit {
		b.heap = append(b.heap, c)
		b.up(len(b.heap) - 1)
	} else {
		b.heap[0] = c
		b.down()
	}
	if len(b.heap) == b.limit {
		b.least = max(1, b.heap[0].score)
	}
}

// up moves the candidate at i up to its place.
func (b *best) up(i int) {
	h, c := b.heap, b.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h[parent].before(c) {
			break
		}
		h[i], i = h[parent], parent
	}
	h[i] = c
}

// down moves the candidate at the root down to its place.
func (b *best) down() {
	h := b.heap
	c, i := h[0], 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[child].before(h[right]) {
			child = right
		}
		if !c.before(h[child]) {
			break
		}
		h[i], i = h[child], child
	}
	h[i] = c
}

// hits returns the candidates in their order, and forgets them.
func (b *best) hits() []Hit {
	slices.SortFunc(b.heap, func(x, y candidate) int {
		if x.before(y) {
			return -1
		}
		return 1
	})
	out := make([]Hit, len(b.heap))
	for i, c := range b.heap {
		out[i] = Hit{c.doc, float32(c.score) / scoreUnit}
	}
	return out
}

// windowOrder sorts windows by their highest possible score, the highest first: roughly, which is all that is needed.
type windowOrder struct {
	windows []uint32
	starts  [orderBuckets + 1]uint32
}

const orderBuckets = 64

// sort orders the windows whose bound is not 0.
func (o *windowOrder) sort(upper []uint32) {
	most := uint32(0)
	for _, u := range upper {
		most = max(most, u)
	}
	clear(o.starts[:])
	// Bucket 0 takes the highest. Its number is at most orderBuckets-1, as u <= most.
	width := most/orderBuckets + 1
	for _, u := range upper {
		if u > 0 {
			o.starts[(most-u)/width+1]++
		}
	}
	for i := range orderBuckets {
		o.starts[i+1] += o.starts[i]
	}
	o.windows = slices.Grow(o.windows[:0], len(upper))[:o.starts[orderBuckets]]
	for w, u := range upper {
		if u > 0 {
			bucket := (most - u) / width
			o.windows[o.starts[bucket]] = uint32(w)
			o.starts[bucket]++
		}
	}
}
