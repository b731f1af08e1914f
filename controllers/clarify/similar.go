package clarify

import (
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
var stopWords = map[string]bool{"a": true, "an": true, "and": true, "are": true, "as": true, "at": true, "be": true,
	"but": true, "by": true, "do": true, "does": true, "for": true, "from": true, "i": true, "in": true, "is": true,
	"it": true, "its": true, "of": true, "on": true, "or": true, "our": true, "should": true, "so": true, "that": true,
	"the": true, "this": true, "to": true, "was": true, "we": true, "what": true, "will": true, "with": true, "you": true}

// Similarity is between 0 and 1. Texts without any word that counts are compared as they stand.
func Similarity(a, b string) float64 {
	x, y := words(a), words(b)
	if len(x) == 0 && len(y) == 0 {
		if strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) {
			return 1
		}
		return 0
	}
	return dice(x, y)
}

func dice(x, y map[string]bool) float64 {
	if len(x) > len(y) {
		x, y = y, x
	}
	both := 0
	for w := range x {
		if y[w] {
			both++
		}
	}
	return 2 * float64(both) / float64(len(x)+len(y))
}

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !inWord(r) }) {
		addWords(out, w)
	}
	return out
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// addWords adds w, taken apart at characters that are words of their own.
func addWords(set map[string]bool, w string) {
	for i, r := range w {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
			addWord(set, w[:i])
			set[string(r)] = true
			addWords(set, w[i+len(string(r)):])
			return
		}
	}
	addWord(set, w)
}

func addWord(set map[string]bool, w string) {
	if w != "" && !stopWords[w] {
		set[w] = true
	}
}

// Evasive reports whether an answer is none: it is empty, or restates the question.
func Evasive(question, answer string) bool {
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return true
	}
	s := Similarity(question, answer)
	return s >= alike || s >= alikeQuestion && endsAsQuestion(answer)
}

func endsAsQuestion(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"')]}*_`, r) })
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// Circles reports whether the last two rounds of a thread say the same: the two questions are alike, or the two answers.
// Answers of fewer than three words that count are not compared.
func Circles(thread []schemas.ClarificationTurn) bool {
	q, before := lastTwo(thread, schemas.TurnQuestion)
	if q != "" && before != "" && Similarity(q, before) >= alike {
		return true
	}
	a, before := lastTwo(thread, schemas.TurnAnswer)
	x, y := words(a), words(before)
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
