package source

import "bytes"

// withoutBodies returns the text of a Go file without bodies of functions, where they are formatted as gofmt does: from the
// end of a line to a line that is a brace. Other bodies stay. Text that only looks like a body is also cut: the rest then
// has other declarations, see [GoFolder.Declared].
func withoutBodies(text []byte) []byte {
	out := make([]byte, 0, len(text)/4)
	for at := 0; at < len(text); {
		l := lineAt(text, at)
		if !bytes.HasPrefix(text[at:], []byte("func ")) {
			out = append(out, text[at:l.next]...)
			at = l.next
			continue
		}
		for (l.last == '(' || l.last == ',') && l.next < len(text) { // parameters that have lines of their own
			l = lineAt(text, l.next)
		}
		end := -1
		if l.last == '{' {
			end = endOfBody(text, l.next)
		}
		if end < 0 {
			out = append(out, text[at:l.next]...)
			at = l.next
			continue
		}
		out = append(append(out, text[at:l.lastAt]...), '\n')
		at = end
	}
	return out
}

// endOfBody returns the end of the line with the closing brace of a body; -1 if there is none in text.
func endOfBody(text []byte, at int) int {
	for at < len(text) {
		next := lineAt(text, at).next
		if text[at] == '}' {
			if next-at != len("}\n") {
				return -1
			}
			return next
		}
		at = next
	}
	return -1
}

// codeLine is a line of code; tokens of several lines, as raw strings, are part of one.
type codeLine struct {
	next   int  // where the next one begins
	last   byte // the last byte that is not a space or comment; 0 if there is none
	lastAt int
}

// bareComment is how long a comment is that text begins with; 0 if it begins with none. The end of a line is part of none.
func bareComment(text []byte) int {
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			return end
		}
	case bytes.HasPrefix(text, []byte("/*")):
		if end := bytes.Index(text[2:], []byte("*/")); end >= 0 {
			return end + 4
		}
	default:
		return 0
	}
	return len(text)
}

// bareQuoted is how long the string or character is that text begins with. A string that is not raw ends with its line.
func bareQuoted(text []byte) int {
	quote := text[0]
	if quote == '`' {
		if end := bytes.IndexByte(text[1:], quote); end >= 0 {
			return end + 2
		}
		return len(text)
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case quote:
			return i + 1
		case '\n':
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}
