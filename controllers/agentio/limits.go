package agentio

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CutMark ends a text that was read only up to a limit.
const CutMark = "\n[cut]"

// Limits in characters (agentx-spec 6.3).
const (
	TopicLimit    = 200
	QuestionLimit = 2000
	AnswerLimit   = 2000
)

// checkLength reports a text that is too long, in characters.
func checkLength(what, text string, most int) error {
	if n := utf8.RuneCountInString(text); n <= most {
		return nil
	}
	count, cut := strings.CutSuffix(text, CutMark)
	n := utf8.RuneCountInString(count)
	if cut {
		return fmt.Errorf("%s has more than %d characters, at most %d are taken", what, n, most)
	}
	return fmt.Errorf("%s has %d characters, at most %d are taken", what, n, most)
}
