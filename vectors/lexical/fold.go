package lexical

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// stopWords are English words that do not indicate the subject of a text. Words that invert a meaning (no, not,
// without) are not among them.
var stopWords = strings.Fields(`
a about after all also am an and any are as at be been before being but by can could did do does
doing done for from had has have having he her here him his how i if in into is it its just me might
more most must my of off on once only or other our out over own same she should so some such than
that the their them then there these they this those through to too under until up very was we were
what when where which while who whom why will with would you your`)

const longestStopWord = 7

// isStop is the set of the stop words.
var isStop = func() map[string]bool {
	out := make(map[string]bool, len(stopWords))
	for _, w := range stopWords {
		out[w] = true
	}
	return out
}()

// accents lists base letters, each followed by the letters that are folded to it.
const accents = `
a àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ
ae æǣǽ
b ḃḅḇ
c çćĉċčḉ
d ďḋḍḏḑḓðđ
e èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ
f ḟ
g ĝğġģǧǵḡ
h ĥȟḣḥḧḩḫẖħ
i ìíîïĩīĭįǐȉȋḭḯỉịı
j ĵǰ
k ķǩḱḳḵ
l ĺļľḷḹḻḽł
m ḿṁṃ
n ñńņňǹṅṇṉṋŋ
o òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợøǿ
oe œ
p ṕṗ
r ŕŗřȑȓṙṛṝṟ
s śŝşšșṡṣṥṧṩ
ss ßẞ
t ţťțṫṭṯṱẗŧ
th þ
u ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự
v ṽṿ
w ŵẁẃẅẇẉẘ
x ẋẍ
y ýÿŷȳẏẙỳỵỷỹ
z źżžẑẓẕ
æ ǣǽ
ø ǿ
ʹ ʹ
α ά
ε έ
η ή
ι ΐίϊ
ο ό
σ ς
υ ΰϋύ
ω ώ`

// folds is accents as a table by character; nil for characters that are not folded.
var folds = sync.OnceValue(func() [][]byte {
	var out [][]byte
	for line := range strings.Lines(strings.TrimSpace(accents)) {
		to, from, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, r := range from {
			for int(r) >= len(out) {
				out = append(out, nil)
			}
			out[r] = []byte(to)
		}
	}
	return out
})

// appendFolded appends a character in lower case, without its accent.
func appendFolded(b []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		return append(b, foldLower(byte(r)))
	}
	r = unicode.ToLower(halfWidth(r))
	if table := folds(); int(r) < len(table) && table[r] != nil {
		return append(b, table[r]...)
	}
	return utf8.AppendRune(b, r)
}

// halfWidth is the ASCII character of a full-width one.
func halfWidth(r rune) rune {
	if r >= 0xFF01 && r <= 0xFF5E {
		return r - 0xFF01 + '!'
	}
	return r
}

// Kinds of bytes.
const (
	kindOther = iota
	kindWord
	kindJoint // also the apostrophe
	kindFar   // not ASCII
)

// byteKind has the kind of each byte.
var byteKind = func() (out [256]uint8) {
	for b := range out {
		switch c := rune(b); {
		case c >= utf8.RuneSelf:
			out[b] = kindFar
		case termJoint(c) != none || isApostrophe(c):
			out[b] = kindJoint
		case unicode.IsLetter(c) || unicode.IsDigit(c):
			out[b] = kindWord
		}
	}
	return out
}()

func isLower(b byte) bool { return 'a' <= b && b <= 'z' }
func isUpper(b byte) bool { return 'A' <= b && b <= 'Z' }

func foldLower(b byte) byte {
	if isUpper(b) {
		return b + 'a' - 'A'
	}
	return b
}

func lowerASCII(into []byte, s string) []byte {
	for i := range len(s) {
		into = append(into, foldLower(s[i]))
	}
	return into
}

// isWord reports whether r can be in a word. Combining signs that change the reading (as vowels of Indian scripts)
// can.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return byteKind[r] == kindWord
	}
	return unicode.In(r, unicode.L, unicode.Nd, unicode.M) && !isHidden(r)
}

func isApostrophe(r rune) bool { return r == '\'' || r == '\u2019' }

// isHidden reports whether r is ignored within words and does not separate them: accents, vowel points of Hebrew and
// Arabic and the stroke that stretches Arabic words, soft hyphens, joiners, direction marks.
func isHidden(r rune) bool {
	switch {
	case r < 0xAD || r == '\u200b' || r == '\ufeff':
		return false
	case r >= 0x300 && r <= 0x36F,
		r >= 0x591 && r <= 0x5BD, r == 0x5BF, r >= 0x5C1 && r <= 0x5C7 && r != 0x5C3 && r != 0x5C6,
		r == 0x640, r >= 0x64B && r <= 0x65F, r == 0x670, r >= 0xFE00 && r <= 0xFE0F:
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// unpartedScripts do not separate words by spaces, or (Hangul) build them of many parts.
var unpartedScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// unparted reports whether r is a letter or mark of a script that does not separate words.
func unparted(r rune) bool {
	return r >= 0xE00 && unicode.In(r, unpartedScripts...) && isWord(r) || r == '\u30fc' || r == '\uff70'
}

// runeAt decodes the character at i. Each invalid byte is one character that is not part of a word.
func runeAt(text string, i int) (rune, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRuneInString(text[i:])
}
