package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// encode writes the file as state.Encode would, with unknown fields after the known ones, by name. It is written by
// hand because a capture writes the whole file each time.
func (f *memoryFile) encode() []byte {
	size := 1 << 10
	for i := range f.entries {
		size += 600 + len(f.entries[i].Content) + len(f.entries[i].Summary)
	}
	w := jsonWriter{b: make([]byte, 0, size)}
	w.open()
	w.number("version", schemas.MemoryVersion)
	w.number("issueNumber", f.IssueNumber)
	w.stamp("updatedAt", f.UpdatedAt)
	w.field("observations")
	w.list(len(f.entries), func(i int) { w.observation(&f.entries[i]) })
	if len(f.Sources) > 0 {
		w.value("sources", f.Sources)
	}
	if len(f.Links) > 0 {
		w.value("links", f.Links)
	}
	w.extras(f.extra)
	w.close()
	return append(w.b, '\n')
}

// observation writes an observation; the order and the omitted fields are those of the tags of [schemas.Observation].
func (w *jsonWriter) observation(s *stored) {
	w.open()
	w.text("id", s.ID)
	w.text("agent", s.Agent)
	w.number("issueNumber", s.IssueNumber)
	w.text("category", s.Category)
	w.text("content", s.Content)
	w.text("summary", s.Summary)
	w.number("tokens", s.Tokens)
	w.stamp("timestamp", s.Timestamp)
	w.text("sessionId", s.SessionID)
	w.textIf("source", s.Source)
	if len(s.Anchors) > 0 {
		w.field("anchors")
		w.list(len(s.Anchors), func(i int) { w.anchor(s.Anchors[i]) })
	}
	w.numberIf("recallCount", s.RecallCount)
	w.numberIf("seenCount", s.SeenCount)
	if !s.VerifiedAt.IsZero() {
		w.stamp("verifiedAt", s.VerifiedAt)
	}
	w.textIf("supersededBy", s.SupersededBy)
	if len(s.Compacts) > 0 {
		w.field("compacts")
		w.list(len(s.Compacts), func(i int) { w.b = schemas.AppendString(w.b, s.Compacts[i]) })
	}
	if s.Archived {
		w.field("archived")
		w.b = append(w.b, "true"...)
	}
	w.extras(s.extra)
	w.close()
}

func (w *jsonWriter) anchor(a schemas.Anchor) {
	w.open()
	w.text("path", a.Path)
	w.textIf("digest", a.Digest)
	w.close()
}

// jsonWriter is indented JSON while it is written.
type jsonWriter struct {
	b      []byte
	depth  int
	filled bool // the object that is open has a field
}

func (w *jsonWriter) open() {
	w.b = append(w.b, '{')
	w.depth++
	w.filled = false
}

func (w *jsonWriter) close() {
	w.depth--
	w.line()
	w.b = append(w.b, '}')
	w.filled = true
}

func (w *jsonWriter) line() {
	w.b = append(w.b, '\n')
	for range w.depth {
		w.b = append(w.b, ' ', ' ')
	}
}

func (w *jsonWriter) field(name string) {
	if w.filled {
		w.b = append(w.b, ',')
	}
	w.filled = true
	w.line()
	w.b = append(schemas.AppendString(w.b, name), ':', ' ')
}

func (w *jsonWriter) list(n int, each func(int)) {
	w.b = append(w.b, '[')
	w.depth++
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.line()
		each(i)
	}
	w.depth--
	if n > 0 {
		w.line()
	}
	w.b = append(w.b, ']')
	w.filled = true
}

func (w *jsonWriter) text(name, s string) {
	w.field(name)
	w.b = schemas.AppendString(w.b, s)
}

func (w *jsonWriter) number(name string, n int) {
	w.field(name)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

func (w *jsonWriter) stamp(name string, s schemas.Stamp) {
	w.field(name)
	w.b = appendStamp(w.b, s)
}

func (w *jsonWriter) textIf(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *jsonWriter) numberIf(name string, n int) {
	if n != 0 {
		w.number(name, n)
	}
}

func (w *jsonWriter) extras(x extras) {
	for _, name := range slices.Sorted(maps.Keys(x)) {
		w.raw(name, x[name])
	}
}

// value writes a map of texts and lists of them, which always marshals.
func (w *jsonWriter) value(name string, v any) {
	raw, _ := schemas.Marshal(v)
	w.raw(name, raw)
}

// raw writes a value that was read as whole JSON, so indenting it cannot fail.
func (w *jsonWriter) raw(name string, raw []byte) {
	w.field(name)
	out := bytes.NewBuffer(w.b)
	_ = json.Indent(out, raw, strings.Repeat("  ", w.depth), "  ")
	w.b = out.Bytes()
}

// extras are unknown fields by name.
type extras map[string]json.RawMessage

// compact drops the blanks of the values, which are whole JSON.
func (x extras) compact() extras {
	for name, raw := range x {
		var b bytes.Buffer
		_ = json.Compact(&b, raw)
		x[name] = b.Bytes()
	}
	return x
}

// textOf is the JSON of a value that was read from JSON.
func textOf(v any) []byte {
	raw, _ := schemas.Marshal(v)
	return raw
}

// EncodeRecord encodes a memory record, and returns the name of its file, without folder and extension, and the bytes.
// The name is <type>-<issue>-<ms>-<6 digits of a digest of the bytes>: equal records have the same file.
func EncodeRecord(r schemas.MemoryRecord) (name string, data []byte, err error) {
	r.Version = schemas.MemoryVersion
	r.IDs = sortedIDs(r.IDs)
	if r.Type == schemas.RecordRecalls {
		return encodeSum(r)
	}
	if data, err = state.Encode(r); err != nil {
		return "", nil, fmt.Errorf("write a %s record: %w", r.Type, err)
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%s-%d-%d-%s", r.Type, r.Issue, max(r.At.UnixMilli(), 0), hex.EncodeToString(sum[:3])), data, nil
}

// ParseRecord reads a record. A record of an unknown type has no effect and is valid: a newer version wrote it. The
// other errors are [ErrDamaged].
func ParseRecord(data []byte) (schemas.MemoryRecord, error) {
	var r schemas.MemoryRecord
	if !utf8.Valid(data) {
		return r, fmt.Errorf("%w: it is not valid UTF-8", ErrDamaged)
	}
	if schemas.TooDeep(data) {
		return r, fmt.Errorf("%w: its values are nested too deep", ErrDamaged)
	}
	if err := readJSON(data, &r); err != nil {
		return schemas.MemoryRecord{}, fmt.Errorf("%w: %w", ErrDamaged, state.InJSON(data, err))
	}
	switch {
	case r.Type == "":
		return r, fmt.Errorf("%w: it has no type", ErrDamaged)
	case r.Version > schemas.MemoryVersion:
		return r, fmt.Errorf("its version is %d: %w", r.Version, ErrNewer)
	}
	for _, id := range r.IDs {
		if _, _, _, ok := ParseID(id); !ok {
			return r, fmt.Errorf("%w: %.150q is not the id of an observation", ErrDamaged, id)
		}
	}
	if r.Type == schemas.RecordRecalls {
		return r, checkSum(&r)
	}
	r.Recalls = nil
	return r, nil
}
