package clarify

import (
	"strings"
	"unicode"

	"reconcile.dev/reconcile/controllers/similar"
	"reconcile.dev/reconcile/schemas"
)

// How alike two texts are is measured by their sets of words: see [similar.OfWords].
const (
	// alike is from where two texts say the same.
	alike = 0.8
	// alikeQuestion is from where an answer that ends in a question mark only restates the question.
	alikeQuestion = 0.6
	// telling is the number of words from which on a repeated answer is significant: "Yes." twice does not count.
	telling = 3
)

// SameQuestion reports whether two clarification requests ask the same agent similar questions, by the words of topic
// and question.
func SameQuestion(a, b *schemas.ClarificationRequestSpec) bool {
	return a.To == b.To && similar.OfWords(a.Topic+" "+a.Question, b.Topic+" "+b.Question) >= alike
}

// evasiveAnswer reports whether an answer does not answer: it is empty, or restates the question. A text that lacks more
// than a tenth of the question's words is not a restatement, unless it is a question itself: it may be one of two
// offered options.
func evasiveAnswer(question, answer string) bool {
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return true
	}
	s := similar.OfWords(question, answer)
	if endsAsQuestion(answer) {
		return s >= alikeQuestion
	}
	return s >= alike && similarCovers(similar.Words(answer), similar.Words(question))
}

// similarCovers reports whether an answer contains at least nine in ten words of a question.
func similarCovers(answer, question similar.Set) bool {
	missing := 0
	for _, w := range question {
		if !answer.Has(w) {
			missing++
		}
	}
	return 10*missing <= len(question)
}

func endsAsQuestion(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"')]}*_`, r) })
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// similarCircles reports whether a thread goes in circles: its last two questions are alike, or its last two answers. Answers
// of fewer than three words that count are not compared.
func similarCircles(thread []schemas.ClarificationTurn) bool {
	q, before := lastTwo(thread, schemas.TurnQuestion)
	if q != "" && before != "" && similar.OfWords(q, before) >= alike {
		return true
	}
	a, before := lastTwo(thread, schemas.TurnAnswer)
	if a == "" || before == "" {
		return false
	}
	x, y := similar.Words(a), similar.Words(before)
	return min(len(x), len(y)) >= telling && similar.Dice(x, y) >= alike
}

// lastTwo returns the bodies of the last two turns of a type, the last one first; "" if the thread has fewer.
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
