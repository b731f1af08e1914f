package manifests

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// reader fills in a manifest from a text.
type reader func(m *Manifest, text []byte) error

// format is a kind of file.
type format struct {
	ecosystem string
	lock      bool
	read      reader
}

var formats = map[string]format{
	"go.mod":              {Go, false, readGoMod},
	"go.sum":              {Go, true, readGoSum},
	"package.json":        {NPM, false, readPackageJSON},
	"package-lock.json":   {NPM, true, readPackageLock},
	"npm-shrinkwrap.json": {NPM, true, readPackageLock},
	"pnpm-lock.yaml":      {NPM, true, readPnpmLock},
	"yarn.lock":           {NPM, true, readYarnLock},
	"pyproject.toml":      {PyPI, false, readPyproject},
	"uv.lock":             {PyPI, true, readTOMLLock},
	"poetry.lock":         {PyPI, true, readTOMLLock},
	"Cargo.toml":          {Cargo, false, readCargo},
	"Cargo.lock":          {Cargo, true, readTOMLLock},
	"Gemfile":             {Gem, false, readGemfile},
	"Gemfile.lock":        {Gem, true, readGemfileLock},
	"composer.json":       {Composer, false, readComposer},
	"composer.lock":       {Composer, true, readComposerLock},
	"pom.xml":             {Maven, false, readPOM},
	"build.gradle":        {Maven, false, readGradle},
	"build.gradle.kts":    {Maven, false, readGradle},
	"dotnet-tools.json":   {NuGet, false, readDotnetTools},
}

// formatOf returns how a file is read, by its name.
func formatOf(p string) (format, bool) {
	name := path.Base(p)
	if f, ok := formats[name]; ok {
		return f, true
	}
	if IsRequirements(p) {
		return format{PyPI, false, readRequirements}, true
	}
	return format{}, false
}

// IsRequirements reports whether a file has the requirements of a project for pip, by its path with slashes.
func IsRequirements(p string) bool {
	name := path.Base(p)
	return path.Ext(name) == ".txt" && (strings.HasPrefix(name, "requirements") || path.Base(path.Dir(p)) == "requirements")
}

// Known reports whether a file is a manifest or a lock file that [Parse] reads, by its path with slashes.
func Known(p string) bool {
	_, ok := formatOf(p)
	return ok
}

// IsLock reports whether a file is a lock file.
func IsLock(p string) bool {
	f, ok := formatOf(p)
	return ok && f.lock
}

// Parse reads a manifest or a lock file. The error names the path, and the line if it is known.
func Parse(p string, text []byte) (*Manifest, error) {
	f, ok := formatOf(p)
	if !ok {
		return nil, fmt.Errorf("%s: no manifest of a known kind", p)
	}
	m := &Manifest{Path: p, Ecosystem: f.ecosystem, Lock: f.lock}
	if err := f.read(m, bytes.TrimPrefix(text, []byte("\ufeff"))); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return m, nil
}
