package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
)

// writeSpec writes a spec as a new file, durably, and returns its path: specs/<kinds>/<name>.yaml. What is written was
// decoded before: a text that is too long is refused here, as a mistake on the command line, not by the next run, and so
// is a name with a secret in it. A file with the very content may be there already.
//
// No lock is needed: what is asked is kept even while the tree is busy. Runs that are at work are told, and look.
func writeSpec(s *state.Store, t *state.Tree, k schemas.Kind, name string, spec schemas.Spec) (string, error) {
	if err := checkDiscreetSpec(name, spec); err != nil {
		return "", err
	}
	where := path.Join(t.Settings().Folders.Specs, k.Plural, name+".yaml")
	src, err := document.Spec(schemas.Ref{Kind: k.Name, Name: name}, spec)
	if err != nil {
		return "", err
	}
	if err := judgeSpec(t, where, src); err != nil {
		return "", err
	}
	if err := writeNew(s.Root(), where, src); err != nil {
		return "", err
	}
	return where, s.Announce()
}

// judgeSpec says what is wrong with the text of a spec, nil if nothing is: by the code that reads it in the next run.
func judgeSpec(t *state.Tree, where string, src []byte) error {
	decoded := schemas.NewDecoder(kinds(), t.Settings().Limits.FileSize).Decode(where, src)
	for _, p := range decoded.Problems {
		if p.Severity == schemas.Error {
			return badUsage("%s: %s", strings.TrimPrefix(p.Field, "spec."), p.Message)
		}
	}
	return nil
}

// writeNew writes a file that must not exist, unless with the same content.
func writeNew(root *os.Root, where string, src []byte) error {
	switch is, err := findName(root, templateFile{where, src}); {
	case err != nil:
		return err
	case is == nameTaken:
		return fmt.Errorf("%s exists already; nothing was written, run the command again", where)
	}
	return durable.WriteFile(root, scratchDir, where, src)
}

// contentHex is a digest of what tells two specs apart, as hex digits of the given number of bytes.
func contentHex(bytes int, parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%q ", fmt.Sprint(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:bytes])
}

// fitName cuts a name so that it fits before a suffix, and begins and ends as names do.
func fitName(name, suffix string) string {
	const longest = 63
	name = name[:min(len(name), longest-len(suffix))]
	return strings.TrimRight(name, "-._") + suffix
}
