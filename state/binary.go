package state

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"reconcile.dev/reconcile/schemas"
)

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) int(n int64) { e.b = binary.AppendVarint(e.b, n) }

func (e *encoder) str(s string) { e.uint(uint64(len(s))); e.b = append(e.b, s...) }

func (e *encoder) bytes(s []byte) { e.uint(uint64(len(s))); e.b = append(e.b, s...) }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) place(p schemas.Place) {
	e.str(p.Path)
	e.uint(uint64(p.Line))
	e.uint(uint64(p.Column))
}

func (d *decoder) fail() { d.bad, d.b = true, nil }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	s := d.b[:n:n]
	d.b = d.b[n:]
	return s
}

func (d *decoder) bytes() []byte { return d.take(d.uint()) }

// shared reads a string without copying it: the block must stay in memory and never change.
func (d *decoder) shared() string {
	s := d.bytes()
	return unsafe.String(unsafe.SliceData(s), len(s))
}

func (d *decoder) byte() byte {
	if s := d.take(1); len(s) == 1 {
		return s[0]
	}
	return 0
}

func (d *decoder) bool() bool { return d.byte() == 1 }

// count reads the length of a list whose elements take at least one byte each.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

var errDamaged = errors.New("the cache is damaged")

func (d *decoder) place() schemas.Place {
	return schemas.Place{Path: d.shared(), Line: int(d.uint()), Column: int(d.uint())}
}
