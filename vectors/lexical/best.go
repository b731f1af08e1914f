package lexical

import "slices"

// candidate is a document with what decides its place.
type candidate struct {
	score uint32
	doc   uint32 // in the set
	key   uint64
}

// before reports whether c comes before d in the result.
func (c candidate) before(d candidate) bool {
	if c.score != d.score {
		return c.score > d.score
	}
	return c.key < d.key || c.key == d.key && c.doc < d.doc
}

// best holds the best candidates so far: a few in their order, more of them as a heap with the last one at the root.
type best struct {
	all   []candidate
	limit int
	least uint32 // scores below it need not be offered
}

// fewBest is up to how many candidates it is faster to keep them in order.
const fewBest = 64

func (b *best) reset(limit int) { b.all, b.limit, b.least = b.all[:0], limit, 1 }

// wants reports whether c is among the best so far.
func (b *best) wants(c candidate) bool { return len(b.all) < b.limit || c.before(b.last()) }

// last is the last of the candidates when there are as many as may be.
func (b *best) last() candidate {
	if b.limit <= fewBest {
		return b.all[len(b.all)-1]
	}
	return b.all[0]
}

// push adds a candidate for which wants is true.
func (b *best) push(c candidate) {
	full := len(b.all) == b.limit
	if !full {
		b.all = append(b.all, c)
	}
	switch {
	case b.limit <= fewBest:
		b.insert(c)
	case full:
		b.all[0] = c
		b.down()
	default:
		b.up(len(b.all) - 1)
	}
	if len(b.all) == b.limit {
		b.least = max(1, b.last().score)
	}
}

// insert inserts a candidate in order; the last one is dropped.
func (b *best) insert(c candidate) {
	all := b.all
	i := len(all) - 1
	for ; i > 0 && c.before(all[i-1]); i-- {
		all[i] = all[i-1]
	}
	all[i] = c
}

// up moves the candidate at i of the heap up to its place.
func (b *best) up(i int) {
	h, c := b.all, b.all[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h[parent].before(c) {
			break
		}
		h[i], i = h[parent], parent
	}
	h[i] = c
}

// down moves the document at the root of the heap of best matches down to its place.
func (b *best) down() {
	h := b.all
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

// hits returns the candidates in order, and clears the list.
func (b *best) hits() []Hit {
	if b.limit > fewBest {
		slices.SortFunc(b.all, func(x, y candidate) int {
			if x.before(y) {
				return -1
			}
			return 1
		})
	}
	out := make([]Hit, len(b.all))
	for i, c := range b.all {
		out[i] = Hit{int(c.doc), float32(c.score) / scoreUnit}
	}
	return out
}
