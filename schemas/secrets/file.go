package secrets

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// InFile returns the rules of the secrets and of the private text in the content of a file, in their order. In content that is no text, since it
// has NUL bytes and is not UTF-16, a secret has to be within one run of printable characters: other bytes would complete it by chance.
func InFile(data []byte) []string {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		data = bytes.ReplaceAll(data, []byte{0}, nil)
	case bytes.IndexByte(data, 0) >= 0:
		data = printableRuns(data)
	}
	text := string(data)
	var rules []string
	for _, f := range slices.Concat(Find(text), Private(text)) {
		rules = append(rules, f.Rule)
	}
	return rules
}

// printableRuns are the runs of printable characters in data, a line each.
func printableRuns(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) && !strings.ContainsRune("\t\r\n", r) {
			out = append(out, '\n')
		} else {
			out = append(out, data[:size]...)
		}
		data = data[size:]
	}
	return out
}
