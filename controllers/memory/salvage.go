package memory

import (
	"bytes"
	"encoding/json"
	"regexp"
	"unicode/utf8"

	quick "github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
)

// Salvage makes a memory file of an issue from the readable parts of the damaged text of its file or archive:
// observations, including those of captures, and the accepted captures. Folding it makes the rest from the captures. It
// returns nil for a text without anything of the issue. It is pure, and takes time linear in the text.
func Salvage(damaged []byte, issue int) []byte {
	f := &file{MemoryFile: schemas.MemoryFile{IssueNumber: issue, Sources: map[string]string{}}}
	seen := map[string]bool{}
	for _, text := range objectsIn(damaged) {
		if s, ok := readStored(text, issue); ok && !seen[s.ID] {
			seen[s.ID] = true
			f.entries = append(f.entries, s)
		}
	}
	for _, m := range sourceLine().FindAllSubmatch(damaged, -1) {
		f.Sources[string(m[1])] = string(m[2])
	}
	if !f.holds() {
		return nil
	}
	f.finish()
	return f.encode()
}

// sourceLine matches a line of [schemas.MemoryFile.Sources]; digests of anchors have the name "digest".
func sourceLine() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^    "([a-z0-9][a-z0-9._-]{0,62})": "(sha256:[0-9a-f]{64})",?\r?$`)
}

func readStored(text []byte, issue int) (s stored, ok bool) {
	var fields map[string]quick.RawMessage
	if !utf8.Valid(text) || schemas.TooDeep(text) || quick.Unmarshal(text, &fields) != nil || fields["id"] == nil {
		return s, false
	}
	if quick.Unmarshal(text, &s.Observation) != nil || checkObservation(&s.Observation, issue) != nil {
		return s, false
	}
	if !foreign(&s.Observation) {
		return s, true
	}
	known := make(map[string]json.RawMessage, len(fields))
	for name, raw := range fields {
		known[name] = bytes.Clone(raw)
	}
	var err error
	s.extra, err = unknown(known, observationFields)
	return s, err == nil
}

// Objects deeper than this inside another one are not looked at, nor ones longer than that: this bounds the work.
const (
	salvageDepth = 8
	salvageBytes = 1 << 20
)

// objectsIn finds what may be JSON objects in a text, inner ones before outer ones. Strings of JSON have no line
// breaks: one that is left open ends with its line.
func objectsIn(text []byte) (out [][]byte) {
	type open struct{ at, height int }
	var stack []open
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			inString = false
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == '{':
			stack = append(stack, open{i, 0})
		case c == '}' && len(stack) > 0:
			o := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				stack[len(stack)-1].height = max(stack[len(stack)-1].height, o.height+1)
			}
			if o.height <= salvageDepth && i-o.at < salvageBytes {
				out = append(out, text[o.at:i+1])
			}
		}
	}
	return out
}
