package sections

import (
	"encoding/binary"
	"unsafe"
)

// Encoder appends values to B: numbers as varints, texts and lists after their lengths.
type Encoder struct{ B []byte }

// Uint appends a number, as a varint.
func (e *Encoder) Uint(n uint64) { e.B = binary.AppendUvarint(e.B, n) }

// Int appends a number that may be negative, as a varint.
func (e *Encoder) Int(n int64) { e.B = binary.AppendVarint(e.B, n) }

// Fixed appends a number, as eight bytes.
func (e *Encoder) Fixed(n uint64) { e.B = binary.LittleEndian.AppendUint64(e.B, n) }

// String appends a text.
func (e *Encoder) String(s string) { e.Uint(uint64(len(s))); e.B = append(e.B, s...) }

// Bytes appends bytes, as a text.
func (e *Encoder) Bytes(b []byte) { e.Uint(uint64(len(b))); e.B = append(e.B, b...) }

// Byte appends a byte.
func (e *Encoder) Byte(b byte) { e.B = append(e.B, b) }

// Bool appends a bool.
func (e *Encoder) Bool(is bool) {
	if is {
		e.Byte(1)
	} else {
		e.Byte(0)
	}
}

// Decoder reads values from the front of B. After an error, Bad is set and all further values are zero.
type Decoder struct {
	B   []byte
	Bad bool
}

// Fail makes the rest of the data unreadable.
func (d *Decoder) Fail() { d.B, d.Bad = nil, true }

// Done reports whether all data was read, without an error.
func (d *Decoder) Done() bool { return !d.Bad && len(d.B) == 0 }

// Uint reads a number.
func (d *Decoder) Uint() uint64 {
	if len(d.B) > 0 && d.B[0] < 0x80 { // the common case
		n := uint64(d.B[0])
		d.B = d.B[1:]
		return n
	}
	n, size := binary.Uvarint(d.B)
	if size <= 0 {
		d.Fail()
		return 0
	}
	d.B = d.B[size:]
	return n
}

// UintTo reads a number that is at most limit.
func (d *Decoder) UintTo(limit uint64) uint64 {
	n := d.Uint()
	if n > limit {
		d.Fail()
		return 0
	}
	return n
}

// Int reads a number that may be negative.
func (d *Decoder) Int() int64 {
	n, size := binary.Varint(d.B)
	if size <= 0 {
		d.Fail()
		return 0
	}
	d.B = d.B[size:]
	return n
}

// Fixed reads a number of eight bytes.
func (d *Decoder) Fixed() uint64 {
	if b := d.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Count reads the number of following values of at least size bytes each. A number that exceeds the data is an error.
func (d *Decoder) Count(size int) int { return int(d.UintTo(uint64(len(d.B) / size))) }

// Take reads n bytes, in place.
func (d *Decoder) Take(n uint64) []byte {
	if n > uint64(len(d.B)) {
		d.Fail()
		return nil
	}
	b := d.B[:n:n]
	d.B = d.B[n:]
	return b
}

// Bytes reads bytes, in place.
func (d *Decoder) Bytes() []byte { return d.Take(d.Uint()) }

// String reads a text.
func (d *Decoder) String() string { return string(d.Bytes()) }

// Shared reads a text without copying it: the data must stay in memory and never change.
func (d *Decoder) Shared() string {
	b := d.Bytes()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Byte reads a byte.
func (d *Decoder) Byte() byte {
	if b := d.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Bool reads a bool.
func (d *Decoder) Bool() bool {
	b := d.Byte()
	if b > 1 {
		d.Fail()
	}
	return b == 1
}

// Number is a number of fixed size.
type Number interface {
	~uint8 | ~uint32 | ~uint64 | ~int32 | ~float32
}

// littleEndian says whether the processor stores numbers as the format does.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Numbers returns the numbers in data: in place if the byte order and the alignment allow it, otherwise a copy.
func Numbers[T Number](data []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	n := len(data) / size
	if n == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(data))
	if littleEndian && uintptr(p)%uintptr(size) == 0 {
		return unsafe.Slice((*T)(p), n)
	}
	out := make([]T, n)
	if _, err := binary.Decode(data, binary.LittleEndian, out); err != nil {
		panic(err) // data has as many numbers of fixed size
	}
	return out
}

// Raw returns numbers as the format stores them: in place if the byte order allows it, otherwise a copy.
func Raw[T Number](numbers []T) []byte {
	if littleEndian {
		size := int(unsafe.Sizeof(*new(T)))
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), len(numbers)*size)
	}
	out, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic(err) // they have a fixed size
	}
	return out
}
