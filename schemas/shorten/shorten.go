// Package shorten cuts texts to a length.
package shorten

import "unicode/utf8"

// Text returns s if it has at most most characters, else the first most-1 of them and an ellipsis.
func Text(s string, most int) string {
	head, rest := Head(s, most)
	if rest != "" {
		head += "…"
	}
	return head
}

// Head returns the first most-1 characters of s and the rest, if it has more than most, or else s; for callers that end a text between
// two words before its ellipsis.
func Head(s string, most int) (head, rest string) {
	if len(s) <= most {
		return s, ""
	}
	end, n := 0, 0
	for i := range s {
		if n == most-1 {
			end = i
		}
		if n++; n > most {
			return s[:end], s[end:]
		}
	}
	return s, ""
}

// Bytes shortens s to at most most bytes, and does not cut through a UTF-8 character.
func Bytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
