package schemas

import (
	"fmt"
	"strings"
	"unicode"
)

// Nameable limits.
const (
	maxName = 63
	nearMax = 64 // longer words are not compared: typos of one letter do not matter there
)

// CheckName returns an error for a name that objects must not have: empty, too long, with a bad start, end or character, or
// that of a device on Windows. A valid name matches ^[a-z0-9][a-z0-9._-]{0,62}$, and no file system reserves it (con, nul,
// …, a trailing dot). Names become file names on every system.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name is empty")
	case len(name) > maxName:
		return fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), maxName)
	case !isNameStart(name[0]):
		return fmt.Errorf("%q does not start with a lower-case letter or digit", name)
	case strings.HasSuffix(name, "."):
		return fmt.Errorf("%q ends in a dot, which Windows drops", name)
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return !isNameRune(r) }); i >= 0 {
		r := []rune(name[i:])[0]
		return fmt.Errorf("%q contains %s; use lower-case letters, digits, '.', '_' and '-'", name, describeRune(r))
	}
	if stem, _, _ := strings.Cut(name, "."); isDevice(stem) {
		return fmt.Errorf("%q is the name of a device on Windows", name)
	}
	return nil
}

func isNameStart(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-'
}

// isDevice reports whether Windows reserves the lower-case stem of a file name.
func isDevice(stem string) bool {
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	port := strings.TrimPrefix(strings.TrimPrefix(stem, "com"), "lpt")
	return len(stem) == 4 && len(port) == 1 && '0' <= port[0] && port[0] <= '9'
}

// describeRune names a character so that it can be seen: 'é', a space, U+202E.
func describeRune(r rune) string {
	switch r {
	case ' ':
		return "a space"
	case '\t':
		return "a tab"
	case '\n', '\r':
		return "a line end"
	}
	switch {
	case unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r):
		return fmt.Sprintf("'%c'", r)
	}
	return fmt.Sprintf("the character %U, which is not seen by itself", r)
}

// isSnake reports whether s is ^[a-z][a-z0-9_]{0,62}$.
func isSnake(s string) bool {
	if s == "" || len(s) > maxName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isNameStart(c) && c != '_' {
			return false
		}
	}
	return true
}

// isNodeName reports whether s is ^[a-z][a-z0-9_-]{0,62}$.
func isNodeName(s string) bool { return isSnake(strings.ReplaceAll(s, "-", "_")) }

// snake turns s into a snake_case name, or "" if nothing of it can be kept.
func snake(s string) string {
	var b strings.Builder
	lower := false // whether the last rune was a lower-case letter or digit: then an upper-case one starts a word
	for _, r := range s {
		switch {
		case 'A' <= r && r <= 'Z':
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(r - 'A' + 'a')
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b.WriteRune(r)
		case r >= 0x80 && unicode.IsLetter(r):
			return ""
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		lower = 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	out := strings.Trim(b.String(), "_")
	if len(out) > maxName {
		out = out[:maxName]
	}
	if !isSnake(out) {
		return ""
	}
	return out
}

// Nearest returns the best of words for s, the one that costs the fewest edits, or "" if none is near enough. The edits are
// insertions, deletions, replacements and swaps of neighbours, case ignored, and at most a third of the longer word's
// length. Of equals, the first wins.
func Nearest(s string, words []string) string {
	if s == "" || len(s) > nearMax {
		return ""
	}
	best, bestCost := "", -1
	low := []rune(strings.ToLower(s))
	for _, w := range words {
		if w == "" || len(w) > nearMax {
			continue
		}
		limit := max(len(low), len(w)) / 3
		if bestCost >= 0 {
			limit = min(limit, bestCost-1)
		}
		cost := edits(low, []rune(strings.ToLower(w)), limit)
		if cost <= limit {
			best, bestCost = w, cost
		}
	}
	return best
}

// DidYouMean is ` (did you mean "x"?)` for the nearest of words, or "".
func DidYouMean(s string, words []string) string {
	if near := Nearest(s, words); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// edits is the optimal-string-alignment distance between a and b, or limit+1 where it is certain to exceed limit.
func edits(a, b []rune, limit int) int {
	if limit < 0 || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}

func differ(a, b rune) int {
	if a == b {
		return 0
	}
	return 1
}
