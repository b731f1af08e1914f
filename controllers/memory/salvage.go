package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"unicode/utf8"

	quick "github.com/segmentio/encoding/json"
	"reconcile.dev/reconcile/schemas"
)

// Salvage makes a memory file of an issue from the readable parts of the damaged text of its file or archive:
// observations, including those of captures, and the accepted captures. Folding it makes the rest from the captures. It
// returns nil for a text without anything of the issue. It is pure, and takes time linear in the text.
func Salvage(damaged []byte, issue int) []byte {
	f := &memoryFile{MemoryFile: schemas.MemoryFile{IssueNumber: issue, Sources: map[string]string{}}}
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

// stored is an observation in a file. Only foreign ones keep unknown fields: ours are written again.
type stored struct {
	schemas.Observation
	extra extras
}

func compareStored(a, b *stored) int {
	return cmp.Or(a.VerifiedAt.Compare(b.VerifiedAt.Time), cmp.Compare(a.RecallCount, b.RecallCount),
		cmp.Compare(a.SeenCount, b.SeenCount), bytes.Compare(a.text(), b.text()))
}

func (s *stored) text() []byte {
	var w jsonWriter
	w.observation(s)
	return w.b
}
