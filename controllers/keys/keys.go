// Package keys makes the keys by which work is known: digests of canonical JSON objects, and the names of effects.
package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

const prefix = "sha256:"

// Digest is the SHA-256 of b in hex, with its name before it.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	var out [len(prefix) + 2*sha256.Size]byte
	copy(out[:], prefix)
	hex.Encode(out[len(prefix):], sum[:])
	return string(out[:])
}

// Object writes a canonical JSON object, leaving out fields that are empty. The caller writes them in the order of their names.
type Object struct{ b []byte }

// Begin begins an object after b.
func Begin(b []byte) Object { return Object{append(b, '{')} }

// End ends the object and returns all that was written.
func (o *Object) End() []byte {
	o.Close()
	return o.b
}

// Open begins a field that is an object itself; the fields that follow are its own, up to Close.
func (o *Object) Open(name string) {
	o.name(name)
	o.b = append(o.b, '{')
}

// Close ends the object that Open began.
func (o *Object) Close() { o.b = append(o.b, '}') }

func (o *Object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = appendText(o.b, name)
	o.b = append(o.b, ':')
}

// Text writes a text.
func (o *Object) Text(name, value string) {
	if value != "" {
		o.name(name)
		o.b = appendText(o.b, value)
	}
}

// Int writes a number; 0 is empty.
func (o *Object) Int(name string, value int) {
	if value != 0 {
		o.name(name)
		o.b = strconv.AppendInt(o.b, int64(value), 10)
	}
}

// Raw writes a value that is canonical JSON already.
func (o *Object) Raw(name string, value []byte) {
	if len(value) > 0 {
		o.name(name)
		o.b = append(o.b, value...)
	}
}

// List writes a list of texts.
func (o *Object) List(name string, values []string) {
	if len(values) == 0 {
		return
	}
	o.name(name)
	for i, v := range values {
		o.b = append(o.b, "[,"[min(i, 1)])
		o.b = appendText(o.b, v)
	}
	o.b = append(o.b, ']')
}

// Texts adds texts by name to the JSON that a key is a digest of, in the order of the names.
func (o *Object) Texts(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	o.Open(name)
	for _, k := range slices.Sorted(maps.Keys(values)) {
		o.name(k)
		o.b = appendText(o.b, values[k])
	}
	o.Close()
}

// Env writes variables in the order of their names: texts, and where the others are read.
func (o *Object) Env(name string, env schemas.Env) {
	if len(env) == 0 {
		return
	}
	o.Open(name)
	for _, k := range slices.Sorted(maps.Keys(env)) {
		v := env[k]
		if v.From == "" {
			o.name(k)
			o.b = appendText(o.b, v.Text)
			continue
		}
		o.Open(k)
		o.Text("from", v.From)
		o.Text("name", v.Name)
		o.Text("path", v.Path)
		o.Close()
	}
	o.Close()
}

// appendText appends a JSON string. What needs no escape, nearly everything, is copied.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// OfEffect names an effect: <kinds>/<name>/<node>-<16 hex digits of the node's key>-<seq>.
func OfEffect(k schemas.Kind, name, node, key string, seq int) string {
	return string(strconv.AppendInt(appendPrefix(make([]byte, 0, 128), k, name, node, key), int64(seq), 10))
}

// Effect is the last part of the name of an effect: <node>-<16 hex digits of the node's key>-<seq>.
func Effect(node, key string, seq int) string {
	return string(strconv.AppendInt(appendNode(make([]byte, 0, 64), node, key), int64(seq), 10))
}

// appendPrefix appends the key of an effect up to its number.
func appendPrefix(b []byte, k schemas.Kind, name, node, key string) []byte {
	return appendNode(append(append(append(append(b, k.Plural...), '/'), name...), '/'), node, key)
}

func appendNode(b []byte, node, key string) []byte {
	const shown = 16
	hex := strings.TrimPrefix(key, prefix)
	b = append(append(append(b, node...), '-'), hex[:min(shown, len(hex))]...)
	return append(b, '-')
}

// OfRuns is the key of the effects of a DAG's node up to their number.
func OfRuns(dag, node, key string) string {
	return string(appendPrefix(nil, schemas.DAGKind, dag, node, key))
}
