// Package quickjson decodes JSON into Go structs as encoding/json does, several times as fast, for documents that hold no
// surprises.
//
// It is a quick way, not another meaning: whatever it does not handle just like encoding/json (an error in the
// document, a key in another case, a key twice, a type that it does not know) it gives back undone, and the caller
// decodes with encoding/json, whose verdict and error message stand. A fuzz test compares the two.
package quickjson

import (
	"encoding/json"
	"reflect"
	"strconv"
	"unsafe"
)

// Decode decodes data into v, a pointer to a zero value, and reports whether it did. An interface in v that holds a
// pointer is decoded into what that points to. After false, what v points to is undefined: decode into a new value with
// encoding/json.
func Decode(data []byte, v any) bool { return run(&reader{b: data}, v) }

// DecodeInPlace is Decode with strings that are, where that can be, parts of data: it must never change, and stays in
// memory for as long as any of them.
func DecodeInPlace(data []byte, v any) bool { return run(&reader{b: data, inPlace: true}, v) }

func run(r *reader, v any) bool {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return false
	}
	decode := planOf(p.Type().Elem())
	if decode == nil {
		return false
	}
	decode(r, p.UnsafePointer())
	r.space()
	return !r.bad && r.at == len(r.b)
}

// plan decodes one value into the memory at p, which is zero and has the type that the plan was made for.
type plan func(r *reader, p unsafe.Pointer)

func decodeString(r *reader, p unsafe.Pointer) {
	if !r.null() {
		*(*string)(p) = r.text()
	}
}

func decodeBool(r *reader, p unsafe.Pointer) {
	switch {
	case r.word("true"):
		*(*bool)(p) = true
	case r.word("false"), r.null():
	default:
		r.fail()
	}
}

func decodeFloat(r *reader, p unsafe.Pointer) {
	if r.null() {
		return
	}
	n, _ := r.number()
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		r.fail()
	}
	*(*float64)(p) = f
}

// planInt makes a plan for signed integers of any size.
func planInt(t reflect.Type) plan {
	return func(r *reader, p unsafe.Pointer) {
		if r.null() {
			return
		}
		n, whole := r.number()
		i, err := strconv.ParseInt(n, 10, t.Bits())
		if !whole || err != nil {
			r.fail()
			return
		}
		reflect.NewAt(t, p).Elem().SetInt(i)
	}
}

// planOwn makes a plan for types that decode themselves.
func planOwn(t reflect.Type) plan {
	return func(r *reader, p unsafe.Pointer) {
		raw := r.raw()
		own, ok := reflect.NewAt(t, p).Interface().(json.Unmarshaler)
		if r.bad || !ok || own.UnmarshalJSON(raw) != nil {
			r.fail()
		}
	}
}

// planAny is the plan for an interface: it decodes into what an interface points to, or, when it is nil, whatever the document has.
func planAny(r *reader, p unsafe.Pointer) {
	to := (*any)(p)
	if *to == nil {
		if raw := r.raw(); r.bad || json.Unmarshal(raw, to) != nil {
			r.fail()
		}
		return
	}
	inner := reflect.ValueOf(*to)
	if inner.Kind() != reflect.Pointer || inner.IsNil() || r.null() {
		r.fail()
		return
	}
	decode := planOf(inner.Type().Elem())
	if decode == nil {
		r.fail()
		return
	}
	decode(r, inner.UnsafePointer())
}

func (b planner) pointer(t reflect.Type) plan {
	elem := b.of(t.Elem())
	if elem == nil {
		return nil
	}
	return func(r *reader, p unsafe.Pointer) {
		if r.null() {
			return
		}
		v := reflect.New(t.Elem())
		elem(r, v.UnsafePointer())
		reflect.NewAt(t, p).Elem().Set(v)
	}
}

func (b planner) slice(t reflect.Type) plan {
	elem := b.of(t.Elem())
	if elem == nil || t.Elem().Kind() == reflect.Uint8 {
		return nil // bytes are base64
	}
	size := t.Elem().Size()
	return func(r *reader, p unsafe.Pointer) {
		if r.null() {
			return
		}
		if !r.open('[') {
			return
		}
		n := r.count()
		v := reflect.MakeSlice(t, n, n)
		base := v.UnsafePointer()
		i := 0
		for more := r.first(']'); more; more = r.next(']') {
			if i == n {
				r.fail() // badly nested: the count was wrong
				return
			}
			elem(r, unsafe.Add(base, uintptr(i)*size))
			i++
		}
		if i != n {
			r.fail()
		}
		reflect.NewAt(t, p).Elem().Set(v)
	}
}

func (b planner) table(t reflect.Type) plan {
	elem := b.of(t.Elem())
	if elem == nil || t.Key() != reflect.TypeFor[string]() {
		return nil
	}
	return func(r *reader, p unsafe.Pointer) {
		if r.null() {
			return
		}
		if !r.open('{') {
			return
		}
		m := reflect.MakeMapWithSize(t, r.count())
		v := reflect.New(t.Elem()).Elem()
		for more := r.first('}'); more; more = r.next('}') {
			key := r.keep(r.keyBytes())
			v.SetZero()
			elem(r, v.Addr().UnsafePointer())
			m.SetMapIndex(reflect.ValueOf(key), v)
		}
		reflect.NewAt(t, p).Elem().Set(m)
	}
}
