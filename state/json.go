package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	quick "github.com/segmentio/encoding/json"
	"reconcile.dev/reconcile/schemas"
)

// Encode encodes v as the canonical JSON of this tree, indented by two spaces and without HTML escapes. Fields have the
// order of their structs, map keys are sorted, <, > and & are not escaped, and a newline is at the end. Equal values give
// equal bytes.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b.Bytes(), nil
}

// EncodeStatus returns the bytes of the status file of ref. Nil conditions and history are written as empty lists, so
// that equal statuses have equal bytes.
func EncodeStatus(ref schemas.Ref, status schemas.Status) ([]byte, error) {
	b, err := Encode(envelope{schemas.APIVersion, ref.Kind, envelopeName{ref.Name}, status})
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", ref, err)
	}
	// The leading line break keeps this from matching inside a string, where it would be escaped.
	b = bytes.Replace(b, []byte("\n    \"conditions\": null"), []byte("\n    \"conditions\": []"), 1)
	return bytes.Replace(b, []byte("\n    \"history\": null"), []byte("\n    \"history\": []"), 1), nil
}

// decodeStatus decodes a status that EncodeStatus wrote. It accepts unknown fields: a newer version may have written
// them.
//
// packed is data without whitespace, in a block that the status may point into; nil before the first.
func (r *decodeBuffer) decodeStatus(k schemas.Kind, name string, data, packed []byte) (schemas.Status, error) {
	status := k.NewStatus()
	if packed == nil {
		packed = r.pack(data)
	}
	r.lendLists(status.Base())
	e := envelope{Status: status}
	err := decodeState(data, packed, &e)
	r.reclaimLists(status.Base(), packed)
	if err != nil {
		return nil, err
	}
	trimSlices(reflect.ValueOf(status))
	switch {
	case e.Status == nil:
		return nil, errors.New("it has no status")
	case e.Kind != k.Name || e.Metadata.Name != name:
		return nil, fmt.Errorf("it is the status of %q", schemas.Ref{Kind: e.Kind, Name: e.Metadata.Name}.String())
	case e.APIVersion != schemas.APIVersion:
		return nil, fmt.Errorf("its apiVersion is %q, not %q", e.APIVersion, schemas.APIVersion)
	}
	return status, nil
}

const runKind = "Run"

// decodeState decodes a state file, or returns an error with the place of the problem. same has the same content as data,
// possibly with less whitespace; v points into it afterwards.
func decodeState(data, same []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("it is not valid UTF-8")
	}
	if bytes.Contains(data, []byte("\n<<<<<<< ")) || bytes.HasPrefix(data, []byte("<<<<<<< ")) {
		return &placedError{max(schemas.ConflictLine(data), 1), 1, errors.New("it holds the conflict markers of a git merge")}
	}
	if schemas.TooDeep(same) {
		return errors.New("its values are nested too deep")
	}
	if r, ok := v.(*schemas.Run); ok {
		if parseRun(same, r) {
			return nil
		}
	} else if rest, err := quick.Parse(same, v, quick.ZeroCopy); err == nil && len(rest) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil { // its errors are better than those of the fast decoder
		line, column := placeOf(data, err)
		return &placedError{line, column, fmt.Errorf("it is not JSON of the expected form: %w", plain(err))}
	}
	return nil
}

// placedError is an error at a place of a file. Lines and columns count from 1, columns in bytes.
type placedError struct {
	line, column int
	err          error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }

// DecodeStatus decodes the data of a status file that [EncodeStatus] wrote, and returns the object's ref and its status. The
// object is of one of the kinds. It is for callers without a tree. It ignores unknown fields.
func DecodeStatus(kinds schemas.Kinds, data []byte) (schemas.Ref, schemas.Status, error) {
	var head envelope
	if err := decodeState(data, bytes.Clone(data), &head); err != nil {
		return schemas.Ref{}, nil, err
	}
	if head.APIVersion != schemas.APIVersion {
		return schemas.Ref{}, nil, fmt.Errorf("its apiVersion is %q, not %q", head.APIVersion, schemas.APIVersion)
	}
	for _, k := range kinds {
		if k.Name != head.Kind || k.NewStatus == nil {
			continue
		}
		e := envelope{Status: k.NewStatus()}
		if err := decodeState(data, bytes.Clone(data), &e); err != nil {
			return schemas.Ref{}, nil, err
		}
		status, ok := e.Status.(schemas.Status)
		if !ok || head.Status == nil {
			return schemas.Ref{}, nil, errors.New("it has no status")
		}
		return schemas.Ref{Kind: k.Name, Name: head.Metadata.Name}, status, nil
	}
	return schemas.Ref{}, nil, fmt.Errorf("no kind with statuses is called %q", head.Kind)
}

