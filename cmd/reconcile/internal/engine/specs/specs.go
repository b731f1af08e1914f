// Package specs writes specs as new files: without secrets, valid, and only if the name is free.
package specs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Scratch is the folder for temporary files, below the root.
const Scratch = ".reconcile/tmp"

// invalidError describes an invalid spec; nothing was written.
type invalidError struct{ text string }

func (e *invalidError) Error() string { return e.text }

// BadRequest marks an error of the request.
func (e *invalidError) BadRequest() {}

func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

// Write writes a spec as a new file, durably, and returns its path: specs/<kinds>/<name>.yaml. It decodes the spec
// first, so that a text that is too long, for example, is refused here and not by the next run. Names with a secret are
// refused, too. A file with the same content may exist already.
//
// It takes no lock, so that a spec can be written while the tree is busy. It notifies running processes.
func Write(s *state.Store, t *state.Tree, k schemas.Kind, name string, spec schemas.Spec) (string, error) {
	if err := CheckSecrets(name, spec); err != nil {
		return "", err
	}
	where := path.Join(t.Settings().Folders.Specs, k.Plural, name+".yaml")
	src, err := document.Spec(schemas.Ref{Kind: k.Name, Name: name}, spec)
	if err != nil {
		return "", err
	}
	if err := check(t, where, src); err != nil {
		return "", err
	}
	if err := Create(s.Root(), where, src); err != nil {
		return "", err
	}
	return where, s.Announce()
}

// check returns the first error of a spec's text, or nil. It uses the decoder of the next run.
func check(t *state.Tree, where string, src []byte) error {
	decoded := schemas.DecoderFor(settle.TableOf(t).Schemas(), t.Settings()).Decode(where, src)
	for _, p := range decoded.Problems {
		if p.Severity == schemas.Error {
			return invalid("%s: %s", strings.TrimPrefix(p.Field, "spec."), p.Message)
		}
	}
	return nil
}

// Create creates a spec file durably; if it exists with other content, that is an error.
func Create(root *os.Root, where string, src []byte) error {
	switch is, err := PresenceOf(root, where, src); {
	case err != nil:
		return err
	case is == Taken:
		return fmt.Errorf("%s exists already; nothing was written, run the command again", where)
	}
	if err := state.Vouch(root, where, src); err != nil {
		return err
	}
	return durable.WriteFile(root, Scratch, where, src)
}

// Presence says what exists under the name of a new file.
type Presence int

const (
	Unknown Presence = iota
	Free
	Same  // a file with the same content
	Taken // something else
)

// PresenceOf returns the Presence of a file: whether its name is free, or taken by the same data or another file. A link in place
// of a folder is an error.
func PresenceOf(root *os.Root, name string, data []byte) (Presence, error) {
	if err := durable.VetDir(root, path.Dir(name)); err != nil {
		return Unknown, err
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Free, nil
	case err != nil:
		return Unknown, fmt.Errorf("look for %s: %w", name, regular.Cause(err))
	case !info.Mode().IsRegular() || info.Size() != int64(len(data)):
		return Taken, nil
	}
	old, err := regular.Read(root, name)
	switch {
	case err != nil:
		return Unknown, fmt.Errorf("read %s: %w", name, regular.Cause(err))
	case bytes.Equal(old, data):
		return Same, nil
	}
	return Taken, nil
}

// NameDigest is the end of the name of a new spec: a digest of parts that distinguish it from others, as hex digits of the given number of bytes.
func NameDigest(bytes int, parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%q ", fmt.Sprint(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:bytes])
}

// FitName shortens a name so that it fits before a suffix and ends as names must.
func FitName(name, suffix string) string {
	const longest = 63
	name = name[:min(len(name), longest-len(suffix))]
	return strings.TrimRight(name, "-._") + suffix
}

// CheckSecret checks a name for a secret or private text, and returns an error if it has one. Unlike a text, a redacted
// name would be a different one. The error does not repeat the name.
func CheckSecret(what, name string) error {
	if found := slices.Concat(secrets.Find(name), secrets.Private(name)); len(found) > 0 {
		return invalid("%s holds a secret (%s), and nothing was written; give it another name", what, found[0].Rule)
	}
	return nil
}

// CheckSecrets is [CheckSecret] for a name and for every string of a spec, whose texts were redacted before.
func CheckSecrets(name string, spec schemas.Spec) error {
	src, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(src, &all); err != nil {
		return err
	}
	if err := CheckSecret("the name", name); err != nil {
		return err
	}
	return checkValue("the spec", all)
}

// checkValue checks a JSON value recursively. Errors do not repeat keys: they may be secrets.
func checkValue(what string, v any) error {
	switch v := v.(type) {
	case string:
		return CheckSecret(what, v)
	case []any:
		for _, one := range v {
			if err := checkValue(what, one); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, one := range v {
			if err := CheckSecret("a key of "+what, key); err != nil {
				return err
			}
			if err := checkValue(key, one); err != nil {
				return err
			}
		}
	}
	return nil
}
