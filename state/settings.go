package state

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// CheckSettings reads only the settings and returns the first error in them, and whether all of them are unusable. It is
// for callers that do not load the tree.
func (s *Store) CheckSettings() (wrong error, unusable bool) {
	f := s.readSettings()
	for _, p := range f.problems {
		if p.Severity == schemas.Error {
			return p, f.unusable()
		}
	}
	return nil, false
}

// newSettings is readSettings for a load. While no part of the file can be used, a store that was loaded goes on with its former
// settings: without them it could do what they forbid, or look for its state elsewhere. s.mu is locked.
func (s *Store) newSettings() *settingsFile {
	f := s.readSettings()
	if f.unusable() && s.model != nil {
		f.spec = s.model.settings.spec
	}
	return f
}

// unusable reports whether the file has errors and no part of it counts.
func (f *settingsFile) unusable() bool {
	return !f.sound && slices.ContainsFunc(f.problems, func(p schemas.Problem) bool { return p.Severity == schemas.Error })
}

// readSettings reads reconcile.yaml. It reports unusable fields, which have their defaults.
func (s *Store) readSettings() *settingsFile {
	f := &settingsFile{spec: new(schemas.SettingsSpec)}
	f.spec.Default()
	d, err := disk.OpenDir(s.root, ".")
	if err != nil {
		f.refuse("unreadable", err.Error())
		return f
	}
	defer d.Close()
	const limit = 1 << 20
	data, st, err := d.Read(schemas.SettingsPath, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.findMisnamed(f)
		return f
	case errors.Is(err, disk.ErrTooLarge):
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

// sameDecoder reports whether both settings decode files in the same way.
func sameDecoder(a, b *schemas.SettingsSpec) bool {
	return a.Limits.FileSize == b.Limits.FileSize && a.Folders.State == b.Folders.State
}

// Settings reads the settings of the tree from their file, before anything is loaded, and returns their spec. Unusable
// fields have their defaults, and the tree's Problems report them.
func (s *Store) Settings() *schemas.SettingsSpec { return s.readSettings().spec }

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
