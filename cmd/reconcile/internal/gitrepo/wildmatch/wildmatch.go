// Package wildmatch matches paths with the patterns of .gitignore and .gitattributes.
package wildmatch

import "strings"

// Match reports whether a path matches a pattern as git does: * and ? do not match a slash, ** between slashes matches any
// folders, and [...] has ranges, negation and classes. For case-insensitive matching the caller lowers the
// pattern's case.
func Match(p, t string) bool {
	for i := 0; i < len(p); i++ {
		if p[i] == '*' {
			return matchStar(p, t, i)
		}
		if t == "" {
			return false
		}
		switch c := p[i]; c {
		case '?':
			if t[0] == '/' {
				return false
			}
		case '[':
			n, ok := matchSet(p[i:], t[0])
			if !ok || t[0] == '/' {
				return false
			}
			i += n - 1
		case '\\':
			if i++; i == len(p) || p[i] != t[0] {
				return false
			}
		default:
			if c != t[0] {
				return false
			}
		}
		t = t[1:]
	}
	return t == ""
}

// matchStar matches the rest of a pattern from the star p[i], a sequence of one or more.
func matchStar(p, t string, i int) bool {
	end := i
	for end < len(p) && p[end] == '*' {
		end++
	}
	deep := end-i > 1 && (i == 0 || p[i-1] == '/') && (end == len(p) || p[end] == '/')
	rest := p[end:]
	if deep && rest != "" && Match(rest[1:], t) {
		return true // **/ matches no folder, too
	}
	for n := 0; ; n++ {
		if Match(rest, t[n:]) {
			return true
		}
		if n == len(t) || t[n] == '/' && !deep {
			return false
		}
	}
}

// matchSet matches a byte with the set at the start of the pattern, and returns the set's length.
func matchSet(p string, c byte) (n int, ok bool) {
	i, matched := 1, false
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false // an unterminated set matches nothing
		}
		if p[i] == ']' && !first {
			return i + 1, matched != negated
		}
		if strings.HasPrefix(p[i:], "[:") {
			name, _, found := strings.Cut(p[i+2:], ":]")
			class, known := classes[name]
			if found && !known {
				return 0, false
			}
			if found {
				matched = matched || class(c)
				i += len(name) + 4
				continue
			}
		}
		low, size := setByte(p[i:])
		i += size
		high := low
		if i+1 < len(p) && p[i] == '-' && p[i+1] != ']' {
			high, size = setByte(p[i+1:])
			i += 1 + size
		}
		matched = matched || low <= c && c <= high
	}
}

// setByte returns the first byte of a set's rest, which may be escaped.
func setByte(p string) (c byte, size int) {
	if p[0] == '\\' && len(p) > 1 {
		return p[1], 2
	}
	return p[0], 1
}

// classes are the named sets of bytes.
var classes = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isLetter(c) || isDigit(c) },
	"alpha":  isLetter,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 127 },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > ' ' && c < 127 },
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return c >= ' ' && c < 127 },
	"punct":  func(c byte) bool { return c > ' ' && c < 127 && !isLetter(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
