package agentio

import (
	"regexp"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// askForm is how a text asks (decision 14).
const askForm = "CLARIFICATION NEEDED from <agent> about <topic>: <question>"

// emphasis are the marks of Markdown that may enclose words of the sentence.
const emphasis = "*_`~"

// decoration is what may precede the sentence on its line: up to three spaces, the mark of a list or a heading, the box of a task, emphasis.
const decoration = `^ {0,3}(?:(?:[-*+•]|#{1,6}|[0-9]{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?[*_` + "`" + `~]*`

// between is what may separate words of the sentence: blanks, with emphasis before and after them.
const between = `[*_` + "`" + `~]*[ \t]+[*_` + "`" + `~]*`

// nearly matches a line that begins with the two words, whatever follows.
var nearly = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + decoration + `clarification` + between + `needed(?:[^\pL\pN-]|$)`)
})

// asking matches a line that asks; what follows may be empty where the question is on the next lines.
var asking = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + decoration + `clarification` + between + `needed` + between + `from` + between +
		`(?:(?:the|an?)` + between + `)?(\S+)` + between + `about[` + emphasis + `]*[ \t]+(.+?):[` + emphasis + `]*(?:[ \t]+|$)`)
})

// sentence finds the first question in text, in the form [askForm] at the beginning of a line:
//
//	CLARIFICATION NEEDED from architect about the database: Dual layer or migrate?
//
// Emphasis, a list mark and an article around it are ignored, and so is the case of letters. The question extends to
// the next blank line, to the end of the block of code that the sentence is in, or to the end. If text has no question, near is the
// first line that begins with the same two words.
func sentence(text string) (ask *schemas.Ask, near string) {
	for rest := text; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		if line = strings.TrimRight(line, " \t\r"); nearly().MatchString(line) {
			if m := asking().FindStringSubmatchIndex(line); m != nil {
				return &schemas.Ask{To: agentIn(line[m[2]:m[3]]), Topic: plainWords(line[m[4]:m[5]]), Blocking: true,
					Question: questionIn(line[m[1]:], after)}, ""
			}
			if near == "" {
				near = line
			}
		}
		rest = after
	}
	return nil, near
}

// agentIn returns the name of an agent in text.
func agentIn(word string) string { return strings.ToLower(strings.Trim(word, emphasis)) }

// emphases are the marks of emphasis, the longer ones first.
var emphases = []string{"**", "__", "~~", "`", "*", "_"}

// plainWords removes emphasis around a text, and marks that are opened before it or closed after it.
func plainWords(text string) string {
	text = strings.TrimSpace(text)
	for _, mark := range emphases {
		inner, opens := opened(text, mark)
		switch odd := strings.Count(text, mark)%2 == 1; {
		case opens && odd:
			text = inner
		case opens:
			if body, closes := closed(inner, mark); closes {
				text = body
			}
		case odd:
			text, _ = closed(text, mark)
		}
	}
	return text
}

// opened returns the text without a mark that begins emphasis: words follow it.
func opened(text, mark string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, mark)
	if !ok || rest == "" || rest[0] == ' ' || strings.Trim(rest, emphasis) == "" {
		return text, false
	}
	return rest, true
}

// closed returns the text without a mark that ends emphasis: words precede it.
func closed(text, mark string) (rest string, ok bool) {
	rest, ok = strings.CutSuffix(text, mark)
	if words := strings.TrimRight(rest, emphasis); !ok || words == "" || words[len(words)-1] == ' ' {
		return text, false
	}
	return rest, true
}

// questionIn is the question that begins after the sentence's colon: to the next blank line, to a fence of code that only ends a
// block, or to the end. Emphasis that was opened before it ends with it.
func questionIn(first, after string) string {
	lines, fences, last := []string{first}, 0, 0
	for line := range strings.SplitSeq(after, "\n") {
		bare := strings.TrimSpace(line)
		if bare == "" {
			break
		}
		if strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~") {
			fences, last = fences+1, len(lines)
		}
		lines = append(lines, strings.TrimRight(line, " \t\r"))
	}
	if fences%2 == 1 {
		lines = lines[:last]
	}
	question := strings.TrimSpace(strings.Join(lines, "\n"))
	for _, mark := range emphases {
		if strings.Count(question, mark)%2 == 1 {
			question, _ = closed(question, mark)
		}
	}
	return question
}
