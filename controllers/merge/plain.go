package merge

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"reconcile.dev/reconcile/state"
)

// joinPlain joins files of no known class, and agent-status.json: objects key by key, at any depth; everything else is
// taken as a whole, and so is an object that says when it was active last, from the later side.
func joinPlain(base, a, b []byte) ([]byte, error) {
	return state.Encode(joinValues(readValue(base), readValue(a), readValue(b)).json())
}

// value is a JSON value; the zero value is one that is not there.
type value struct {
	unit
	rank   int              // by its form: forms do not mix
	fields map[string]value // of an object that is joined by its fields; nil else
}

// The ranks of values that are there.
const (
	rankScalar = 1 + iota
	rankArray
	rankObject
	rankActive // an object with a time
)

// readValue reads JSON that is whole.
func readValue(data []byte) value {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return value{}
	}
	v := value{unit: unit{text: compact(data)}, rank: rankScalar}
	switch data[0] {
	case '[':
		v.rank = rankArray
	case '{':
		v.rank = rankObject
		v.readObject(data)
	}
	return v
}

func (v *value) readObject(data []byte) {
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(data, &raw) // it is whole
	var active time.Time
	if at, ok := raw["lastActivity"]; ok && json.Unmarshal(at, &active) == nil {
		v.rank, v.at = rankActive, active
		return
	}
	v.fields = make(map[string]value, len(raw))
	for name, field := range raw {
		v.fields[name] = readValue(field)
	}
	v.text = v.canonical()
}

// canonical is the text of an object with its fields in order.
func (v value) canonical() []byte {
	text, _ := json.Marshal(v.json()) // texts that were read marshal
	return text
}

// json is the value as package json takes it.
func (v value) json() any {
	if v.fields == nil {
		return json.RawMessage(v.text)
	}
	out := make(map[string]any, len(v.fields))
	for name, f := range v.fields {
		out[name] = f.json()
	}
	return out
}

func joinValues(base, a, b value) value {
	switch {
	case a.same(b.unit) || b.same(base.unit):
		return a
	case a.same(base.unit):
		return b
	case a.rank != b.rank:
		return map[bool]value{true: a, false: b}[a.rank > b.rank]
	case a.rank == rankObject:
		return joinObjects(base, a, b)
	case a.compare(b.unit) < 0:
		return b
	}
	return a
}

func joinObjects(base, a, b value) value {
	names := maps.Clone(a.fields)
	maps.Copy(names, b.fields)
	out := value{rank: rankObject, fields: map[string]value{}}
	for name := range names {
		if f := joinValues(base.fields[name], a.fields[name], b.fields[name]); f.rank > 0 {
			out.fields[name] = f
		}
	}
	out.text = out.canonical()
	return out
}
