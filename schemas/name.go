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

func isEnvName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// checkLabel describes the problem of an invalid key or value of a label, by which the command line selects.
func checkLabel(s string) string {
	bad := func(r rune) bool { return !isNameRune(r) && r != '/' && (r < 'A' || r > 'Z') }
	if i := strings.IndexFunc(s, bad); i >= 0 {
		return "contains " + describeRune([]rune(s[i:])[0]) + "; use letters, digits, '.', '_', '-' and '/'"
	}
	if len(s) > 2*maxName {
		return fmt.Sprintf("has %d characters, at most %d are allowed", len(s), 2*maxName)
	}
	return ""
}

// isLogin reports whether GitHub may have an account of this name.
func isLogin(s string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	return s != "" && len(s) <= 39 && !strings.ContainsFunc(s, odd)
}
