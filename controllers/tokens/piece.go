package tokens

import (
	"sync"

	"github.com/dlclark/regexp2/v2"
	_ "github.com/tiktoken-go/tokenizer/codec" // has the expression compiled, which is three times as fast
)

// expression cuts texts as the encoding defines it.
var expression = sync.OnceValue(func() *regexp2.Regexp {
	const (
		upper  = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
		lower  = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
		before = `[^\r\n\p{L}\p{N}]?`
		behind = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	)
	return regexp2.MustCompile(before+upper+`*`+lower+`+`+behind+`|`+before+upper+`+`+lower+`*`+behind+
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None)
})

// Before it is encoded, a text is cut into pieces, and no token reaches from one into the next. To cut by the expression
// takes longer than all else. What follows does the same for plain texts (see isPlain): there are four
// classes of characters, and no alternative of the expression but the one for spaces looks ahead.

// pieceEnd is where the first piece of a text ends, which is plain and not empty.
func pieceEnd(text string) int {
	if end := lettersEnd(text); end > 0 {
		return end
	}
	if isDigit(text[0]) {
		return run(text, 1, min(len(text), 3), isDigit)
	}
	if end := signsEnd(text); end > 0 {
		return end
	}
	return spacesEnd(text)
}

// lettersEnd returns the end of the letters at the beginning: one other sign, except a line break or digit, may precede
// them, and the rest of a contraction after an apostrophe may follow them. Capitals begin a piece, unless all letters are
// capitals. 0 if the text does not begin with letters.
func lettersEnd(text string) int {
	from := 0
	if c := text[0]; !isUpper(c) && !isLower(c) {
		if c == '\r' || c == '\n' || isDigit(c) {
			return 0
		}
		from = 1
	}
	end := run(text, run(text, from, len(text), isUpper), len(text), isLower)
	if end == from {
		return 0
	}
	return end + contraction(text[end:])
}

// contraction is how long the 's, 't, 're, 've, 'm, 'll or 'd is that a text begins with.
func contraction(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch first := text[1] | 0x20; first {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		last := byte('e')
		if first == 'l' {
			last = 'l'
		}
		if len(text) > 2 && text[2]|0x20 == last {
			return 3
		}
	}
	return 0
}

// signsEnd is where signs at the beginning end, before which one space may stand, and behind them line breaks and slashes.
func signsEnd(text string) int {
	from := 0
	if text[0] == ' ' {
		from = 1
	}
	end := run(text, from, len(text), isSign)
	if end == from {
		return 0
	}
	return run(text, end, len(text), func(c byte) bool { return c == '\r' || c == '\n' || c == '/' })
}

// spacesEnd is where spaces at the beginning end: with the last line break among them, else before the last one, which
// belongs to what follows.
func spacesEnd(text string) int {
	end := run(text, 0, len(text), isSpace)
	for i := end; i > 0; i-- {
		if text[i-1] == '\r' || text[i-1] == '\n' {
			return i
		}
	}
	if end > 1 && end < len(text) {
		return end - 1
	}
	return end
}

// run is where characters of a class end that begin at a place, at most at to.
func run(text string, from, to int, class func(byte) bool) int {
	for from < to && class(text[from]) {
		from++
	}
	return from
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isSign(c byte) bool  { return !isUpper(c) && !isLower(c) && !isDigit(c) && !isSpace(c) }

// isPlain reports whether tokens of a text can be counted without the regular expression: it has visible ASCII, spaces, tabs and line breaks
// only; of other control characters the
// expression passes some over.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c >= 0x7f) && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

func begins(c byte) bool { return ' ' < c && c < 0x7f && c != '/' }
