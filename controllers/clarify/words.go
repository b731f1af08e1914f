package clarify

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

// Because explains in words why a question was escalated, and gives the reason in brackets to search for. If the
// circumstances matter (which cycle, which failure), they are the second line of the escalation's body.
func Because(reason, body string) string {
	why := map[string]string{
		schemas.EscalatedMaxRounds: "a question came after the last round",
		schemas.EscalatedAgent:     "the agent that was asked failed twice",
		schemas.EscalatedStale:     "no answer came in time, nor after the retry",
		schemas.EscalatedStuck:     "it goes in circles",
		schemas.EscalatedDeadlock:  "questions that block wait for each other",
		schemas.EscalatedByReply:   "somebody asked for it",
		schemas.EscalatedTarget:    "the agent that was asked is not there any more",
	}[reason]
	switch reason {
	case schemas.EscalatedAgent, schemas.EscalatedStale, schemas.EscalatedStuck, schemas.EscalatedDeadlock,
		schemas.EscalatedByReply:
		why = cmp.Or(Circumstances(reason, body), why)
	}
	if why == "" {
		return reason
	}
	return why + " (" + reason + ")"
}

// Circumstances returns the line after "Escalated (reason)" in an escalation's body, the second, without its full stop;
// "" if reconcile did not write the body for the reason.
func Circumstances(reason, body string) string {
	lines := strings.SplitN(body, "\n", 3)
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "Escalated ("+reason+"): ") {
		return ""
	}
	return strings.TrimSuffix(lines[1], ".")
}

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
