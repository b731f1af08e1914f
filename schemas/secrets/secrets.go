// Package secrets finds secrets in text, and removes them: keys and tokens of some two hundred services, private keys,
// passwords in assignments, addresses and headers, and text between <private> and </private>.
//
// Everything in a tree is visible to all readers of the repository, and stays in its history. So this package filters
// all text of people or agents before it is written: memory, results and logs of runs, messages.
//
// # Rules
//
// The rules are those of gitleaks (https://github.com/gitleaks/gitleaks, MIT, see LICENSE-gitleaks), as data: its
// names and operators, regular expressions, entropies, exceptions and stop words. The library itself is not linked: it
// and its dependencies add 7 MB to a program, and 2 ms to each of its starts (1 ms without). gitleaks.rules is made
// from its configuration by cmd/reconcile/internal/tools/gen, which splits each regular expression so that it need not be
// run over the whole text: one pass finds all words that lead to a rule (see automaton), and only there the rule is
// tried. A text without any of them costs that pass; nothing is prepared before the first text is searched, and no
// regular expression is compiled before a text may match it. Time is linear in the text, whatever the text is.
//
// Own rules find more (own.go): the value of a name like password at any entropy, also in a sentence, passwords in
// addresses, connection strings, commands and files of passwords, their hashes, private keys that were cut off, data of
// Kubernetes' Secrets, and the examples that gitleaks excuses. They find less in one point: digests, paths, and ids of
// observations and clarifications are not secrets under a name that says only "key".
//
// A text has no file name here, so that rules and exceptions of gitleaks for certain files do not apply, nor do its
// comments that allow a secret.
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
	if text == "" {
		return nil
	}
	s := secretScanner{detector: loaded(), text: text}
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
