package slash

import (
	"strings"
	"unicode"
	"unicode/utf16"

	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/shorten"
)

// longestEcho is how much of a foreign text a reply repeats, in characters.
const longestEcho = 200

// codeText formats a text as code, in which GitHub interprets no names, numbers, links or marks. Space in it becomes one
// space, and a backtick an apostrophe; secrets are removed, because the result is recorded.
func codeText(s string) string {
	s = strings.Join(strings.Fields(redactedText(visibleText(s))), " ")
	s = strings.ReplaceAll(s, "`", "'")
	if s == "" {
		return "` `"
	}
	return "`" + shorten.Text(s, longestEcho+1) + "`"
}

// inertCommandText is a text as it is where it is a plain word that GitHub takes for no commit, else as code.
func inertCommandText(s string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	}
	isHash := len(s) >= 7 && strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
	if s == "" || isHash || strings.ContainsFunc(s, odd) {
		return codeText(s)
	}
	return s
}

// commandText is a command as a reply repeats it.
func commandText(c Command) string {
	const longest = 60
	line := []rune(redactedText(c.Line))
	if len(line) > longest {
		line = append(line[:longest:longest], '…')
	}
	return codeText("/" + c.Verb + " " + string(line))
}

// refusalText says why nothing of a comment was done: a line for each command that could not be taken.
func refusalText(why []string) string {
	const head = "Nothing of this was done. "
	if len(why) == 1 {
		if strings.HasSuffix(why[0], "?") {
			return head + why[0]
		}
		return head + why[0] + "."
	}
	return head + "\n\n- " + strings.Join(why, "\n- ")
}

// replyWithin returns the reply to a command, or, if the comment has no room for it, the request to repeat the command. It
// reserves room for that notice for all commands.
func replyWithin(cmd Command, told string, room *int) string {
	const spare = mostCommands * 1000
	n := len(utf16.Encode([]rune(told)))
	if n > *room-spare {
		told = commandText(cmd) + ": there is no room for it in this comment; ask in one of its own."
		n = len(utf16.Encode([]rune(told)))
	}
	*room -= n + len("\n\n")
	return told
}

// visibleText returns a text without invisible characters: control characters, and those that reorder the text around them.
// Lines end in \n, and only where GitHub ends them: no other character may end a quotation.
func visibleText(body string) string {
	body = strings.ReplaceAll(strings.ToValidUTF8(body, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff':
			return -1
		}
		return r
	}, body)
}

// redactedText is a text as it may be written: without secrets and private text.
func redactedText(text string) string { return strings.TrimSpace(secrets.Redact(text)) }
