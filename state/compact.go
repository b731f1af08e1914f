package state

import (
	"bytes"
	"reflect"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// How a decoded status is kept in memory. A tree has tens of thousands of them, with dozens of texts each: its texts are
// parts of one block, and its lists have no room to spare. Both cost the collector of garbage less, too.

// room is what decoding a status needs for a while. It belongs to one goroutine at a time.
type room struct {
	shape      shapeReader
	packed     []byte
	conditions [3]schemas.Condition
	history    [schemas.HistoryLimit]schemas.HistoryEntry
}

// pack is the content of a status file without the space in it, in a block of its own.
func (r *room) pack(data []byte) []byte {
	r.packed = minify(r.packed[:0], data)
	return bytes.Clone(r.packed)
}

// lend gives the lists that every status has room to be decoded into.
func (r *room) lend(c *schemas.Common) {
	c.Conditions, c.History = r.conditions[:0], r.history[:0]
}

// takeBack gives the lists room of their own, as much as they need. packed is what they were decoded from.
func (r *room) takeBack(c *schemas.Common, packed []byte) {
	c.Conditions = own(c.Conditions, packed, `"conditions":[`)
	c.History = own(c.History, packed, `"history":[`)
	clear(r.conditions[:])
	clear(r.history[:])
}

// own is a copy of a list; of an empty one nil, unless it is written as an empty one.
func own[T any](list []T, packed []byte, written string) []T {
	if len(list) == 0 && !bytes.Contains(packed, []byte(written)) {
		return nil
	}
	return append(make([]T, 0, len(list)), list...)
}

// structural are the bytes of JSON that are tokens by themselves. Space beside them means nothing.
const structural = "{}[],:"

// minify appends JSON without the space that means nothing to anybody. What is no JSON stays none.
func minify(to, data []byte) []byte {
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case '"':
			n := stringLen(data[i:])
			to = append(to, data[i:i+n]...)
			i += n
		case ' ', '\n', '\r', '\t':
			n := len(data[i:]) - len(bytes.TrimLeft(data[i:], " \n\r\t"))
			if !besideStructural(to, data[i+n:]) {
				to = append(to, ' ')
			}
			i += n
		default:
			to = append(to, c)
			i++
		}
	}
	return to
}

func besideStructural(before, after []byte) bool {
	return len(before) == 0 || strings.IndexByte(structural, before[len(before)-1]) >= 0 ||
		len(after) == 0 || strings.IndexByte(structural, after[0]) >= 0
}

// stringLen is the length of the string that data begins with, quotes included; all of data if it does not end.
func stringLen(data []byte) int {
	for at := 1; ; {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			return len(data)
		}
		end := at + n
		slashes := 0
		for data[end-1-slashes] == '\\' {
			slashes++
		}
		if at = end + 1; slashes%2 == 0 {
			return at
		}
	}
}

// fit drops the room that the slices within v have beyond their length. The decoder makes each for ten elements. What
// maps hold is left as it is.
func fit(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.CanInterface() && !v.IsNil() {
			fit(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fit(v.Field(i))
		}
	case reflect.Slice:
		fitSlice(v)
	}
}

func fitSlice(v reflect.Value) {
	if n := v.Len(); n < v.Cap() && n > 0 && v.CanSet() && v.Type().Elem().Kind() != reflect.Uint8 {
		exact := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(exact, v)
		v.Set(exact)
	}
	switch v.Type().Elem().Kind() {
	case reflect.Slice, reflect.Struct, reflect.Pointer:
		for i := range v.Len() {
			fit(v.Index(i))
		}
	}
}
