package sections

import (
	"encoding/binary"
	"unsafe"
)

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