// InJSON describes an error of package json about the content of a file in one line, with the line number. It does not
// quote the content.
func InJSON(data []byte, err error) error {
	if line := schemas.ConflictLine(data); line > 0 {
		return fmt.Errorf("line %d: the conflict markers of a git merge; %s", line, schemas.ConflictHint)
	}
	if line, _ := placeOf(data, err); line > 0 {
		return fmt.Errorf("line %d: %w", line, plain(err))
	}
	return plain(err)
}

// plain describes a type error of package json without Go's types.
func plain(err error) error {
	var mistyped *json.UnmarshalTypeError
	if !errors.As(err, &mistyped) {
		return err
	}
	if mistyped.Field == "" {
		return fmt.Errorf("the file holds one %s", mistyped.Value)
	}
	return fmt.Errorf("%s cannot be of the type %s", mistyped.Field, mistyped.Value)
}

// placeOf returns the place in data of an error of package json; zero if it is not known.
func placeOf(data []byte, err error) (line, column int) {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	var offset int64 // of the byte after
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &mistyped):
		offset = mistyped.Offset
	default:
		return 0, 0
	}
	before := data[:max(0, min(int(offset)-1, len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

func damageOf(err error) *damage {
	d := &damage{text: err.Error()}
	if at := (*placedError)(nil); errors.As(err, &at) {
		d.line, d.column = at.line, at.column
	}
	return d
}

// Fields of run records that this version does not know: a newer version wrote them. They are kept in
// [schemas.Run.Unknown] and written again with the record.

// knownRunFields returns the JSON names of the fields of a record.
var knownRunFields = sync.OnceValue(func() []string {
	var names []string
	for f := range reflect.TypeFor[schemas.Run]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
})

// encodeLine encodes a line of a journal.
func encodeLine(l line) ([]byte, error) {
	if l.Run == nil || l.Run.Unknown == nil {
		return json.Marshal(l)
	}
	run, err := json.Marshal(l.Run)
	if err != nil {
		return nil, err
	}
	type rawLine struct {
		line
		Run json.RawMessage `json:"run"`
	}
	return json.Marshal(rawLine{l, withUnknownFields(run, l.Run.Unknown)})
}

// decodeLine decodes a line that encodeLine encoded.
func decodeLine(text []byte) (l line, err error) {
	if rest, err := quick.Parse(text, &l, quick.DisallowUnknownFields); err == nil && len(rest) == 0 {
		return l, nil
	}
	l = line{}
	if err := quick.Unmarshal(text, &l); err != nil || l.Run == nil {
		return l, err
	}
	var raw struct {
		Run json.RawMessage `json:"run"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return l, err
	}
	l.Run.Unknown = unknownRunFields(raw.Run)
	return l, nil
}

// DecodeMirror decodes the JSON data of a file of the mirror into v, a pointer to one of the Mirror structs of schemas. The
// caller validates v with its Check. Unknown fields are accepted: a newer version may have written them.
func DecodeMirror(data []byte, v any) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return decodeState(data, bytes.Clone(data), v)
}

// EncodeMirror encodes the mirror's record of an issue, with its comments, labels and handled comments, as JSON. Nil lists
// are written as empty ones.
func EncodeMirror(f *schemas.MirrorFile) ([]byte, error) {
	c := *f
	if c.Comments == nil {
		c.Comments = []schemas.MirrorComment{}
	}
	if c.Labels == nil {
		c.Labels = []string{}
	}
	if c.Handled == nil {
		c.Handled = []schemas.MirrorHandled{}
	}
	return Encode(&c)
}
