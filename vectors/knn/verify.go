package knn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"reconcile.dev/reconcile/vectors/kernel"
)

// Verify checks the index for damage: the sums of its sections, its ids and slots, its vectors, codes and links. Each
// ID must have one slot, vectors must have a direction and matching codes, links must lead to vectors, and all vectors
// must be reachable from the entry. The error wraps errDamaged, and names the problem. Verify first completes pending
// work of changes. It takes about a second for 100,000 vectors; changes wait.
func (x *Index) Verify() error {
	x.writer.Lock()
	defer x.writer.Unlock()
	if x.file != nil {
		if err := x.file.Verify(); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if len(x.dead) > 0 || x.added > 0 {
		x.vacuum()
	}
	v := x.current.Load()
	for i := range x.order {
		if int(x.order[i]) >= v.base.len() || i > 0 && v.base.ids[x.order[i-1]] >= v.base.ids[x.order[i]] {
			return fmt.Errorf("%w: the IDs are not in order", errDamaged)
		}
	}
	w := newWalker(v.shape)
	for slot := range uint32(v.len()) {
		if !v.has(slot) {
			continue
		}
		if found, ok := x.Slot(v.id(slot)); !ok || found != slot {
			return fmt.Errorf("%w: %016x has another slot than %d", errDamaged, v.id(slot), slot)
		}
		if err := w.verifyVector(v, slot); err != nil {
			return err
		}
	}
	if err := cmp.Or(v.verifyGraph(), w.verifyLists(v)); err != nil {
		return err
	}
	return x.verifyAnswers()
}

// verifiedAnswers is how many exact searches are compared with all vectors.
const verifiedAnswers = 8

// verifyAnswers compares exact searches for some of the vectors with what the cosines of all vectors say.
func (x *Index) verifyAnswers() error {
	v := x.current.Load()
	const k = DefaultK
	for part := range verifiedAnswers {
		asked := uint32(part * v.len() / verifiedAnswers)
		if int(asked) >= v.len() || !v.has(asked) {
			continue
		}
		query := v.vector(asked)
		hits, err := x.Search(query, SearchOptions{K: k, Exact: true})
		if err != nil {
			return fmt.Errorf("%w: the vector in slot %d cannot be asked for: %w", errDamaged, asked, err)
		}
		worst := hits[len(hits)-1].Similarity
		nearer := 0
		for slot := range uint32(v.len()) {
			if v.has(slot) && kernel.Cosine(query, v.vector(slot)) > worst+rounding {
				nearer++
			}
		}
		if nearer >= k || hits[0].Similarity < 1-rounding {
			return fmt.Errorf("%w: a search for the vector in slot %d does not find what is nearest", errDamaged, asked)
		}
	}
	return nil
}

// verifyVector checks a vector and its code. The code was made before the vector was rounded to unit length, so that some
// components may be rounded the other way.
func (w *vectorWalker) verifyVector(v *vectorView, slot uint32) error {
	unit := v.vector(slot)
	if norm := kernel.Norm(unit); !(math.Abs(norm-1) < 1e-5) {
		return fmt.Errorf("%w: the vector in slot %d has the length %g", errDamaged, slot, norm)
	}
	v.encodeRow(&w.query, unit, w.rotated)
	code := w.take(v, slot)
	for i, c := range code.code {
		if d := int(c) - int(w.query.code[i]); d < -1 || d > 1 {
			return fmt.Errorf("%w: the code in slot %d is not that of its vector", errDamaged, slot)
		}
	}
	s, row := v.at(slot)
	if s.norms[row] != code.norm || s.coarse[row] != coarseNorm(code.code[:v.dims]) {
		return fmt.Errorf("%w: the length of the code in slot %d", errDamaged, slot)
	}
	if size, slack := s.sizes[row], s.slacks[row]; !(size >= 0) || !(slack >= v.distance(w.rotated, code)-2*rounding) {
		return fmt.Errorf("%w: length or distance in slot %d", errDamaged, slot)
	}
	return nil
}

// verifyLists checks that each slot is in the list of the pivot nearest to it, and in no other.
func (w *vectorWalker) verifyLists(v *vectorView) error {
	if !v.inLists() {
		return nil
	}
	p, seen := &v.lists.pivots, make([]bool, v.len())
	for i, norm := range p.coarse {
		kernel.Join(w.linked.code, p.high[i*v.stride:(i+1)*v.stride], nil)
		if _, squares := kernel.CodeSums(w.linked.code[:v.dims]); squares != norm {
			return fmt.Errorf("%w: the length of pivot %d", errDamaged, i)
		}
	}
	n := 0
	for i, members := range v.lists.members {
		for _, slot := range members {
			if int(slot) >= v.len() || !v.has(slot) || seen[slot] || w.listOf(v, slot) != uint32(i) {
				return fmt.Errorf("%w: slot %d does not belong into list %d", errDamaged, slot, i)
			}
			seen[slot] = true
			n++
		}
	}
	if n != v.live {
		return fmt.Errorf("%w: %d of %d vectors are in lists", errDamaged, n, v.live)
	}
	return nil
}

// verifyGraph checks all links.
func (v *vectorView) verifyGraph() error {
	if !v.graph {
		return nil
	}
	if int(v.entry) >= v.len() || v.levelOf(v.id(v.entry)) != v.top {
		return fmt.Errorf("%w: the entry is not at the highest level", errDamaged)
	}
	for slot := range uint32(v.len()) {
		if !v.has(slot) {
			continue
		}
		for level := range v.levelOf(v.id(slot)) + 1 {
			if err := v.verifyLinks(slot, level); err != nil {
				return err
			}
		}
	}
	if lost := v.reachable().lost(v); len(lost) > 0 {
		return fmt.Errorf("%w: %d vectors cannot be reached, one in slot %d", errDamaged, len(lost), lost[0])
	}
	return nil
}

// verifyLinks checks the links of a slot at a level.
func (v *vectorView) verifyLinks(slot uint32, level int) error {
	block := v.links(slot, level)
	end := slices.Index(block, noSlot)
	if end < 0 {
		end = len(block)
	}
	if block == nil {
		return fmt.Errorf("%w: slot %d has no links at level %d", errDamaged, slot, level)
	}
	for i, to := range block {
		switch {
		case i >= end && to == noSlot:
		case i >= end || int(to) >= v.len() || to == slot || slices.Contains(block[:i], to):
			return fmt.Errorf("%w: slot %d has a wrong link at level %d, to %d", errDamaged, slot, level, to)
		case v.levelOf(v.id(to)) < level:
			return fmt.Errorf("%w: slot %d has a link at level %d to %d, which is below", errDamaged, slot, level, to)
		}
	}
	return nil
}
