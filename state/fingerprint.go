package state

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/state/disk"
)

// secondSalt distinguishes the second hash from the first.
const secondSalt = 0x9e3779b97f4a7c15

func (s *fingerprinter) addFile(dir string, name []byte, st *disk.Stat) (look [2]uint64) {
	return s.addBytes(s.fileBytes(dir, name, st))
}

// statHash returns what addFile would add to an empty fingerprint.
func (s *fingerprinter) statHash(dir string, name []byte, st *disk.Stat) [2]uint64 {
	b := s.fileBytes(dir, name, st)
	s.buf = b
	return hashes(b)
}

func (s *fingerprinter) fileBytes(dir string, name []byte, st *disk.Stat) []byte {
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

func (s *fingerprinter) addScanError(t scanError) {
	b := append(s.buf[:0], salt...)
	b = append(b, t.path...)
	b = append(b, 0, 1)
	b = append(b, t.code...)
	s.addBytes(b)
}

func (s *fingerprinter) addText(role, text string) {
	b := append(s.buf[:0], salt...)
	b = append(append(append(b, role...), 0), text...)
	s.addBytes(b)
}

// salt is the space for the salt of a hash.
const salt = "........"

// addBytes adds one member, which begins with the space for the salt.
func (s *fingerprinter) addBytes(b []byte) (look [2]uint64) {
	look = hashes(b)
	s.merge(fingerprint{look[0], look[1], 1})
	s.buf = b
	return look
}

// hashes returns the two hashes of a member.
func hashes(b []byte) (two [2]uint64) {
	for i, by := range []uint64{0, secondSalt} {
		binary.LittleEndian.PutUint64(b, by)
		two[i] = xxhash.Sum64(b)
	}
	return two
}

func (s *fingerprint) merge(o fingerprint) {
	s.A += o.A
	s.B += o.B
	s.Files += o.Files
}
