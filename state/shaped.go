package state

import (
	"bytes"
	"strconv"
	"sync"
	"unsafe"

	"reconcile.dev/reconcile/schemas"
)

// What is known of a file that has its shape, so that it need not be decoded before somebody asks for it.

// shapes are those of the files under state/.
type shapes struct {
	run      *shape
	statuses map[string]*shape // by kind
}

// shapesOf returns what makes the shapes, once.
func shapesOf(kinds schemas.Kinds) func() *shapes {
	return sync.OnceValue(func() *shapes {
		s := &shapes{runShape(), map[string]*shape{}}
		for _, k := range kinds {
			if k.NewStatus != nil {
				s.statuses[k.Name] = statusShape(k)
			}
		}
		return s
	})
}

// shapedRun returns the record in data, or nil where decoding has to tell what it is.
func (r *room) shapedRun(s *shape, key string, data []byte) *heldRun {
	if !r.shape.read(s, data) {
		return nil
	}
	is := &r.shape.shaped
	if is.text(markVersion) != schemas.APIVersion || is.text(markKind) != runKind || is.text(markKey) != key || is.text(markOutcome) == "" {
		return nil
	}
	h := &heldRun{key: key, raw: bytes.Clone(is.packed)}
	for _, t := range []struct {
		has  bool
		mark Traits
	}{{is.marked[markAsks].there(), Asks}, {is.marked[markLearned].there(), Learned}, {is.text(markAgent) != "", OfAgent},
		{is.marked[markOutputs].there(), Outputs}} {
		if t.has {
			h.has |= t.mark
		}
	}
	return h
}

// shapedStatus returns the status in data, or nil where decoding has to tell what it is.
func (r *room) shapedStatus(s *shape, ref schemas.Ref, data []byte) *heldStatus {
	if !r.shape.read(s, data) {
		return nil
	}
	is := &r.shape.shaped
	if is.text(markVersion) != schemas.APIVersion || is.text(markKind) != ref.Kind || is.text(markName) != ref.Name ||
		!is.marked[markStatus].there() {
		return nil
	}
	again := is.packed
	is.packed = bytes.Clone(again)
	h := &heldStatus{raw: is.packed, brief: is.inBrief()}
	h.sumUp.Do(func() {}) // it has been
	is.packed = again
	return h
}

// inBrief sums up a status. It holds parts of the packed text.
func (s *shaped) inBrief() schemas.Brief {
	b := schemas.Brief{Phase: s.text(markPhase), ObservedDigest: s.text(markDigest),
		Ready: schemas.ConditionStatus(s.part(s.ready)), Stalled: schemas.ConditionStatus(s.part(s.stall[0])),
		StalledReason: s.part(s.stall[1]), Running: s.number(markRunning), Blocked: s.has.blocked,
		Progress: schemas.Progress{Done: s.number(markDone), Total: s.number(markTotal)}}
	if at := s.marked[markFinished]; at.there() {
		_ = b.FinishedAt.UnmarshalJSON(s.packed[at.from:at.to]) // plainTime
	}
	return b
}

// text is the text with a mark, as a part of the packed text; "" where there is none.
func (s *shaped) text(m mark) string { return s.part(s.marked[m]) }

func (s *shaped) part(at span) string {
	b := s.of(at)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (s *shaped) number(m mark) int {
	at := s.marked[m]
	n, _ := strconv.Atoi(string(s.packed[at.from:at.to]))
	return n
}
