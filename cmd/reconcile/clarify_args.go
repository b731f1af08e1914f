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

// threadArguments is [arguments] for commands whose first argument names a clarification. A word that is neither an id
// nor a name is refused before anything is read or run.
func threadArguments(least, most int, words string) cobra.PositionalArgs {
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

// stdinText is the argument for the text on standard input.
const stdinText = "-"

// textOf returns a text of the command line; "-" reads it from standard input.
func (a *app) textOf(word string) (string, error) {
	if !utf8.ValidString(word) {
		return "", badUsage("the text is not UTF-8")
	}
	if word != stdinText {
		return word, nil
	}
	const most = 64 << 10 // far more than any text may have: a longer one is refused, not cut
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

// guard is the prefix of an argument that looks like a flag and is none. No argument of a process can contain a zero
// byte.
const guard = "\x00"

// guardTexts marks, for the commands with the text of a reply, arguments that begin with a hyphen and contain a space,
// since no flag's name does. [threadArguments] removes the mark.
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
