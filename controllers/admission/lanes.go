package admission

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Lane returns the lane in which an effect waits for a place, 0 for critical to 4 for background. Each time that its Ageing has
// passed, the effect moves to the next higher lane, to high at most.
func Lane(e *settle.Effect, now time.Time) int {
	highest := schemas.High.Rank()
	if e.Ageing <= 0 || e.Rank <= highest || e.QueuedAt.IsZero() {
		return e.Rank
	}
	waited := max(0, now.Sub(e.QueuedAt.Time))
	return max(highest, e.Rank-int(min(waited/e.Ageing, time.Duration(e.Rank))))
}

// Compare says which of two claimed effects starts first: that in the higher lane, then that with the smaller VirtualStart, then
// that which has waited longer, then that with the smaller Key.
func Compare(a, b *settle.Effect, now time.Time) int {
	return cmp.Or(cmp.Compare(Lane(a, now), Lane(b, now)), cmp.Compare(a.VirtualStart, b.VirtualStart), compareAge(a, b))
}

func compareAge(a, b *settle.Effect) int {
	if c := a.QueuedAt.Compare(b.QueuedAt.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}

// turnLength is how much virtual time a start takes of a session of weight 1.
const turnLength = 10_000

// share is what a session has had of the places.
type share struct {
	name   string
	length int64        // how much virtual time a start takes
	latest int64        // the VirtualStart of its latest claim; 0 for none
	last   schemas.Time // its latest start
}

// lastVirtual is far behind the virtual time that any tree reaches. What a damaged or invented record says beyond it does not count: behind
// it, all starts would be at the end of virtual time, and nobody would have a turn.
const lastVirtual = 1 << 62

// had adds a run to what the session has had. It returns the virtual time at which the run started; 0 if it has not.
func (s *share) had(r *schemas.Run) int64 {
	s.last = schemas.Later(s.last, r.StartedAt)
	if r.VirtualStart > lastVirtual {
		return 0
	}
	if s.latest = max(s.latest, r.VirtualStart); r.StartedAt.IsZero() {
		return 0
	}
	return r.VirtualStart
}

// following is the VirtualStart of the session's next claim if that is not behind the virtual time.
func (s *share) following() int64 { return s.latest + s.length }

// queue holds the effects that wait for a place. The next one is in the highest lane that is not empty; there it is of the session
// whose turn it is, and of that session's effects the one that has waited longest.
//
// The turns of sessions are those of start-time fair queueing (Goyal, Vin and Cheng, 1996): a start takes a session as much
// virtual time as its weight divides [turnLength] into, each claim records when in virtual time it starts, and the session whose
// next start is earliest has its turn. A session that comes back begins at the virtual time, which is that of the latest start
// of any session: it gets no more for the time in which it had no work.
type queue struct {
	size  int // how many were added
	lanes [5]sessions
	byID  [5]map[string]*waiting
	lane  int      // the lane that next looks at
	top   *waiting // whose effect next returned last
	now   int64    // the virtual time
}

// waiting are the effects of a session in a lane.
type waiting struct {
	*share
	effects effects
}

// add is for all effects before the first call of next.
func (q *queue) add(lane int, s *share, e *settle.Effect) {
	if q.byID[lane] == nil {
		q.byID[lane] = map[string]*waiting{}
	}
	w := q.byID[lane][s.name]
	if w == nil {
		w = &waiting{share: s}
		q.byID[lane][s.name] = w
		q.lanes[lane] = append(q.lanes[lane], w)
	}
	w.effects = append(w.effects, e)
	q.size++
}

// next removes the next effect; nil: the queue is empty.
func (q *queue) next() *settle.Effect {
	for ; q.lane < len(q.lanes); q.lane++ {
		lane := &q.lanes[q.lane]
		if q.top == nil {
			lane.start()
		} else {
			heap.Fix(lane, 0)
		}
		for len(*lane) > 0 && len((*lane)[0].effects) == 0 {
			heap.Pop(lane)
		}
		if len(*lane) > 0 {
			q.top = (*lane)[0]
			return heap.Pop(&q.top.effects).(*settle.Effect)
		}
		q.top = nil
	}
	return nil
}

// take gives the session of the effect that next returned its turn. It returns when in virtual time that is.
func (q *queue) take() (start int64) {
	s := q.top.share
	s.latest = max(s.following(), q.now)
	return s.latest
}

// keep removes the effects for which fits is false, and gives them to removed, but for that which next returned last.
func (q *queue) keep(fits func(*settle.Effect) bool, removed func(*settle.Effect)) {
	for i := range q.lanes {
		for _, w := range q.lanes[i] {
			w.effects = slices.DeleteFunc(w.effects, func(e *settle.Effect) bool {
				if fits(e) {
					return false
				}
				removed(e)
				return true
			})
			heap.Init(&w.effects)
		}
	}
}

// sessions is a heap of those that wait in a lane: the one whose turn it is comes first.
type sessions []*waiting

func (s sessions) Len() int { return len(s) }
func (s sessions) Less(i, j int) bool {
	a, b := s[i], s[j]
	if c := cmp.Compare(a.following(), b.following()); c != 0 {
		return c < 0
	}
	return cmp.Or(a.last.Compare(b.last.Time), strings.Compare(a.name, b.name)) < 0
}
func (s sessions) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sessions) Push(w any)   { *s = append(*s, w.(*waiting)) }
func (s *sessions) Pop() any {
	last := len(*s) - 1
	w := (*s)[last]
	*s = (*s)[:last]
	return w
}

// start makes the heaps.
func (s *sessions) start() {
	for _, w := range *s {
		heap.Init(&w.effects)
	}
	heap.Init(s)
}

// effects is a heap of one session's effects in a lane: the one that has waited longest comes first.
type effects []*settle.Effect

func (e effects) Len() int           { return len(e) }
func (e effects) Less(i, j int) bool { return compareAge(e[i], e[j]) < 0 }
func (e effects) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *effects) Push(x any)        { *e = append(*e, x.(*settle.Effect)) }
func (e *effects) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
