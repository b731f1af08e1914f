// Package specs writes specs as new files: without secrets, valid, and only where the name is free.
package specs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Scratch is where files are made before they are moved into their place, below the root.
const Scratch = ".reconcile/tmp"

// InvalidError says what is wrong with what was to be written; nothing was written.
type InvalidError struct{ text string }

func (e *InvalidError) Error() string { return e.text }

// BadRequest marks an error about what was asked for.
func (e *InvalidError) BadRequest() {}

func invalid(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }

// Write writes a spec as a new file, durably, and returns its path: specs/<kinds>/<name>.yaml. What is written was
// decoded before: a text that is too long is refused here, as a mistake on the command line, not by the next run, and so
// is a name with a secret in it. A file with the very content may be there already.
//
// No lock is needed: what is asked is kept even while the tree is busy. Runs that are at work are told, and look.
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

// check says what is wrong with the text of a spec, nil if nothing is: by the code that reads it in the next run.
func check(t *state.Tree, where string, src []byte) error {
	decoded := schemas.DecoderFor(controllers.TableOf(t).Schemas(), t.Settings()).Decode(where, src)
	for _, p := range decoded.Problems {
		if p.Severity == schemas.Error {
			return invalid("%s: %s", strings.TrimPrefix(p.Field, "spec."), p.Message)
		}
	}
	return nil
}

// Create writes a file that must not exist, unless with the same content.
func Create(root *os.Root, where string, src []byte) error {
	switch is, err := Look(root, where, src); {
	case err != nil:
		return err
	case is == Taken:
		return fmt.Errorf("%s exists already; nothing was written, run the command again", where)
	}
	return durable.WriteFile(root, Scratch, where, src)
}

// Presence is what there is under the name of a file that is to be written.
type Presence int

const (
	Unknown Presence = iota
	Free
	Same  // a file with the very content
	Taken // something else
)

// Look returns what there is under the name of a file that is to have the content data.
func Look(root *os.Root, name string, data []byte) (Presence, error) {
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

// NameDigest is a digest of what tells two specs apart, as hex digits of the given number of bytes.
func NameDigest(bytes int, parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%q ", fmt.Sprint(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:bytes])
}

// FitName cuts a name so that it fits before a suffix, and begins and ends as names do.
func FitName(name, suffix string) string {
	const longest = 63
	name = name[:min(len(name), longest-len(suffix))]
	return strings.TrimRight(name, "-._") + suffix
}
