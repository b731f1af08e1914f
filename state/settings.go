package state

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
)

// settingsFile is the content of reconcile.yaml. The zero sum means that the file does not exist.
type settingsFile struct {
	stat     stat
	sum      uint64
	spec     *schemas.SettingsSpec // with defaults; never nil
	sound    bool                  // a part of a broken file is usable
	problems []schemas.Problem
}

// Settings reads only the settings, before anything is loaded. Unusable fields have their defaults, and the tree's
// Problems report them.
func (s *Store) Settings() *schemas.SettingsSpec { return s.readSettings().spec }

// CheckSettings reads only the settings and returns the first error in them, and whether all of them are unusable. It is
// for callers that do not load the tree.
func (s *Store) CheckSettings() (wrong error, unusable bool) {
	f := s.readSettings()
	for _, p := range f.problems {
		if p.Severity == schemas.Error {
			return p, !f.sound
		}
	}
	return nil, false
}

// readSettings reads reconcile.yaml. It reports unusable fields, which have their defaults.
func (s *Store) readSettings() *settingsFile {
	f := &settingsFile{spec: new(schemas.SettingsSpec)}
	f.spec.Default()
	d, err := openFolder(s.root, ".")
	if err != nil {
		f.refuse("unreadable", err.Error())
		return f
	}
	defer d.close()
	const limit = 1 << 20
	data, st, err := d.read(schemas.SettingsPath, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.findMisnamed(f)
		return f
	case errors.Is(err, errTooLarge):
		f.refuse("too-large", fmt.Sprintf("the file has %d bytes; the limit is %d", st.Size, limit))
	case err != nil:
		t := unreadable(schemas.SettingsPath, err)
		f.refuse(t.code, t.text)
	default:
		f.sum = xxhash.Sum64(data)
		s.decodeSettings(f, data)
	}
	f.stat = st
	return f
}

// findMisnamed reports a file that was probably meant to be the settings, which would otherwise be ignored silently.
func (s *Store) findMisnamed(f *settingsFile) {
	const other = "reconcile.yml"
	if _, err := s.root.Lstat(other); err == nil {
		f.problems = append(f.problems, schemas.Problem{Place: schemas.Place{Path: other}, Severity: schemas.Error,
			Code: "misplaced", Message: "it is not read", Suggestion: "rename it to " + schemas.SettingsPath})
	}
}

func (f *settingsFile) refuse(code, text string) {
	f.problems = append(f.problems, schemas.Problem{Place: schemas.Place{Path: schemas.SettingsPath},
		Severity: schemas.Error, Code: code, Message: text})
}

func (s *Store) decodeSettings(f *settingsFile, data []byte) {
	kinds := s.opts.Kinds
	if _, ok := kinds.Find(schemas.SettingsKind.Name); !ok {
		kinds = append(slices.Clone(kinds), schemas.SettingsKind)
	}
	d := schemas.NewDecoder(kinds, 1<<20).Decode(schemas.SettingsPath, data)
	f.problems = append(f.problems, d.Problems...)
	if sound, ok := d.Sound.(*schemas.SettingsSpec); ok {
		f.spec, f.sound = sound, true
	}
	switch spec := schemas.SpecAs[*schemas.SettingsSpec](d.Object); {
	case spec != nil:
		f.spec = spec
	case d.Object != nil:
		f.refuse("misplaced", fmt.Sprintf("%s is the place of the settings; move the %s to the folder of specs",
			schemas.SettingsPath, d.Object.Kind))
	}
}
