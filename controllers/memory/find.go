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
func Find(data []byte, id string) (o *schemas.Observation, ok bool) {
	if _, _, _, ok := ParseID(id); !ok {
		return nil, false
	}
	from := bytes.Index(data, []byte(`"id": "`+id+`"`)) - len(observationStart)
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
