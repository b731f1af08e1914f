package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable converts output for a status file and a terminal: valid UTF-8, lines that end in \n, no escape sequences and no
// control characters except tabs.
func printable(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for i := 0; i < len(b); {
		if n := escapeLen(b[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == '\r' && i+1 < len(b) && b[i+1] == '\n':
		case r == '\r':
			out.WriteByte('\n')
		case r == '\n', r == '\t', !unprintable(r):
			out.WriteRune(r)
		}
		i += n
	}
	return out.String()
}

// unprintable: control characters, and those that reorder or hide text.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// escapeLen returns the length of the terminal escape sequence at the start of b, or 0.
func escapeLen(b []byte) int {
	if len(b) < 2 || b[0] != 0x1b {
		return 0
	}
	switch b[1] {
	case '[': // CSI: parameters, then one byte from @ to ~
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
			if b[i] < 0x20 {
				return i
			}
		}
		return len(b)
	case ']', 'P', '_', '^', 'X': // strings: up to BEL or ESC \, on one line
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == 0x07:
				return i + 1
			case b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\':
				return i + 2
			case b[i] == '\n':
				return i
			}
		}
		return len(b)
	}
	return 2
}

// ending returns the end of s: at most limit bytes, from the start of a line if possible.
func ending(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[len(s)-limit:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i+1 < len(s) {
		return s[i+1:]
	}
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// lastRune returns the length of b without an incomplete character at its end.
func lastRune(b []byte) int {
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				return len(b)
			}
			return i
		}
	}
	return len(b)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// join joins two messages; the second may be empty.
func join(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}
