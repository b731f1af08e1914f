package memory

import (
	"container/heap"
)

// candidateQueue returns candidates, the most relevant first. They are in tiers by their scores, and sorted from the best tier
// on, only as needed: of tens of thousands a recall has room for a few hundred. Staleness only lowers a score, so it is
// checked late: when the candidate would be the next one.
type candidateQueue struct {
	chooser *Chooser
	cands   []Candidate
	scores  []float64
	high    float64 // the highest score
	scale   float64 // tiers for each point below it
	sorted  []int32 // the numbers of the candidates by tier
	ends    [tiers]int32
	opened  int      // how many tiers are in open
	open    []ranked // a heap
}

const tiers = 1 << 10

// ranked is a candidate with its score, and, once it was asked for, why it may be stale.
type ranked struct {
	*Candidate
	score   float64
	checked bool
	stale   string
}

// sort puts the candidates into tiers.
func (q *candidateQueue) sort() {
	if len(q.scores) == 0 {
		return
	}
	low := q.scores[0]
	q.high = low
	for _, s := range q.scores {
		low, q.high = min(low, s), max(q.high, s)
	}
	if q.high > low {
		q.scale = (tiers - 1) / (q.high - low)
	}
	var starts [tiers + 1]int32
	for _, s := range q.scores {
		starts[q.tier(s)+1]++
	}
	for t := range tiers {
		starts[t+1] += starts[t]
	}
	for i, s := range q.scores {
		t := q.tier(s)
		q.sorted[starts[t]] = int32(i)
		starts[t]++
	}
	copy(q.ends[:], starts[:])
}

// tier is the tier of a score, 0 for the best. It does not fall as scores do, and equal ones are in one tier.
func (q *candidateQueue) tier(score float64) int {
	t := (q.high - score) * q.scale
	switch {
	case t >= tiers-1:
		return tiers - 1
	case t > 0:
		return int(t)
	}
	return 0
}

// next returns the most relevant candidate that may fit into the remaining budget.
func (q *candidateQueue) next(left int) (ranked, bool) {
	for {
		for q.opened < tiers && (len(q.open) == 0 || q.tier(q.open[0].score) >= q.opened) {
			q.openTier(left)
		}
		if len(q.open) == 0 {
			return ranked{}, false
		}
		best := heap.Pop(q).(ranked)
		switch {
		case best.Tokens+leastNote > left:
		case best.checked:
			return best, true
		default:
			best.checked, best.stale = true, q.chooser.Stale(best.Candidate)
			if best.stale != "" {
				best.score *= q.chooser.Weights.Stale
			}
			heap.Push(q, best)
		}
	}
}

// usualNote is the usual number of tokens of a note in addition to those of its content.
const usualNote = 40

// nextBatch returns the next candidates, the most relevant first, each of which may fit into the remaining budget, and
// which usually all fit together.
func (q *candidateQueue) nextBatch(left int) (out []ranked) {
	for room := left; room > 0; {
		best, ok := q.next(left)
		if !ok {
			break
		}
		out = append(out, best)
		room -= best.Tokens + usualNote
	}
	return out
}

// openTier puts what may fit of the next tier with the others.
func (q *candidateQueue) openTier(left int) {
	from := int32(0)
	if q.opened > 0 {
		from = q.ends[q.opened-1]
	}
	for _, i := range q.sorted[from:q.ends[q.opened]] {
		if k := &q.cands[i]; k.Tokens+leastNote <= left {
			heap.Push(q, ranked{Candidate: k, score: q.scores[i], checked: q.chooser.Stale == nil})
		}
	}
	q.opened++
}

// Len, Less, Swap, Push and Pop are those of [heap.Interface].
func (q *candidateQueue) Len() int           { return len(q.open) }
func (q *candidateQueue) Less(i, j int) bool { return q.chooser.before(&q.open[i], &q.open[j]) }
func (q *candidateQueue) Swap(i, j int)      { q.open[i], q.open[j] = q.open[j], q.open[i] }
func (q *candidateQueue) Push(x any)         { q.open = append(q.open, x.(ranked)) }
func (q *candidateQueue) Pop() any {
	last := q.open[len(q.open)-1]
	q.open = q.open[:len(q.open)-1]
	return last
}

// trueFirst orders values with a property before those without it.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
