package clarify

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// DisplayName returns the name of an agent with each word capitalized: product-manager is Product Manager. Someone on
// GitHub, as github:octocat, keeps the name as it is.
func DisplayName(agent string) string {
	if login, ok := strings.CutPrefix(agent, "github:"); ok {
		return login + " on GitHub"
	}
	words := strings.FieldsFunc(agent, func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	for i, w := range words {
		r, size := utf8.DecodeRuneInString(w)
		words[i] = string(unicode.ToUpper(r)) + w[size:]
	}
	return strings.Join(words, " ")
}

// FenceOf returns the fence with which a line opens a code block, three or more backquotes or tildes, or "" (CommonMark
// 0.31.2, 4.5).
func FenceOf(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 && !(c == "`" && strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// ClosesFence reports whether a line closes the block of code that fence opened.
func ClosesFence(line, fence string) bool {
	mark := FenceOf(line)
	return len(mark) >= len(fence) && mark != "" && mark[0] == fence[0] && strings.TrimSpace(line) == mark
}

func article(typ string) string {
	if typ == schemas.TurnAnswer || typ == schemas.TurnEscalation || typ == schemas.TurnAbandonment {
		return "an " + typ
	}
	return "a " + typ
}

// cut shortens text to at most n characters, with an ellipsis at the end.
func cut(s string, n int) string {
	head, rest := shorten.Head(s, n)
	if rest == "" {
		return s
	}
	return strings.TrimSpace(head) + "…"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
