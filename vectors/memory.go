package vectors

import "unsafe"

// Open opens in memory what was built, with the same options, without a file.
func (s *Snapshot) Open(o Options) (*Index, error) {
	n := 0
	if err := s.Write(func(b []byte) error { n += len(b); return nil }); err != nil {
		return nil, err
	}
	data, at := aligned(n), 0
	if err := s.Write(func(b []byte) error { at += copy(data[at:], b); return nil }); err != nil {
		return nil, err
	}
	o.Sound = true
	return Open(data, nil, o)
}

// aligned is room for a snapshot in memory: its sections begin where the processor likes it, as in a mapped file.
func aligned(n int) []byte {
	const line = 64
	room := make([]byte, n+line)
	skip := -int(uintptr(unsafe.Pointer(&room[0]))) & (line - 1)
	return room[skip : skip+n : skip+n]
}
