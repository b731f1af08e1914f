package merge

import (
	"bytes"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// unit is a value that is taken from one side as a whole. The zero unit, without text, represents a missing value.
type unit struct {
	at   time.Time // zero where it has no time
	text []byte    // canonical; equal units have equal texts
}

func (u unit) same(v unit) bool { return bytes.Equal(u.text, v.text) }

// compare orders units: missing ones first, then by time, then by text.
func (u unit) compare(v unit) int {
	if len(u.text) == 0 || len(v.text) == 0 {
		return len(u.text) - len(v.text)
	}
	if c := u.at.Compare(v.at); c != 0 {
		return c
	}
	return bytes.Compare(u.text, v.text)
}

// second reports whether of two units with a common ancestor the second is taken: what changed over what did not, else
// the greater. Both being the same, it does not matter.
func second(base, a, b unit) bool { return pick(base, a, b, unit.compare) }

// pick is second by another order.
func pick(base, a, b unit, compare func(a, b unit) int) bool {
	switch {
	case a.same(b) || b.same(base):
		return false
	case a.same(base):
		return true
	}
	return compare(b, a) > 0
}

// whole joins files that are units.
func whole(base, a, b []byte, read func([]byte) (unit, error)) ([]byte, error) {
	var units [3]unit
	for i, data := range [][]byte{base, a, b} {
		if data == nil {
			continue
		}
		var err error
		if units[i], err = read(data); err != nil {
			return nil, err
		}
	}
	if second(units[0], units[1], units[2]) {
		return units[2].text, nil
	}
	return units[1].text, nil
}

// joinRuns joins records of one run: they are never changed, so at most one of two that differ is a later one.
func joinRuns(base, a, b []byte) ([]byte, error) {
	return whole(base, a, b, func(data []byte) (unit, error) {
		r, err := state.DecodeRun(data)
		if err != nil {
			return unit{}, err
		}
		text, err := state.EncodeRun(r)
		return unit{r.FinishedAt.Time, text}, err
	})
}

// joinRecords joins records of the memory, which are never changed either.
func joinRecords(base, a, b []byte) ([]byte, error) {
	return whole(base, a, b, func(data []byte) (unit, error) {
		r, err := memory.ParseRecord(data)
		if err != nil {
			return unit{}, err
		}
		text, err := state.Encode(r)
		return unit{schemas.NewTime(r.At.Time).Time, text}, err
	})
}
