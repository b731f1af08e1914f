package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentence is a sentence with what the rules look at.
type sentence struct {
	text  string
	words []string // in lower case; a span of code is the one word codeWord
}

// codeWord replaces a span of code: its content does not classify the sentence.
const codeWord = "`"

// sentences splits a paragraph at the ends of its sentences: a point, exclamation or question mark and a space, not in
// a span of code and not behind an abbreviation; or the marks of scripts that put no space.
func sentences(text string) []sentence {
	var out []sentence
	start, code := 0, false
	add := func(end int) {
		if s := strings.TrimSpace(text[start:end]); s != "" {
			out = append(out, newSentence(s))
		}
		start = end
	}
	for i, r := range text {
		switch r {
		case '`':
			code = !code
		case '.', '!', '?':
			if !code && strings.HasPrefix(text[i+1:], " ") && (r != '.' || !abbreviated(text[start:i])) {
				add(i + 1)
			}
		case '。', '！', '？':
			add(i + utf8.RuneLen(r))
		}
	}
	add(len(text))
	return out
}

// abbreviated reports whether text ends with an abbreviation or an initial, so that the point behind it ends nothing.
func abbreviated(text string) bool {
	word := strings.ToLower(text[strings.LastIndexAny(text, " (")+1:])
	switch word {
	case "e.g", "i.e", "etc", "vs", "cf", "ca", "approx", "resp", "incl", "no", "fig", "z.b", "d.h", "mr", "ms", "dr":
		return true
	}
	return len(word) == 1 && word >= "a" && word <= "z"
}

func newSentence(text string) sentence { return sentence{text, lowerWords(text)} }

// lowerWords are the words of text in lower case: letters, digits and apostrophes. Other signs part words, or vanish.
// A span of code, a path and an address are one word each.
func lowerWords(text string) []string {
	var out []string
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '`':
			n := strings.IndexByte(text[i+1:], '`')
			if n < 0 {
				i++
				continue
			}
			out, i = append(out, codeWord), i+n+2
		case inWord(r):
			word, n := nextWord(text[i:])
			out, i = append(out, word), i+n
		default:
			i += size
		}
	}
	return out
}

// longestName is the maximum length of a path, in bytes.
const longestName = 300

// nextWord returns the word at the beginning of text, and its length there.
func nextWord(text string) (string, int) {
	token := text[:min(len(text), longestName)]
	if n := strings.IndexAny(token, " `\"(,;"); n > 0 {
		token = token[:n]
	}
	if token = strings.TrimRight(token, ".:!?)]}'"); isName(token) {
		return codeWord, len(token)
	}
	n := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) && r != '\'' && r != '’' })
	if n < 0 {
		n = len(text)
	}
	return strings.ReplaceAll(strings.TrimRight(strings.ToLower(text[:n]), "'’"), "’", "'"), n
}

// isName reports whether a word is a path, an address or a number with a point: its parts do not count as words.
func isName(token string) bool {
	if !strings.ContainsAny(token, "./_") {
		return false
	}
	return !strings.ContainsFunc(token, func(r rune) bool { return r >= utf8.RuneSelf })
}

func inWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// isQuestion reports whether a sentence asks.
func (s sentence) isQuestion() bool {
	end := strings.TrimRight(s.text, ` "')]}*_`)
	return strings.HasSuffix(end, "?") || strings.HasSuffix(end, "？")
}

// specific counts what makes a sentence worth keeping: a span of code, a path, an identifier, a number, an address.
func (s sentence) specific() int {
	n := strings.Count(s.text, "`") / 2
	for word := range strings.FieldsSeq(s.text) {
		if isTelling(word) {
			n++
		}
	}
	return min(n, 4)
}

// isTelling reports whether a word is a path, an identifier, an address, or has a number in it.
func isTelling(word string) bool {
	word = strings.Trim(word, ".,;:!?()[]\"'")
	lower := false
	for i, r := range word {
		switch {
		case unicode.IsDigit(r), r == '/' && i > 0 && len(word) > 3, r == '_' && i > 0, r == '(' && i > 0:
			return true
		case r == '.' && i > 0 && i+1 < len(word):
			return true
		case unicode.IsUpper(r) && lower:
			return true
		}
		lower = unicode.IsLower(r)
	}
	return false
}

func isSuffix(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) {
			return false
		}
	}
	return len(s) == 6
}
