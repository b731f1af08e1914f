package index

import "unsafe"

// aligned is room for a snapshot in memory: its sections begin where the processor likes it, as in a mapped file.
func aligned(n int) []byte {
	const line = 64
	room := make([]byte, n+line)
	skip := -int(uintptr(unsafe.Pointer(&room[0]))) & (line - 1)
	return room[skip : skip+n : skip+n]
}
