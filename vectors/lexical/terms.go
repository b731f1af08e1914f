package lexical

import (
	"unicode"
)

// maxTerm is the maximum length of a term in bytes. Longer words are cut; longer compounds are found by their parts
// only.
const maxTerm = 64

// Terms lists the terms of a text in the order of their occurrence, each as often as it occurs.
//
//   - A word is a run of letters and digits, in lower case, without accents; ' within a word is left out, and 's at
//     its end. The endings of English plurals and tenses are cut, see stem.
//   - Words joined by _ or -, written in camelCase, or with digits are an identifier. It is a term without its joints,
//     so that maxTokens, max_tokens and max-tokens are the same, and so is each part: HTTPServer2 is httpserver2,
//     http, server and 2. What has letters only is cut as a word is, so that websockets finds WebSocket; and a word of
//     two parts within a longer identifier is a term, so that oauth finds OAuth2Client.
//   - Identifiers joined by dots are a term, and so are those joined by / or \: src/db/adapter_test.go is itself (as
//     src/db/adaptertest.go), adaptertest.go, and the identifiers.
//   - Text in scripts that do not part words is cut into overlapping pairs of characters.
//   - English words that say nothing, alone or as parts, are no terms; nor are emoji and other signs.
//
// Invalid UTF-8 parts words.
func Terms(text string) []string {
	var out []string
	var c cutter
	c.cut(text, func(term []byte) { out = append(out, string(term)) })
	return out
}

// cutter cuts texts into terms and reuses its buffers; the zero value is ready. It is not safe for concurrent use.
type cutter struct {
	runes []rune // of the chunk that is being cut
	buf   []byte // the folded text of its atoms, one after the other
	atoms []atom
	term  []byte
}

// atom is an indivisible piece of a chunk: lower case letters, or digits.
type atom struct {
	from, to int
	joint    joint // the separator before it
}

// joint is the separator between two atoms; a larger one separates more.
type joint uint8

const (
	none  joint = iota // a change of case, or between letters and digits
	dash               // _ or -
	dot                // .
	slash              // / or \
)

// cut calls yield with each term; the bytes are valid during the call.
func (c *cutter) cut(text string, yield func(term []byte)) {
	for i := 0; i < len(text); {
		if end := plainWord(text, i); end > i {
			c.buf = lowerASCII(c.buf[:0], text[i:end])
			c.yieldAtom(c.buf, yield)
			i = end
			continue
		}
		r, size := runeAt(text, i)
		switch {
		case unparted(r):
			i = c.cutPairs(text, i, yield)
		case isWord(r):
			i = c.cutChunk(text, i, yield)
		default:
			i += size
		}
	}
}

// plainWord returns the end of the word that begins at i, if it is one of ASCII letters without any joint: most are,
// and need no further checks. Otherwise it returns i.
func plainWord(text string, i int) int {
	if !isLower(text[i]) && !isUpper(text[i]) {
		return i
	}
	end := i + 1
	for end < len(text) && isLower(text[end]) {
		end++
	}
	if end < len(text) && byteKind[text[end]] != kindOther && !sentenceEnd(text, end) {
		return i
	}
	return end
}

// sentenceEnd reports whether the joint at i joins nothing, as at the end of a sentence.
func sentenceEnd(text string, i int) bool {
	return byteKind[text[i]] == kindJoint && (i+1 == len(text) || byteKind[text[i+1]] == kindOther)
}

// cutChunk cuts the longest run of word characters and joints that begins at i, and returns its end.
func (c *cutter) cutChunk(text string, i int, yield func([]byte)) int {
	c.runes = c.runes[:0]
	for i < len(text) {
		r, size := runeAt(text, i)
		if termJoint(r) == none && !isApostrophe(r) && !isHidden(r) && (!isWord(r) || unparted(r)) {
			break
		}
		i += size
		if !isHidden(r) {
			c.runes = append(c.runes, r)
		}
	}
	c.splitAtoms(withoutGenitive(c.runes))
	c.yieldAtoms(yield)
	return i
}

// splitAtoms splits a chunk into atoms.
func (c *cutter) splitAtoms(runes []rune) {
	c.buf, c.atoms = c.buf[:0], c.atoms[:0]
	before := none // the loosest joint since the last atom
	begun := false // an atom is being written
	for i, r := range runes {
		if j := termJoint(r); j != none {
			before, begun = max(before, j), false
			continue
		}
		if isApostrophe(r) {
			continue
		}
		if !begun || changesCase(runes, i) {
			c.atoms = append(c.atoms, atom{from: len(c.buf), joint: before})
			before, begun = none, true
		}
		c.buf = appendFolded(c.buf, r)
		c.atoms[len(c.atoms)-1].to = len(c.buf)
	}
}

