package lexical

import (
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// nameMark begins the terms of names. No term of a text contains it.
const nameMark = '\x01'

// NameTerm returns the term of a document's whole name, folded to ignore case and accents. It differs from all [Terms]
// of any text. Of a long name only the start is used.
func NameTerm(name string) string {
	out := []byte{nameMark}
	for _, r := range strings.TrimSpace(name) {
		if out = appendFolded(out, r); len(out) > maxTerm {
			break
		}
	}
	return string(out)
}

// Named looks up the documents of the set's segments that have the name, ascending. Case does not matter, see
// [NameTerm] and [Document.Names]. The error is ErrDamaged, if any.
func (s *Set) Named(name string) (docs []int, err error) {
	term := NameTerm(name)
	hash := xxhash.Sum64String(term)
	for i := range s.segments {
		seg := &s.segments[i]
		l, ok := seg.Index.lookUp(hash, []byte(term))
		if !ok {
			return nil, ErrDamaged
		}
		l.each(func(doc uint32, _ uint8) {
			if int(doc) < seg.Index.Docs() && !seg.Deleted.Has(int(doc)) {
				docs = append(docs, seg.base+int(doc))
			}
		})
	}
	return docs, nil
}

// cutAt returns the largest offset up to n that does not split a character.
func cutAt(b []byte, n int) int {
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}
