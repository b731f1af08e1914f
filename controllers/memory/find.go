package memory

import (
	"bytes"

	quick "github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
)

// The lines that an observation begins and ends with in a file of our form.
const (
	observationStart = "\n    {\n      "
	observationEnd   = "\n    }"
)

// Find reads one observation out of an issue file or archive without reading the others. ok is false when it is not found
// where files of our form have it: then [Parse] knows more. What another program wrote is cleaned as Parse does.
func Find(data []byte, id string) (o *schemas.Observation, ok bool) { return FindNear(data, id, 0) }

// FindNear is Find for callers who know about how large a share of the observations stands before the one: it is looked
// for there first.
func FindNear(data []byte, id string, before float64) (o *schemas.Observation, ok bool) {
	if _, _, _, ok := ParseID(id); !ok {
		return nil, false
	}
	from := indexNear(data, []byte(`"id": "`+id+`"`), before) - len(observationStart)
	if from < 0 || !bytes.HasPrefix(data[from:], []byte(observationStart)) {
		return nil, false
	}
	size := bytes.Index(data[from+1:], []byte(observationEnd)) // texts in JSON have no line breaks
	if size < 0 {
		return nil, false
	}
	o = new(schemas.Observation)
	if quick.Unmarshal(data[from+1:from+1+size+len(observationEnd)], o) != nil || o.ID != id {
		return nil, false
	}
	*o = scrubbed(*o)
	return o, true
}

// indexNear is bytes.Index that looks around a place first, given as a share of the whole. Observations have different
// lengths: for one of a hundred, a twentieth of the whole to both sides is nearly always enough.
func indexNear(data, what []byte, place float64) int {
	n := len(data)
	from := min(max(int((place-0.05)*float64(n)), 0), n)
	to := min(max(int((place+0.1)*float64(n))+len(what), from), n)
	if i := bytes.Index(data[from:to], what); i >= 0 {
		return from + i
	}
	return bytes.Index(data, what)
}
