package state

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	quick "github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
)

// Fields of run records that this version does not know: a newer version wrote them. They are kept in
// [schemas.Run.Unknown] and written again with the record.

// knownRunFields returns the JSON names of the fields of a record.
var knownRunFields = sync.OnceValue(func() []string {
	var names []string
	for f := range reflect.TypeFor[schemas.Run]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
})

// unknownRunFields returns the fields of a record that schemas.Run does not have, as a JSON object with sorted names; nil
// if there are none.
func unknownRunFields(record []byte) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(record, &fields) != nil {
		return nil
	}
	for name := range fields {
		for _, known := range knownRunFields() {
			if strings.EqualFold(name, known) { // as decoders match names
				delete(fields, name)
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	unknown, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return unknown
}

// withUnknownFields returns a record with the members of the object unknown added at its end. It keeps the line break after
// the record, and neither adds nor removes other whitespace.
func withUnknownFields(record []byte, unknown json.RawMessage) []byte {
	members := bytes.TrimSpace(unknown)
	if len(members) <= len("{}") {
		return record
	}
	end := bytes.LastIndexByte(record, '}')
	body := bytes.TrimRight(record[:end], " \n")
	out := append(bytes.Clone(body), ',')
	out = append(out, members[1:]...)
	return append(out, record[end+1:]...)
}

// parseRun decodes a record into r, which points into data afterwards. It reports whether data is of the expected form.
func parseRun(data []byte, r *schemas.Run) bool {
	if rest, err := quick.Parse(data, r, quick.ZeroCopy|quick.DisallowUnknownFields); err == nil && len(rest) == 0 {
		return true
	}
	*r = schemas.Run{}
	rest, err := quick.Parse(data, r, quick.ZeroCopy)
	if err != nil || len(rest) > 0 {
		return false
	}
	r.Unknown = unknownRunFields(data)
	return true
}

// encodeLine encodes a line of a journal.
func encodeLine(l line) ([]byte, error) {
	if l.Run == nil || l.Run.Unknown == nil {
		return json.Marshal(l)
	}
	run, err := json.Marshal(l.Run)
	if err != nil {
		return nil, err
	}
	type rawLine struct {
		line
		Run json.RawMessage `json:"run"`
	}
	return json.Marshal(rawLine{l, withUnknownFields(run, l.Run.Unknown)})
}

// decodeLine decodes a line that encodeLine encoded.
func decodeLine(text []byte) (l line, err error) {
	if rest, err := quick.Parse(text, &l, quick.DisallowUnknownFields); err == nil && len(rest) == 0 {
		return l, nil
	}
	l = line{}
	if err := quick.Unmarshal(text, &l); err != nil || l.Run == nil {
		return l, err
	}
	var raw struct {
		Run json.RawMessage `json:"run"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return l, err
	}
	l.Run.Unknown = unknownRunFields(raw.Run)
	return l, nil
}