// changesCase reports whether a new part of an identifier begins at i: aB, before the last of ABCd, between letters and
// digits. The s of a plural as IDs does not begin one.
func changesCase(runes []rune, i int) bool {
	if i == 0 {
		return false
	}
	was, is := runes[i-1], runes[i]
	switch {
	case unicode.IsDigit(was) != unicode.IsDigit(is):
		return !isApostrophe(was)
	case !unicode.IsUpper(is):
		return false
	case unicode.IsLower(was):
		return true
	}
	lowers := 0
	for _, r := range runes[i+1:] {
		if !unicode.IsLower(r) {
			break
		}
		lowers++
	}
	return unicode.IsUpper(was) && (lowers > 1 || lowers == 1 && runes[i+1] != 's')
}

// yieldAtoms yields the atoms and the terms that they form together.
func (c *cutter) yieldAtoms(yield func([]byte)) {
	for _, a := range c.atoms {
		c.yieldAtom(c.buf[a.from:a.to], yield)
	}
	if len(c.atoms) > 1 {
		c.yieldPairs(yield)
		c.yieldGroups(dash, yield)
		c.yieldGroups(dot, yield)
		c.yieldGroups(slash, yield)
	}
}

// yieldPairs yields words that are written as two parts, as OAuth and SQLite, within longer identifiers: those with a
// part that is too short to be a word.
func (c *cutter) yieldPairs(yield func([]byte)) {
	for i := 1; i < len(c.atoms); i++ {
		a, b := c.atoms[i-1], c.atoms[i]
		if b.joint != none || !c.letters(a) || !c.letters(b) || min(a.to-a.from, b.to-b.from) > shortPart {
			continue
		}
		begins := i == 1 || a.joint > dash
		if begins && (i+1 == len(c.atoms) || c.atoms[i+1].joint > dash) {
			continue // it is the whole identifier
		}
		c.yieldGroup(c.atoms[i-1:i+1], yield)
	}
}

// shortPart is the length in letters up to which a part is probably not a word.
const shortPart = 3

// letters reports whether an atom is not a number.
func (c *cutter) letters(a atom) bool { return !unicode.IsDigit(rune(c.buf[a.from])) }

// yieldGroups yields the groups of atoms that joints up to widest hold together, if they contain a joint of that
// width: identifiers for dash, dotted names for dot, paths for slash.
func (c *cutter) yieldGroups(widest joint, yield func([]byte)) {
	for i := 0; i < len(c.atoms); {
		end, is := i+1, false
		for end < len(c.atoms) && c.atoms[end].joint <= widest {
			is = is || c.atoms[end].joint == widest || widest == dash
			end++
		}
		if is {
			c.yieldGroup(c.atoms[i:end], yield)
		}
		i = end
	}
}

// yieldGroup yields atoms as one term, with the dots and slashes between them. A group of letters without them is cut as
// the same word in lower case is.
func (c *cutter) yieldGroup(atoms []atom, yield func([]byte)) {
	c.term = c.term[:0]
	for i, a := range atoms {
		switch {
		case i == 0 || a.joint <= dash:
		case a.joint == dot:
			c.term = append(c.term, '.')
		default:
			c.term = append(c.term, '/')
		}
		if c.term = append(c.term, c.buf[a.from:a.to]...); len(c.term) > maxTerm {
			return
		}
	}
	yield(stem(c.term))
}

// yieldAtom yields a word, unless it is a stop word.
func (c *cutter) yieldAtom(word []byte, yield func([]byte)) {
	if len(word) > maxTerm {
		word = word[:cutAt(word, maxTerm)]
	}
	if len(word) > 0 && !isStopWord(word) {
		c.term = append(c.term[:0], word...) // word is needed as it is for the compounds
		yield(stem(c.term))
	}
}

// cutPairs yields the pairs of characters of the run of an unparted script that begins at i, and returns its end. A run
// of one character is a term.
func (c *cutter) cutPairs(text string, i int, yield func([]byte)) int {
	c.runes = c.runes[:0]
	for i < len(text) {
		r, size := runeAt(text, i)
		if !unparted(r) && !isHidden(r) {
			break
		}
		i += size
		if !isHidden(r) {
			c.runes = append(c.runes, r)
		}
	}
	for at := range max(1, len(c.runes)-1) {
		c.term = c.term[:0]
		for _, r := range c.runes[at:min(at+2, len(c.runes))] {
			c.term = appendFolded(c.term, r)
		}
		yield(c.term)
	}
	return i
}

func isStopWord(word []byte) bool {
	return len(word) <= longestStopWord && isStop[string(word)]
}

// Cutter cuts texts into terms, one text after the other, without allocating for each. The zero value is ready. It is not
// safe for concurrent use.
type Cutter struct{ cutter cutter }

// Cut calls yield with each of the [Terms] of a text, in their order. The bytes are valid during the call.
func (c *Cutter) Cut(text string, yield func(term []byte)) { c.cutter.cut(text, yield) }

func termJoint(r rune) joint {
	switch r {
	case '_', '-', '\u2010', '\u2011':
		return dash
	case '.':
		return dot
	case '/', '\\':
		return slash
	}
	return none
}
