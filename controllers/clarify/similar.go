package clarify

import (
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas"
)

// How alike two texts are is measured as the Sørensen-Dice coefficient of their sets of words: 2·|A∩B| / (|A|+|B|). A
// word is a run of letters and digits in lower case; the words of stopWords do not count. Characters of scripts that do
// not part words are words of their own.
const (
	// alike is from where two texts say the same.
	alike = 0.8
	// alikeQuestion is from where an answer that ends in a question mark only restates the question.
	alikeQuestion = 0.6
	// telling is how many words an answer needs for its repetition to mean something: "Yes." twice is no circle.
	telling = 3
)

// stopWords carry no meaning of their own here. Words that turn a meaning round (no, not, without) are not among them.
const stopWords = "a an and are as at be but by do does for from i in is it its of on or our should so that the this " +
	"to was we what will with you"

// Similarity is between 0 and 1. Texts without any word that counts are compared as they stand.
func Similarity(a, b string) float64 {
	x, y := wordsOf(a), wordsOf(b)
	if len(x) == 0 && len(y) == 0 {
		if strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) {
			return 1
		}
		return 0
	}
	return dice(x, y)
}

// words is a set of words as sorted hashes: the monitor compares many texts.
type words []uint64

func dice(x, y words) float64 {
	both := 0
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] < y[j]:
			i++
		case x[i] > y[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return 2 * float64(both) / float64(len(x)+len(y))
}

// stopHashes are the hashes of stopWords.
var stopHashes = hashed(stopWords)

func hashed(list string) words {
	var out words
	eachWord(list, func(w uint64) { out = append(out, w) })
	slices.Sort(out)
	return out
}

func wordsOf(s string) words {
	out := make(words, 0, 16)
	eachWord(s, func(w uint64) {
		if _, stop := slices.BinarySearch(stopHashes, w); !stop {
			out = append(out, w)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// FNV-1a, over runes.
const (
	fnvStart = 14695981039346656037
	fnvPrime = 1099511628211
)

// eachWord calls yield with the hash of each word.
func eachWord(s string, yield func(uint64)) {
	h, inside := uint64(fnvStart), false
	end := func() {
		if inside {
			yield(h)
		}
		h, inside = fnvStart, false
	}
	for _, r := range s {
		switch {
		case !inWord(r):
			end()
		case isWord(r):
			end()
			yield((fnvStart ^ uint64(r)) * fnvPrime)
		default:
			h, inside = (h^uint64(unicode.ToLower(r)))*fnvPrime, true
		}
	}
	end()
}

func inWord(r rune) bool {
	if r < unicode.MaxASCII {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// isWord reports whether a character is a word of its own.
func isWord(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// Evasive reports whether an answer is none: it is empty, or restates the question. What leaves out more than a tenth
// of the question's words is no restatement, unless it is a question itself: it may be one of two ways that were
// offered.
func Evasive(question, answer string) bool {
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return true
	}
	s := Similarity(question, answer)
	if endsAsQuestion(answer) {
		return s >= alikeQuestion
	}
	return s >= alike && covers(wordsOf(answer), wordsOf(question))
}

// covers reports whether at least nine in ten words of a question stand in an answer.
func covers(answer, question words) bool {
	missing := 0
	for _, w := range question {
		if _, ok := slices.BinarySearch(answer, w); !ok {
			missing++
		}
	}
	return 10*missing <= len(question)
}

func endsAsQuestion(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"')]}*_`, r) })
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// Circles reports whether the last two rounds of a thread say the same: the two questions are alike, or the two
// answers. Answers of fewer than three words that count are not compared.
func Circles(thread []schemas.ClarificationTurn) bool {
	q, before := lastTwo(thread, schemas.TurnQuestion)
	if q != "" && before != "" && Similarity(q, before) >= alike {
		return true
	}
	a, before := lastTwo(thread, schemas.TurnAnswer)
	if a == "" || before == "" {
		return false
	}
	x, y := wordsOf(a), wordsOf(before)
	return min(len(x), len(y)) >= telling && dice(x, y) >= alike
}

// lastTwo returns the bodies of the last two turns of a type, the last one first; "" where there are none.
func lastTwo(thread []schemas.ClarificationTurn, typ string) (last, before string) {
	for i := len(thread) - 1; i >= 0; i-- {
		switch {
		case thread[i].Type != typ:
		case last == "":
			last = thread[i].Body
		default:
			return last, thread[i].Body
		}
	}
	return last, ""
}
