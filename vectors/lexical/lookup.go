package lexical

import (
	"encoding/binary"
)

// list is what an index has of a term.
type list struct {
	postings []byte
	term     uint32 // its number
	// begins and highest are the directory of a frequent term: of each window the number of its first posting, and the
	// highest possible weight in it in boundUnit. They are nil for others.
	begins, highest []byte
}

func (l *list) len() int { return len(l.postings) / postingSize }

// posting returns posting i.
func (l *list) posting(i int) uint32 { return binary.LittleEndian.Uint32(l.postings[i*postingSize:]) }

// count is how many of the documents of a list are among the deleted ones, a list and the same as bits.
func (l *list) count(deleted []uint32, bits Bitmap) int {
	n, all := 0, l.len()
	if 8*len(deleted) < all {
		for _, doc := range deleted {
			if i := l.find(0, all, doc); i < all && l.posting(i)>>docShift == doc {
				n++
			}
		}
		return n
	}
	for i := range all {
		if bits.Has(int(l.posting(i) >> docShift)) {
			n++
		}
	}
	return n
}

// find finds the first posting in [from, to) of a document that is not below doc.
func (l *list) find(from, to int, doc uint32) int {
	want := doc << docShift
	for from < to {
		if mid := int(uint(from+to) >> 1); l.posting(mid) < want {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// span is where the directory says that the postings of a window are; of a damaged directory, somewhere in the list.
func (l *list) span(w int, highest uint32) span {
	to := uint32(l.len())
	if 4*w+4 < len(l.begins) {
		to = min(to, binary.LittleEndian.Uint32(l.begins[4*w+4:]))
	}
	return span{min(to, binary.LittleEndian.Uint32(l.begins[4*w:])), to, highest}
}

// lookUp finds a term by its hash and text; ok is false for an index that is damaged. No postings mean no such term.
func (x *Index) lookUp(hash uint64, term []byte) (l list, ok bool) {
	mask := uint64(x.slots - 1)
	for at, tries := hash&mask, uint32(0); tries < x.slots; at, tries = (at+1)&mask, tries+1 {
		slot, ok := x.rows(&x.slotRows, slotSize, int(at), 1)
		if !ok {
			return list{}, false
		}
		n := binary.LittleEndian.Uint32(slot)
		if n == 0 {
			return list{}, true
		}
		text, l, ok := x.term(n - 1)
		if !ok || string(text) == string(term) {
			return l, ok
		}
	}
	return list{}, false
}

// term is the text of a term and what the index has of it.
func (x *Index) term(n uint32) (text []byte, l list, ok bool) {
	if n >= x.terms {
		return nil, list{}, false
	}
	row, ok := x.rows(&x.termRows, termSize, int(n), 2)
	if !ok {
		return nil, list{}, false
	}
	field := func(at int) int { return int(binary.LittleEndian.Uint32(row[at:])) }
	text, ok1 := x.rows(&x.texts, 1, field(0), field(termSize)-field(0))
	postings, ok2 := x.rows(&x.postingRows, postingSize, field(4), field(termSize+4)-field(4))
	l.postings, l.term = postings, n
	if dir := field(8); ok1 && ok2 && field(termSize+8) != dir {
		windows := x.windows()
		rows, ok := x.rows(&x.dirRows, dirSize, dir*windows, windows)
		if !ok {
			return nil, list{}, false
		}
		l.begins, l.highest = rows[:4*windows], rows[4*windows:]
	}
	return text, l, ok1 && ok2
}

// key is the key of a document. A key lies in one page: both begin at multiples of its size.
func (x *Index) key(doc uint32) (uint64, bool) {
	at := int(doc) * keySize
	if doc >= x.docs {
		return 0, false
	}
	page := (x.keys.at + at - headerSize) >> pageShift
	if x.checked[page>>6].Load()&(1<<(page&63)) == 0 && !x.check(page) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(x.keys.data[at:]), true
}

// lengthClass is the rounded length of a document.
func (x *Index) lengthClass(doc uint32) (uint8, bool) {
	row, ok := x.rows(&x.lengths, 1, int(doc), 1)
	if !ok {
		return 0, false
	}
	return row[0] & (1<<tfShift - 1), true
}
