package lexical

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// list is what an index has of a term.
type list struct {
	df   int    // how many documents it has
	term uint32 // its number
	// postings are those of a rare term, ascending; nil for others.
	postings []byte
	// What there is of a frequent term, see block: of each group the number of its first posting, of each window its
	// documents, the number of its first posting in the group, and the highest possible weight in it; of each posting
	// how often the term occurs.
	bases, masks, begins, highest, counts []byte
}

// block says where in the block of a frequent term its parts begin, in bytes. It begins with the bases.
type block struct{ masks, begins, highest, counts, end int }

// mask has the documents of a frequent term in a window.
func (l *list) mask(w int) uint64 { return binary.LittleEndian.Uint64(l.masks[8*w:]) }

// each calls yield with the documents of a list, and how often the term occurs: a posting without document and length,
// shifted by tfShift.
func (l *list) each(yield func(doc uint32, count uint8)) {
	for p := l.postings; len(p) >= postingSize; p = p[postingSize:] {
		posting := binary.LittleEndian.Uint32(p)
		yield(posting>>docShift, uint8(posting>>tfShift&countMask))
	}
	at := 0
	for w := range len(l.masks) / 8 {
		for mask := l.mask(w); mask != 0 && at < len(l.counts); mask &= mask - 1 {
			yield(uint32(w<<windowShift|bits.TrailingZeros64(mask)), l.counts[at]&countMask)
			at++
		}
	}
}

// count is how many of the documents of a list are deleted.
func (l *list) count(deleted Bitmap) (n int) {
	for p := l.postings; len(p) >= postingSize; p = p[postingSize:] {
		if deleted.Has(int(binary.LittleEndian.Uint32(p) >> docShift)) {
			n++
		}
	}
	for w := range min(len(deleted), len(l.masks)/8) {
		n += bits.OnesCount64(deleted[w] & l.mask(w))
	}
	return n
}

// touch reads a little of all that looking terms up comes to, before anybody waits for a piece: it lies far apart, and the
// processor fetches several pieces at once if none depends on another.
func (x *Index) touch(hashes []uint64) (sum byte) {
	slots, rows := x.slotRows.Data, x.termRows.Data
	for _, hash := range hashes {
		sum += slots[hash&uint64(x.slots-1)*slotSize]
	}
	for _, hash := range hashes {
		n := binary.LittleEndian.Uint32(slots[hash&uint64(x.slots-1)*slotSize:])
		if at := int(n) * termSize; at < len(rows) {
			sum += rows[at]
		}
	}
	for _, hash := range hashes {
		n := binary.LittleEndian.Uint32(slots[hash&uint64(x.slots-1)*slotSize:])
		if at := (int(n) - 1) * termSize; at >= 0 && at+termSize <= len(rows) {
			text, place := int(binary.LittleEndian.Uint32(rows[at:])), int(binary.LittleEndian.Uint32(rows[at+4:]))*blockUnit
			if text < len(x.texts.Data) {
				sum += x.texts.Data[text]
			}
			if place < len(x.blocks.Data) {
				sum += x.blocks.Data[place]
			}
		}
	}
	return sum
}

// lookUp finds a term by its hash and text; ok is false for an index that is damaged. No documents mean no such term.
func (x *Index) lookUp(hash uint64, term []byte) (l list, ok bool) {
	mask := uint64(x.slots - 1)
	for at, tries := hash&mask, uint32(0); tries < x.slots; at, tries = (at+1)&mask, tries+1 {
		slot, ok := x.slotRows.Rows(slotSize, int(at), 1)
		if !ok {
			return list{}, false
		}
		n := binary.LittleEndian.Uint32(slot)
		if n == 0 {
			return list{}, true
		}
		text, ok := x.text(n - 1)
		if !ok {
			return list{}, false
		}
		if string(text) == string(term) {
			return x.list(n - 1)
		}
	}
	return list{}, false
}

// text is the text of a term.
func (x *Index) text(n uint32) ([]byte, bool) {
	row, ok := x.termRows.Rows(termSize, int(n), 2)
	if !ok {
		return nil, false
	}
	from, to := int(binary.LittleEndian.Uint32(row)), int(binary.LittleEndian.Uint32(row[termSize:]))
	return x.texts.Rows(1, from, to-from)
}

// list is what the index has of a term.
func (x *Index) list(n uint32) (l list, ok bool) {
	row, ok := x.termRows.Rows(termSize, int(n), 1)
	if !ok {
		return list{}, false
	}
	place, df := int(binary.LittleEndian.Uint32(row[4:])), binary.LittleEndian.Uint32(row[8:])
	if df > x.docs {
		return list{}, false
	}
	l = list{df: int(df), term: n}
	if !x.frequent(df) {
		l.postings, ok = x.blocks.Rows(blockUnit, place, l.df)
		return l, ok
	}
	form := x.block(l.df)
	data, ok := x.blocks.Rows(blockUnit, place, form.end/blockUnit)
	if !ok {
		return list{}, false
	}
	l.bases, l.masks, l.begins = data[:form.masks], data[form.masks:form.begins], data[form.begins:form.highest]
	l.highest, l.counts = data[form.highest:form.counts], data[form.counts:][:df]
	return l, true
}

// key is the key of a document.
func (x *Index) key(doc uint32) (uint64, bool) {
	at := int(doc) * keySize
	if doc >= x.docs || !x.keys.Sound(at, at+keySize) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(x.keys.Data[at:]), true
}

// lengthClass is the rounded length of a document.
func (x *Index) lengthClass(doc uint32) (uint8, bool) {
	row, ok := x.lengths.Rows(1, int(doc), 1)
	if !ok {
		return 0, false
	}
	return row[0] & lengthMask, true
}

func (v *vocabulary) text(term uint32) []byte {
	from := uint32(0)
	if term > 0 {
		from = v.ends[term-1]
	}
	return v.texts[from:v.ends[term]]
}

// nameMark begins the terms of names. No term of a text contains it.
const nameMark = '\x01'

// NameTerm returns the term of a document's whole name, folded to ignore case, accents and what joins its words: openFile,
// open_file and "open file" have the same. It differs from all [Terms] of any text. Of a long name only the start is used.
func NameTerm(name string) string {
	out := []byte{nameMark}
	for _, r := range strings.TrimSpace(name) {
		if r == ' ' || r == '_' || r == '-' {
			continue
		}
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
