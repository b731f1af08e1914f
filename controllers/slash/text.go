package slash

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// longestEcho is how much of a foreign text a reply repeats, in characters.
const longestEcho = 200

// code formats a text as code, in which GitHub interprets no names, numbers, links or marks. Space in it becomes one
// space, and a backtick an apostrophe; secrets are removed, because the result is recorded.
func code(s string) string {
	s = strings.Join(strings.Fields(redacted(visible(s))), " ")
	s = strings.ReplaceAll(s, "`", "'")
	if s == "" {
		return "` `"
	}
	return "`" + shorten.Text(s, longestEcho+1) + "`"
}

// inert is a text as it is where it is a plain word that GitHub takes for no commit, else as code.
func inert(s string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	}
	isHash := len(s) >= 7 && strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
	if s == "" || isHash || strings.ContainsFunc(s, odd) {
		return code(s)
	}
	return s
}

// commandText is a command as a reply repeats it.
func commandText(c Command) string {
	const longest = 60
	line := []rune(redacted(c.Line))
	if len(line) > longest {
		line = append(line[:longest:longest], '…')
	}
	return code("/" + c.Verb + " " + string(line))
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

// choices lists what could be written instead, at most ten.
func choices(words []string) string {
	const most = 10
	rest := ""
	if n := len(words) - most; n > 0 {
		words, rest = words[:most], fmt.Sprintf(" and %d more", n)
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = code(w)
	}
	return strings.Join(out, ", ") + rest
}

// nearest is a clause that names the word which was probably meant.
func nearest(word string, words []string) string {
	if near := schemas.Nearest(word, words); near != "" {
		return "; did you mean " + code(near) + "?"
	}
	words = slices.Clone(words)
	slices.Sort(words)
	if len(words) == 0 {
		return ""
	}
	return "; there are " + choices(words)
}
