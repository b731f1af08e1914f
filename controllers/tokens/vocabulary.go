package tokens

import (
	_ "embed"
)

// ranked are the words of o200k_base by rank: of each its length, in one byte, and its bytes. Every byte is one of
// them. The file is derived from the vocabulary of github.com/tiktoken-go/tokenizer (MIT), which is that of OpenAI's
// tiktoken (MIT): there it is a map, which is built at the start of a process, and which each garbage collection scans.
//
//go:embed o200k_base.words
var ranked string

// slots is a hash table of the words: in each slot, of four bytes from the lowest on, where a word begins in ranked, plus one, in placeBits,
// and above them bits of its hash; 0 for none. A word is in the first slot from that of its hash that was free.
//
//go:embed o200k_base.slots
var slots string

const (
	slotCount = 1 << 18 // three quarters of them are taken
	placeBits = 21
	longWord  = 255 // bytes
	noRank    = 1<<32 - 1
)

// hash is FNV-1a: the table is the same in all processes.
func hash(word string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(word) {
		h = (h ^ uint64(word[i])) * 1099511628211
	}
	return h ^ h>>29
}

// slot returns what a slot holds.
func slot(i uint64) uint32 {
	s := slots[4*i : 4*i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// rank returns where a word is in ranked: the order of these places is that of ranks. It returns noRank if the word is not in the
// vocabulary.
func rank(word string) uint32 {
	if len(word) > longWord {
		return noRank
	}
	h := hash(word)
	for i := h % slotCount; ; i = (i + 1) % slotCount {
		s := slot(i)
		if s == 0 {
			return noRank
		}
		place := s&(1<<placeBits-1) - 1
		if s>>placeBits == uint32(h>>(32+placeBits)) && int(ranked[place]) == len(word) && ranked[place+1:][:len(word)] == word {
			return place
		}
	}
}

// tokens is how many tokens a piece of a text is. While two neighbours together are a word, those of the lowest rank are
// joined, the first ones of several.
func tokens(piece string) int {
	if len(piece) < 2 || rank(piece) != noRank {
		return min(len(piece), 1)
	}
	j := joining{piece: piece, parts: make([]part, len(piece)+1)}
	for i := range j.parts {
		j.parts[i] = part{before: int32(i - 1), end: int32(i + 1), rank: noRank}
	}
	for i := range len(piece) {
		j.look(int32(i))
	}
	left := len(piece)
	for len(j.pairs) > 0 {
		if p := j.pop(); j.parts[p.at].rank == p.rank {
			j.join(p.at)
			left--
		}
	}
	return left
}

// joining is a piece while its parts are joined.
type joining struct {
	piece string
	parts []part // by where they begin, and one behind the last; those in between are of no meaning
	pairs []pair // a heap; it may hold pairs that are outdated
}

// part is a part of a piece, with its rank when joined with the next one.
type part struct {
	before, end int32  // where the part before begins, and this one ends
	rank        uint32 // of both together; noRank if they are not a word, or this one is the last
}

// pair is a part and the one behind it, that together are a word.
type pair struct {
	rank uint32
	at   int32 // where the first begins
}

// look notes what the part that begins at a place is with the one behind it.
func (j *joining) look(at int32) {
	p := &j.parts[at]
	p.rank = noRank
	if int(p.end) == len(j.piece) {
		return
	}
	if p.rank = rank(j.piece[at:j.parts[p.end].end]); p.rank != noRank {
		j.push(pair{p.rank, at})
	}
}

// join makes one part of the one that begins at a place and the one behind it.
func (j *joining) join(at int32) {
	behind := &j.parts[j.parts[at].end]
	behind.rank = noRank
	j.parts[at].end = behind.end
	j.parts[behind.end].before = at
	j.look(at)
	if at > 0 {
		j.look(j.parts[at].before)
	}
}

func (p pair) less(o pair) bool { return p.rank < o.rank || p.rank == o.rank && p.at < o.at }

func (j *joining) push(p pair) {
	j.pairs = append(j.pairs, p)
	i := len(j.pairs) - 1
	for ; i > 0 && p.less(j.pairs[(i-1)/2]); i = (i - 1) / 2 {
		j.pairs[i] = j.pairs[(i-1)/2]
	}
	j.pairs[i] = p
}

// pop takes the least pair.
func (j *joining) pop() pair {
	least, last := j.pairs[0], j.pairs[len(j.pairs)-1]
	j.pairs = j.pairs[:len(j.pairs)-1]
	i, n := 0, len(j.pairs)
	for child := 1; child < n; child = 2*i + 1 {
		if child+1 < n && j.pairs[child+1].less(j.pairs[child]) {
			child++
		}
		if !j.pairs[child].less(last) {
			break
		}
		j.pairs[i] = j.pairs[child]
		i = child
	}
	if n > 0 {
		j.pairs[i] = last
	}
	return least
}
