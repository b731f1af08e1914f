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

func (s *summer) addFile(dir string, name []byte, st *stat) (look [2]uint64) {
	return s.addBytes(s.fileBytes(dir, name, st))
}

// look is what addFile would add to an empty sum.
func (s *summer) look(dir string, name []byte, st *stat) [2]uint64 {
	b := s.fileBytes(dir, name, st)
	s.buf = b
	return looks(b)
}

func (s *summer) fileBytes(dir string, name []byte, st *stat) []byte {
	b := append(s.buf[:0], salt...)
	b = append(b, dir...)
	b = append(b, '/')
	b = append(b, name...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(st.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(st.Mtime))
	b = binary.LittleEndian.AppendUint64(b, uint64(st.Ctime))
	b = binary.LittleEndian.AppendUint64(b, st.Ino)
	return binary.LittleEndian.AppendUint32(b, st.Mode)
}

func (s *summer) addTrouble(t trouble) {
	b := append(s.buf[:0], salt...)
	b = append(b, t.path...)
	b = append(b, 0, 1)
	b = append(b, t.code...)
	s.addBytes(b)
}

func (s *summer) addText(role, text string) {
	b := append(s.buf[:0], salt...)
	b = append(append(append(b, role...), 0), text...)
	s.addBytes(b)
}

// salt is the place for the salt of a hash.
const salt = "........"

// addBytes adds one member; it begins with the place for the salt.
func (s *summer) addBytes(b []byte) (look [2]uint64) {
	look = looks(b)
	s.merge(sum{look[0], look[1], 1})
	s.buf = b
	return look
}

// looks are the two hashes of a member.
func looks(b []byte) (two [2]uint64) {
	for i, by := range []uint64{0, second} {
		binary.LittleEndian.PutUint64(b, by)
		two[i] = xxhash.Sum64(b)
	}
	return two
}

func (s *sum) merge(o sum) {
	s.A += o.A
	s.B += o.B
	s.Files += o.Files
}
