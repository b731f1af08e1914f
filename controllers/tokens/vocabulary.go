package tokens

import (
	_ "embed"
	"hash/maphash"
)

// ranked are the words of o200k_base by rank: of each its length, in one byte, and its bytes. Every byte is one of
// them. The file is derived from the vocabulary of github.com/tiktoken-go/tokenizer (MIT), which is that of OpenAI's
// tiktoken (MIT): there it is a map, which takes four times as long to build, and which each garbage collection scans.
//
//go:embed o200k_base.words
var ranked string

// vocabulary finds the rank of a word. It is two tables of numbers over the text of all words.
type vocabulary struct {
	seed  maphash.Seed
	ends  []uint32 // where in ranked each word ends, behind a 0
	slots []uint32 // by hash: the rank + 1 in rankBits, above them bits of the hash; 0 for none. The next one if it is taken.
}

const (
	rankBits = 18
	slots    = 1 << 19 // two fifths of them are taken
	noRank   = 1<<32 - 1
)

func newVocabulary(seed maphash.Seed) *vocabulary {
	v := &vocabulary{seed: seed, ends: make([]uint32, 1, 1<<rankBits), slots: make([]uint32, slots)}
	for at := 0; at < len(ranked); {
		end := at + 1 + int(ranked[at])
		h := maphash.String(seed, ranked[at+1:end])
		i := h % slots
		for v.slots[i] != 0 {
			i = (i + 1) % slots
		}
		v.slots[i] = uint32(len(v.ends)) | tag(h)
		v.ends = append(v.ends, uint32(end))
		at = end
	}
	return v
}

// tag is what a slot holds of a hash.
func tag(h uint64) uint32 { return uint32(h>>32) &^ (1<<rankBits - 1) }

// rank returns the rank of a word; noRank if it is not in the vocabulary.
func (v *vocabulary) rank(word string) uint32 {
	h := maphash.String(v.seed, word)
	for i := h % slots; v.slots[i] != 0; i = (i + 1) % slots {
		if s := v.slots[i]; s&^(1<<rankBits-1) == tag(h) {
			if r := s&(1<<rankBits-1) - 1; ranked[v.ends[r]+1:v.ends[r+1]] == word {
				return r
			}
		}
	}
	return noRank
}

// tokens is how many tokens a piece of a text is. While two neighbours together are a word, those of the lowest rank are
// joined, the first ones of several.
func (v *vocabulary) tokens(piece string) int {
	if len(piece) < 2 || v.rank(piece) != noRank {
		return min(len(piece), 1)
	}
	j := joining{words: v, piece: piece, parts: make([]part, len(piece)+1)}
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
	words *vocabulary
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
	if p.rank = j.words.rank(j.piece[at:j.parts[p.end].end]); p.rank != noRank {
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
