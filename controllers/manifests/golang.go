package manifests

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// readGoMod reads what a module needs. Statements of later versions of Go are skipped.
func readGoMod(m *Manifest, text []byte) error {
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		if f, err = modfile.ParseLax("go.mod", text, nil); err != nil {
			var list modfile.ErrorList
			if errors.As(err, &list) && len(list) > 0 {
				return fmt.Errorf("line %d: %w", list[0].Pos.Line, list[0].Err)
			}
			return err
		}
	}
	if f.Module != nil {
		m.Name, m.Deprecated = f.Module.Mod.Path, f.Module.Deprecated
	}
	if f.Go != nil {
		m.Engine = f.Go.Version
	}
	for _, r := range f.Retract {
		m.Retracted = append(m.Retracted, Retraction{r.Low, r.High, r.Rationale})
	}
	for _, r := range f.Require {
		d := Dependency{Name: r.Mod.Path, Version: r.Mod.Version, Indirect: r.Indirect}
		if r.Syntax != nil {
			d.Line = r.Syntax.Start.Line
		}
		for _, t := range f.Tool {
			d.Dev = d.Dev || t.Path == d.Name || strings.HasPrefix(t.Path, d.Name+"/")
		}
		m.add(d)
	}
	return nil
}

// readGoSum lists the modules with a fixed checksum of the code, not only of go.mod.
func readGoSum(m *Manifest, text []byte) error {
	for i, line := range strings.Split(string(text), "\n") {
		if w := strings.Fields(line); len(w) == 3 && !strings.HasSuffix(w[1], "/go.mod") {
			m.add(Dependency{Name: w[0], Version: w[1], Line: i + 1})
		}
	}
	return nil
}

// Retraction returns why a version of a module was taken back, by a later go.mod of it; ok is false if it was not.
func (m *Manifest) Retraction(version string) (why string, ok bool) {
	for _, r := range m.Retracted {
		if semver.Compare(r.Low, version) <= 0 && semver.Compare(version, r.High) <= 0 {
			return r.Why, true
		}
	}
	return "", false
}
