package state

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// sum is a fingerprint of a set of files: the sum, in two independent 64-bit hashes, of what the file system says of
// each. It does not depend on the order of adding. Equal sums mean, but for a chance of some 2^-128, equal sets.
type sum struct {
	A, B  uint64
	Files int
}

// summer adds to a sum. It makes nothing per file.
type summer struct {
	sum
	buf []byte
}

// second sets the second hash apart from the first.
const second = 0x9e3779b97f4a7c15

func (s *summer) addFile(dir string, name []byte, st *stat) {
	b := append(s.buf[:0], "........"...)
	b = append(b, dir...)
	b = append(b, '/')
	b = append(b, name...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(st.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(st.Mtime))
	b = binary.LittleEndian.AppendUint64(b, uint64(st.Ctime))
	b = binary.LittleEndian.AppendUint64(b, st.Ino)
	b = binary.LittleEndian.AppendUint32(b, st.Mode)
	s.addBytes(b)
}

func (s *summer) addTrouble(t trouble) {
	b := append(s.buf[:0], "........"...)
	b = append(b, t.path...)
	b = append(b, 0, 1)
	b = append(b, t.code...)
	s.addBytes(b)
}

func (s *summer) addText(role, text string) {
	b := append(s.buf[:0], "........"...)
	b = append(append(append(b, role...), 0), text...)
	s.addBytes(b)
}

// addBytes adds one member; the first eight bytes of b are the place for the hash's salt.
func (s *summer) addBytes(b []byte) {
	binary.LittleEndian.PutUint64(b, 0)
	s.A += xxhash.Sum64(b)
	binary.LittleEndian.PutUint64(b, second)
	s.B += xxhash.Sum64(b)
	s.Files++
	s.buf = b
}

func (s *sum) merge(o sum) {
	s.A += o.A
	s.B += o.B
	s.Files += o.Files
}
