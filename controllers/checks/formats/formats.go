// Package formats parses the output of tools about code, and writes it in the forms that other programs read. Everything here is a pure function of
// its arguments.
//
// A reader never guesses that all is well: output that is not in its format is an error, what it does not understand is counted, and a format
// that promises an end is complete only with it.
package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Limits of the input.
const (
	maxFindings = 100_000
	maxTests    = 1_000_000
	maxText     = 16 << 10 // of a message, a stack or an output, in bytes
	maxDepth    = 64       // of nested suites
)

// Options say where output comes from.
type Options struct {
	Root     string // the absolute folder that paths become relative to
	Folder   string // the working folder of the tool below Root, with slashes; "" is Root
	Module   string // the import path of Folder, for Go; "": unknown
	Tool     string
	Category checks.Category
}

// sane takes out numbers that no place has.
func sane(r checks.Range) checks.Range {
	for _, n := range []*int{&r.Line, &r.Column, &r.EndLine, &r.EndColumn} {
		*n = max(*n, 0)
	}
	if r.Line == 0 {
		return checks.Range{}
	}
	if r.EndLine < r.Line {
		r.EndLine, r.EndColumn = 0, 0
	}
	return r
}

// clean removes terminal escapes and control characters from a text, and bounds it.
func clean(s string) string {
	if len(s) > maxText {
		s = shorten.Bytes(s, maxText) + "…"
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uFFFD' }) {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == 0x1b && i+1 < len(s) && s[i+1] == '[':
			for i += 2; i < len(s) && (s[i] < '@' || s[i] > '~'); i++ {
			}
			i++
		case c == 0x1b && i+1 < len(s) && strings.IndexByte("()*+", s[i+1]) >= 0: // a set of characters
			i += 3
		case c == 0x1b && i+1 < len(s) && s[i+1] == ']': // up to BEL or ESC \
			for i += 2; i < len(s) && s[i] != 7 && s[i] != 0x1b; i++ {
			}
			i++
		case c < ' ' && c != '\n' && c != '\t' || c == 0x7f:
			i++
		default:
			b.WriteByte(c)
			i++
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(b.String(), "?"))
}

// file turns a path of a tool's output into one below the root, with slashes. A path outside of the root stays absolute.
func (o Options) file(p string) string {
	if u, err := url.Parse(p); err == nil && u.Scheme == "file" {
		p = u.Path
		if len(p) > 3 && p[0] == '/' && p[2] == ':' { // file:///C:/x
			p = p[1:]
		}
	}
	if p == "" {
		return ""
	}
	windows := len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, ".\\") || !strings.Contains(p, "/") && strings.Contains(p, "\\")
	root := o.Root
	if windows {
		p, root = strings.ReplaceAll(p, "\\", "/"), strings.ReplaceAll(root, "\\", "/")
	}
	if path.IsAbs(p) || len(p) > 1 && p[1] == ':' {
		if rest, ok := strings.CutPrefix(path.Clean(p), strings.TrimSuffix(path.Clean(root), "/")+"/"); ok {
			return rest
		}
		return path.Clean(p)
	}
	p = path.Join(o.Folder, p)
	if p == ".." || strings.HasPrefix(p, "../") {
		return path.Join(root, p)
	}
	return p
}

// oneDocument decodes the one JSON value of an output. Programs that start others print lines before and after it, which are skipped. A second
// document is an error: each may say that all is well where the other does not.
func oneDocument(data []byte, v any) error {
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return errors.New("it is empty")
	}
	for start := range candidates(text) {
		d := json.NewDecoder(bytes.NewReader(text[start:]))
		d.UseNumber()
		err := d.Decode(v)
		if err == nil {
			return onlyText(text[start+int(d.InputOffset()):])
		}
		if start == 0 {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return errors.New("the JSON ends early")
			}
			return fmt.Errorf("the JSON is wrong: %w", err)
		}
	}
	return errors.New("it is no JSON")
}

// onlyText refuses a JSON document, or the beginning of one, after the first.
func onlyText(rest []byte) error {
	rest = bytes.TrimSpace(rest)
	for start := range candidates(rest) {
		var other json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(rest[start:])).Decode(&other); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("it has more than one JSON document")
		}
	}
	return nil
}

// beginsDocument reports whether a text may begin with a JSON object or list, and not with a mark such as [INFO].
func beginsDocument(text []byte) bool {
	inside := bytes.TrimLeft(text[1:], " \t\r\n")
	switch {
	case len(inside) == 0:
		return true // cut off
	case text[0] == '{':
		return inside[0] == '"' || inside[0] == '}'
	case text[0] == '[':
		return bytes.IndexByte([]byte(`{["]-0123456789tfn`), inside[0]) >= 0
	}
	return false
}

// candidates are the places where a JSON document may begin: at the start, and at the starts of lines; not too many of them.
func candidates(text []byte) func(func(int) bool) {
	return func(yield func(int) bool) {
		const most = 50
		n := 0
		for at := 0; at < len(text) && n < most; {
			if c := text[at]; (c == '{' || c == '[') && beginsDocument(text[at:]) {
				n++
				if !yield(at) {
					return
				}
			}
			i := bytes.IndexByte(text[at:], '\n')
			if i < 0 {
				return
			}
			at += i + 1
		}
	}
}

// bySeverity maps words of tools, in lower case, to severities.
func bySeverity(word string) (checks.Severity, bool) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "critical", "fatal", "blocker", "fatal error":
		return checks.Critical, true
	case "error", "high", "err", "e", "f", "failure", "major", "2":
		return checks.High, true
	case "warning", "medium", "warn", "w", "moderate", "1", "":
		return checks.Medium, true
	case "low", "note", "style", "convention", "refactor", "minor", "c", "r", "portability", "performance", "hint", "help":
		return checks.Low, true
	case "info", "information", "suggestion", "ignore", "none", "i", "unimportant":
		return checks.Info, true
	}
	return checks.Medium, false
}

func severityOf(word string) checks.Severity {
	s, _ := bySeverity(word)
	return s
}
