package secrets

import (
	"strings"
)

// automaton finds all of a set of words in one skip a text, in time linear in the text, whatever the case of ASCII
// letters (Aho and Corasick, "Efficient string matching: an aid to bibliographic search", 1975).
type automaton struct {
	class [256]uint8 // of a byte; upper and lower case are one class, and 0 are the bytes that no word has
	// next holds the state after each class in each state; those with ends carry the flag.
	next []uint16
	ends [][]uint16 // by state: the words that end there
}

const (
	classBits = 6 // a word has at most 63 different bytes
	endsFlag  = 1 << 15
)

// newAutomaton prepares the search for words, which are in lower case.
func newAutomaton(words []string) *automaton {
	a := new(automaton)
	a.classify(words)
	states := 1
	for _, w := range words {
		states += len(w)
	}
	a.next = make([]uint16, 0, states<<classBits) // at most; words that begin alike share states
	a.ends = make([][]uint16, 0, states)
	a.addState()
	for i, w := range words {
		a.add(w, uint16(i))
	}
	a.link()
	return a
}

func (a *automaton) classify(words []string) {
	classes := uint8(0)
	for _, w := range words {
		for i := range len(w) {
			b := w[i]
			if a.class[b] != 0 {
				continue
			}
			classes++
			a.class[b] = classes
			if 'a' <= b && b <= 'z' {
				a.class[b-'a'+'A'] = classes
			}
		}
	}
}

func (a *automaton) addState() uint16 {
	a.next = a.next[:len(a.next)+1<<classBits]
	a.ends = append(a.ends, nil)
	return uint16(len(a.ends) - 1)
}

func (a *automaton) add(word string, id uint16) {
	s := uint16(0)
	for i := range len(word) {
		at := int(s)<<classBits | int(a.class[word[i]])
		if a.next[at] == 0 {
			a.next[at] = a.addState()
		}
		s = a.next[at]
	}
	a.ends[s] = append(a.ends[s], id)
}

// link turns the tree of words into an automaton: breadth first, so that the shorter suffixes are ready.
func (a *automaton) link() {
	fail := make([]uint16, len(a.ends))
	queue := []uint16{0}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		a.ends[s] = append(a.ends[s], a.ends[fail[s]]...) // of the root, both are empty
		for c := range 1 << classBits {
			at, instead := int(s)<<classBits|c, int(fail[s])<<classBits|c
			switch to := a.next[at]; {
			case to == 0 && s != 0:
				a.next[at] = a.next[instead]
			case to != 0:
				if s != 0 {
					fail[to] = a.next[instead]
				}
				queue = append(queue, to)
			}
		}
	}
	for i, s := range a.next {
		if len(a.ends[s]) > 0 {
			a.next[i] = s | endsFlag
		}
	}
}

// scan calls found for every occurrence of a word: its index, and the byte after it. It stops when found returns false.
func (a *automaton) scan(text string, found func(word, end int) bool) {
	s := uint16(0)
	for i := range len(text) {
		s = a.next[int(s&^endsFlag)<<classBits|int(a.class[text[i]])]
		if s&endsFlag == 0 {
			continue
		}
		for _, word := range a.ends[s&^endsFlag] {
			if !found(int(word), i+1) {
				return
			}
		}
	}
}

// has reports whether text has any of the words.
func (a *automaton) has(text string) (found bool) {
	a.scan(text, func(int, int) bool {
		found = true
		return false
	})
	return found
}

func foldPrefix(text, lowered string) bool {
	return len(text) >= len(lowered) && strings.EqualFold(text[:len(lowered)], lowered)
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlnum(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) }

// isWord is \w of regular expressions.
func isWord(c byte) bool { return isAlnum(c) || c == '_' }

// isSpace is \s of regular expressions.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

// lower is c in lower case, if it is a letter of ASCII.
func lower(c byte) byte {
	if isUpper(c) {
		c += 'a' - 'A'
	}
	return c
}

func begins(text string, any []string) bool {
	for _, a := range any {
		if strings.HasPrefix(text, a) {
			return true
		}
	}
	return false
}
