package state

import (
	"bytes"
	"strconv"
	"sync"
	"unsafe"

	"reconcile.dev/reconcile/schemas"
)

// The data of a file that matches its shape, so that it is decoded only on access.

// shapesOf returns a function that makes the shapes, once.
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

// shapedRun returns the record in data, or nil if data must be decoded to validate it.
func (r *decodeBuffer) shapedRun(s *shape, key string, data []byte) *lazyRun {
	if !r.shape.read(s, data) {
		return nil
	}
	is := &r.shape.shaped
	if is.text(markVersion) != schemas.APIVersion || is.text(markKind) != runKind || is.text(markKey) != key || is.text(markOutcome) == "" {
		return nil
	}
	h := &lazyRun{key: key, raw: bytes.Clone(is.packed)}
	for _, t := range []struct {
		has  bool
		mark Traits
	}{{is.marked[markAsks].present(), Asks}, {is.marked[markLearned].present(), Learned}, {is.text(markAgent) != "", OfAgent},
		{is.marked[markOutputs].present(), Outputs}} {
		if t.has {
			h.has |= t.mark
		}
	}
	return h
}

// shapedStatus returns the status in data, or nil if data must be decoded to validate it.
func (r *decodeBuffer) shapedStatus(s *shape, ref schemas.Ref, data []byte) *lazyStatus {
	if !r.shape.read(s, data) {
		return nil
	}
	is := &r.shape.shaped
	if is.text(markVersion) != schemas.APIVersion || is.text(markKind) != ref.Kind || is.text(markName) != ref.Name ||
		!is.marked[markStatus].present() {
		return nil
	}
	again := is.packed
	is.packed = bytes.Clone(again)
	h := &lazyStatus{raw: is.packed, brief: is.inBrief()}
	h.briefOnce.Do(func() {}) // it is set above
	is.packed = again
	return h
}

// inBrief returns the brief of a status. It points into the packed text.
func (s *shaped) inBrief() schemas.Brief {
	b := schemas.Brief{Phase: s.text(markPhase), ObservedDigest: s.text(markDigest),
		Ready: schemas.ConditionStatus(s.part(s.ready)), Stalled: schemas.ConditionStatus(s.part(s.stall[0])),
		StalledReason: s.part(s.stall[1]), Running: s.number(markRunning), Blocked: s.has.blocked,
		Progress: schemas.Progress{Done: s.number(markDone), Total: s.number(markTotal)}}
	if at := s.marked[markFinished]; at.present() {
		_ = b.FinishedAt.UnmarshalJSON(s.packed[at.from:at.to]) // plainTime
	}
	return b
}

// text returns the string with a mark, as a part of the packed text; "" if it is missing.
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
