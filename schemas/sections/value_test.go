package sections_test

import (
	"bytes"
	"math"
	"testing"

	"reconcile.dev/reconcile/schemas/sections"
)

// TestValues: what is appended is read again, and what is cut off is an error and zero.
func TestValues(t *testing.T) {
	t.Parallel()
	var e sections.Encoder
	e.Uint(5)
	e.Uint(math.MaxUint64)
	e.Int(-77)
	e.Fixed(1 << 63)
	e.String("text")
	e.Bytes([]byte("bytes"))
	e.Bool(true)
	e.Uint(2)
	e.String("")
	e.Byte(9)
	read := func(d *sections.Decoder) bool {
		return d.Uint() == 5 && d.Uint() == math.MaxUint64 && d.Int() == -77 && d.Fixed() == 1<<63 && d.String() == "text" &&
			d.Shared() == "bytes" && d.Bool() && d.Count(1) == 2 && d.String() == "" && d.Byte() == 9
	}
	whole := sections.Decoder{B: e.B}
	if !read(&whole) || !whole.Done() {
		t.Errorf("%+v", whole)
	}
	for n := range e.B {
		d := sections.Decoder{B: e.B[:n]}
		if read(&d); !d.Bad || d.Done() || d.Uint() != 0 || d.String() != "" {
			t.Errorf("cut to %d bytes: %+v", n, d)
		}
	}
}

// FuzzDecoder: no data causes a panic, or a length beyond them.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Fuzz(func(t *testing.T, data, kinds []byte) {
		d := sections.Decoder{B: bytes.Clone(data)}
		for _, kind := range kinds {
			size := 0
			switch kind % 9 {
			case 0:
				d.Uint()
			case 1:
				d.Int()
			case 2:
				d.Fixed()
			case 3:
				size = len(d.String())
			case 4:
				size = len(d.Shared())
			case 5:
				size = 3 * d.Count(3)
			case 6:
				d.Bool()
			case 7:
				d.Byte()
			case 8:
				if n := d.UintTo(7); n > 7 {
					t.Error(n)
				}
			}
			if size > len(data) {
				t.Errorf("%d bytes of %d", size, len(data))
			}
		}
	})
}
