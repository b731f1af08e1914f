package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// matterArguments is [arguments] for commands whose first one names a clarification. What can be neither an id nor a name
// is a wrong command line, which is told before anything is read or run.
func matterArguments(least, most int, words string) cobra.PositionalArgs {
	number := arguments(least, most, words)
	return func(cmd *cobra.Command, args []string) error {
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], guard)
		}
		if len(args) > most && most > 1 {
			return badUsage("%s takes one text, and here are %d words: put the text in quotes; usage: %s", cmd.CommandPath(),
				len(args)-1, cmd.UseLine())
		}
		return number(cmd, args)
	}
}

// stdinText stands for the text on standard input.
const stdinText = "-"

// textOf is a text of the command line; "-" stands for what is on standard input.
func (a *app) textOf(word string) (string, error) {
	if !utf8.ValidString(word) {
		return "", badUsage("the text is not UTF-8")
	}
	if word != stdinText {
		return word, nil
	}
	const most = 64 << 10 // far more than any text may have: it is refused for its length, not cut
	text, err := io.ReadAll(io.LimitReader(a.stdin, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the text from standard input: %w", err)
	case len(text) > most:
		return "", badUsage("the text on standard input has more than %d bytes, at most 2000 characters are allowed", most)
	}
	if !utf8.Valid(text) {
		return "", badUsage("the text on standard input is not UTF-8")
	}
	return strings.TrimSpace(string(text)), nil
}

// guard begins an argument that is no flag though it looks like one. No argument of a process can hold a zero byte.
const guard = "\x00"

// guardTexts marks, for the commands that take the text of a reply, what begins with a hyphen and is no flag: a name has no
// space in it. [matterArguments] takes the mark off.
func guardTexts(args []string) []string {
	i := slices.Index(args, "clarify") + 1
	if i == 0 {
		return args
	}
	j := slices.IndexFunc(args[i:], func(w string) bool { return !strings.HasPrefix(w, "-") })
	if j < 0 || !slices.ContainsFunc(ops.ReplyVerbs, func(r ops.ReplyVerb) bool { return r.Name == args[i+j] }) {
		return args
	}
	out := slices.Clone(args)
	for k := i + j + 1; k < len(out) && out[k] != "--"; k++ {
		if name, _, _ := strings.Cut(out[k], "="); strings.HasPrefix(name, "-") && strings.ContainsFunc(name, unicode.IsSpace) {
			out[k] = guard + out[k]
		}
	}
	return out
}
