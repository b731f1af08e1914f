package secrets

import (
	"slices"
	"strings"
	"unsafe"
)

// Finding is a secret in a text: bytes Start to End of it.
type Finding struct {
	// Rule is the id of a rule of gitleaks, or of one of the rules of this package.
	Rule       string
	Start, End int
}

// Find scans a text for secrets, and returns the findings in order and without overlap. It ignores private text and the
// marks of [Redact].
func Find(text string) []Finding {
	s := scanner{detector: loaded(), text: text}
	s.scan()
	if len(s.found) == 0 {
		return nil
	}
	return apartFromMarks(text, mergeFindings(s.found))
}

// Redact removes private text (see [StripPrivate]), and replaces every secret by "[redacted:RULE]". The result has
// neither: redacting it again changes nothing.
func Redact(text string) string {
	text = StripPrivate(text)
	for { // text next to a removed secret may now look like one; each round leaves less text
		found := Find(text)
		if len(found) == 0 {
			return text
		}
		text = replaceFindings(text, found)
	}
}

// RedactBytes is Redact for bytes; it returns b itself if there is nothing to remove, and does not change it.
func RedactBytes(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	text := unsafe.String(&b[0], len(b)) // b does not change while Redact reads it
	clean := Redact(text)
	if len(clean) == len(text) && (len(clean) == 0 || unsafe.StringData(clean) == &b[0]) {
		return b
	}
	return []byte(clean)
}

const (
	markStart = "[redacted:"
	markEnd   = "]"
)

func replaceFindings(text string, found []Finding) string {
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, f := range found {
		b.WriteString(text[at:f.Start])
		b.WriteString(markStart)
		b.WriteString(f.Rule)
		b.WriteString(markEnd)
		at = f.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// mergeFindings sorts findings, and joins those that overlap. The most specific rule names the whole.
func mergeFindings(found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		if a.End != b.End {
			return b.End - a.End
		}
		return strings.Compare(a.Rule, b.Rule)
	})
	out := found[:1]
	for _, f := range found[1:] {
		last := &out[len(out)-1]
		if f.Start >= last.End {
			out = append(out, f)
			continue
		}
		last.End = max(last.End, f.End)
		if vague(last.Rule) > vague(f.Rule) {
			last.Rule = f.Rule
		}
	}
	return out
}

// vague orders rules: the least specific ones are last.
func vague(rule string) int {
	switch rule {
	case genericRule:
		return 3
	case ruleAssignment:
		return 2
	case rulePassword:
		return 1
	}
	return 0
}

// maxMark is the length of the longest mark.
const maxMark = 80

// telling reports whether a character can be part of a secret that is worth hiding.
func telling(r rune) bool { return r > ' ' && !strings.ContainsRune(`"'`+"`"+`,;:=()[]{}<>\|&-`, r) }
