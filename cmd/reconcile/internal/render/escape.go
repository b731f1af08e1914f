package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
)

// Line escapes s for one line of a terminal: control characters, line ends and tabs, invalid bytes, and the invisible
// characters that reorder or hide text.
func Line(s string) string { return escape(s, "") }

// Text escapes s as [Line] does, except for the line feeds and tabs of a text of several lines. A carriage return
// before a line feed is dropped.
func Text(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

func escape(s, keep string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strings.ContainsRune(keep, r), !document.Hidden(r):
			b.WriteRune(r)
		default:
			b.WriteString(escaped(r))
		}
		i += size
	}
	return b.String()
}

// isPlain reports whether s is printable ASCII, the common case that needs no decoding.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Argument quotes an argument for a message; for a text rather than a name it gives only the number of characters.
func Argument(word string) string {
	const most = 63 // bytes, as a name has
	if len(word) > most || strings.ContainsFunc(word, unicode.IsSpace) {
		return "a text of " + schemas.Count(utf8.RuneCountInString(word), "character")
	}
	return strconv.Quote(word)
}

func quoted(lines []string) []string { return chatPrefixed("> ", lines) }

// Copy copies output to a terminal, escaped like [Text].
func Copy(w io.Writer, r io.Reader) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if _, werr := io.WriteString(w, Text(string(line))); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}
