package state

import (
	"bytes"
	"reflect"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// The form of a decoded status in memory. A tree has tens of thousands of statuses with dozens of strings each: the
// strings of a status are parts of one block, and its lists have no spare capacity. That also reduces the work of the
// garbage collector.

// decodeBuffer holds the temporary memory for decoding a status. One goroutine at a time may use it.
type decodeBuffer struct {
	shape      shapeReader
	packed     []byte
	conditions [3]schemas.Condition
	history    [schemas.HistoryLimit]schemas.HistoryEntry
}

// pack returns the content of a status file without whitespace, in a new block.
func (r *decodeBuffer) pack(data []byte) []byte {
	r.packed = minify(r.packed[:0], data)
	return bytes.Clone(r.packed)
}

// lendLists gives c the buffer's lists, into which the decoder writes.
func (r *decodeBuffer) lendLists(c *schemas.Common) {
	c.Conditions, c.History = r.conditions[:0], r.history[:0]
}

// reclaimLists takes the lists back and gives c copies of the exact length. packed is the text that they were decoded
// from.
func (r *decodeBuffer) reclaimLists(c *schemas.Common, packed []byte) {
	c.Conditions = cloneList(c.Conditions, packed, `"conditions":[`)
	c.History = cloneList(c.History, packed, `"history":[`)
	clear(r.conditions[:])
	clear(r.history[:])
}

// cloneList copies a list; an empty one becomes nil, unless it is written as an empty one.
func cloneList[T any](list []T, packed []byte, written string) []T {
	if len(list) == 0 && !bytes.Contains(packed, []byte(written)) {
		return nil
	}
	return append(make([]T, 0, len(list)), list...)
}

// structural are the bytes of JSON that are single tokens. Whitespace next to them is insignificant.
const structural = "{}[],:"

// minify appends JSON without insignificant whitespace. Invalid JSON stays invalid.
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

// trimSlices drops the spare capacity of the slices within v: the decoder allocates ten elements for each. It does not
// look into maps.
func trimSlices(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.CanInterface() && !v.IsNil() {
			trimSlices(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			trimSlices(v.Field(i))
		}
	case reflect.Slice:
		trimSlice(v)
	}
}

func trimSlice(v reflect.Value) {
	if n := v.Len(); n < v.Cap() && n > 0 && v.CanSet() && v.Type().Elem().Kind() != reflect.Uint8 {
		exact := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(exact, v)
		v.Set(exact)
	}
	switch v.Type().Elem().Kind() {
	case reflect.Slice, reflect.Struct, reflect.Pointer:
		for i := range v.Len() {
			trimSlices(v.Index(i))
		}
	}
}
