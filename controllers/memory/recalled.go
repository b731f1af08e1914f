package memory

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// quoted begins the lines of a recall, as it does those of all that agents are told (see agentio).
const quoted = "|"

// withoutRecalled takes out of a text what was recalled from memory, so that it is not captured again: sections named
// Memory Recall up to the next heading, and lines that begin with "|". recalled are the contents that were told there.
func withoutRecalled(text string) (rest string, recalled []string) {
	if !strings.Contains(text, quoted) && !strings.Contains(strings.ToLower(text), "memory recall") {
		return text, nil
	}
	var kept, told strings.Builder
	recall, saidQuotes := false, false
	for line := range strings.SplitAfterSeq(text, "\n") {
		body := strings.TrimSpace(line)
		said, isQuoted := strings.CutPrefix(body, quoted)
		if title, level := headingOf(body); level > 0 {
			recall, saidQuotes = strings.EqualFold(strings.Trim(title, "*: "), "memory recall"), false
		} else if recall && saidQuotes && !isQuoted && body != "" {
			recall = false // behind the quoted lines the section is over
		}
		switch {
		case isQuoted:
			told.WriteString(strings.TrimSpace(said) + "\n")
			saidQuotes = true
		case recall:
			told.WriteString(strings.TrimLeft(body, "-*+ ") + "\n\n")
		default:
			kept.WriteString(line)
		}
	}
	return kept.String(), contents(told.String())
}

// contents are the notes of what was recalled: they are parted by blank lines, and by the lines that begin with a
// category and say what each is.
func contents(told string) []string {
	var out, lines []string
	end := func() {
		if text := strings.TrimSpace(strings.Join(lines, " ")); text != "" {
			out = append(out, text)
		}
		lines = nil
	}
	for line := range strings.SplitSeq(told, "\n") {
		switch {
		case line == "" || heads(line):
			end()
		default:
			lines = append(lines, line)
		}
	}
	end()
	return out
}

// heads reports whether a line is the one above a note: it begins with a category in brackets.
func heads(line string) bool {
	category, _, found := strings.Cut(strings.TrimPrefix(line, "["), "]")
	return found && strings.HasPrefix(line, "[") && slices.Contains(schemas.Categories(), category)
}

var recalledID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bobs-[a-z0-9._-]+-[0-9]{6,15}-[0-9a-z]{6}\b`)
})

// tellsOfMemory reports whether a passage refers to an observation by its id: it tells what is known already.
func tellsOfMemory(text string) bool {
	return strings.Contains(text, "obs-") && recalledID().MatchString(text)
}
