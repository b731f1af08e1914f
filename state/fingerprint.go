package state

import (
	"encoding/binary"

	"reconcile.dev/reconcile/state/disk"
)

// fingerprint identifies a set of files: it is the sum, in two independent 64-bit hashes, of the stat of each. It does
// not depend on the order. Equal fingerprints mean equal sets, with an error probability of some 2^-128.
type fingerprint struct {
	A, B  uint64
	Files int
}

// fingerprinter adds to a fingerprint. It allocates nothing per file.
type fingerprinter struct {
	fingerprint
	buf []byte
}

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

// addBytes adds one member, which begins with the space for the salt.
func (s *fingerprinter) addBytes(b []byte) (look [2]uint64) {
	look = hashes(b)
	s.merge(fingerprint{look[0], look[1], 1})
	s.buf = b
	return look
}

func (s *fingerprint) merge(o fingerprint) {
	s.A += o.A
	s.B += o.B
	s.Files += o.Files
}

func (s *fingerprint) remove(o fingerprint) {
	s.A -= o.A
	s.B -= o.B
	s.Files -= o.Files
}
