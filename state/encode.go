package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	quick "github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
)

// Encode writes v as the canonical JSON of this tree: indented by two spaces, fields in the order of their structs and
// map keys sorted, <, > and & as they are, a newline at the end. Equal values give equal bytes.
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

// envelope is the outer form of every file under state/ that is about one object.
type envelope struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   envelopeName `json:"metadata"`
	Status     any          `json:"status"`
}

type envelopeName struct {
	Name string `json:"name"`
}

// EncodeStatus returns the bytes of the status file of ref. Conditions and history that are nil are written as empty
// lists, so that a status reads the same however it was built.
func EncodeStatus(ref schemas.Ref, status schemas.Status) ([]byte, error) {
	b, err := Encode(envelope{schemas.APIVersion, ref.Kind, envelopeName{ref.Name}, status})
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", ref, err)
	}
	// A line break in front keeps this from matching inside a string: there it would be escaped.
	b = bytes.Replace(b, []byte("\n    \"conditions\": null"), []byte("\n    \"conditions\": []"), 1)
	return bytes.Replace(b, []byte("\n    \"history\": null"), []byte("\n    \"history\": []"), 1), nil
}

// decodeStatus reads what EncodeStatus wrote. Unknown fields are accepted: a newer version may have written them.
func (r *room) decodeStatus(k schemas.Kind, name string, data []byte) (schemas.Status, error) {
	status := k.NewStatus()
	packed := r.pack(data)
	r.lend(status.Base())
	e := envelope{Status: status}
	err := decodeState(data, packed, &e)
	r.takeBack(status.Base(), packed)
	if err != nil {
		return nil, err
	}
	fit(reflect.ValueOf(status))
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

// EncodeRun returns the bytes of the record of a finished run.
func EncodeRun(r *schemas.Run) ([]byte, error) {
	c := *r
	c.APIVersion, c.Kind = schemas.APIVersion, runKind
	c.Metadata.Name = runName(r.Key)
	b, err := Encode(&c)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Key, err)
	}
	return b, nil
}

const runKind = "Run"

// decodeRun reads what EncodeRun wrote under the given key. same says the same as data; the run holds parts of it.
func decodeRun(key string, data, same []byte) (*schemas.Run, error) {
	r := new(schemas.Run)
	if err := decodeState(data, same, r); err != nil {
		return nil, err
	}
	switch {
	case r.Kind != runKind || r.APIVersion != schemas.APIVersion:
		return nil, fmt.Errorf("it is not a Run of %s", schemas.APIVersion)
	case r.Key != key:
		return nil, fmt.Errorf("it is the record of %q", r.Key)
	case !r.Done():
		return nil, errors.New("it has no outcome")
	}
	return r, nil
}

// decodeState decodes a state file, or tells what is wrong with it. same says the same as data, maybe with less space; v
// holds parts of it then.
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
	if rest, err := quick.Parse(same, v, quick.ZeroCopy); err == nil && len(rest) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil { // it says better what is wrong, and where
		line, column := placeOf(data, err)
		return &placedError{line, column, fmt.Errorf("it is not JSON of the expected form: %w", plain(err))}
	}
	return nil
}

// placedError is what is wrong at one place of a file. Lines and columns count from 1, columns in bytes.
type placedError struct {
	line, column int
	err          error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }
