package main

import (
	"slices"
	"strings"
	"unicode"
)

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
	if j < 0 || !slices.ContainsFunc(replyCommands, func(r replyCommand) bool { return r.name == args[i+j] }) {
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
