// Package manifests reads the files in which projects declare and lock what they depend on. It reads no files itself: the
// result is a pure function of a path and a text.
//
// Read with the parser of their format: go.mod and go.sum, package.json and package-lock.json, pnpm-lock.yaml,
// pyproject.toml, uv.lock and poetry.lock, Cargo.toml and Cargo.lock, composer.json and composer.lock, and pom.xml. Read by
// lines, since no library reads them or since they are programs: yarn.lock, requirements.txt, Gemfile and Gemfile.lock, and
// build.gradle. Of .NET only the tools in dotnet-tools.json are read. Of programs only dependencies that are written as literal texts are found.
package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// The ecosystems, by the names of package URLs.
const (
	Go       = "golang"
	NPM      = "npm"
	PyPI     = "pypi"
	Cargo    = "cargo"
	Gem      = "gem"
	Composer = "composer"
	Maven    = "maven"
	NuGet    = "nuget"
)

// Dependency is a package that a manifest declares or a lock file fixes.
type Dependency struct {
	Name string
	// Version is the version or the range as it is written; "" for any.
	Version string
	// Dev says that the project needs it only for its own development, Optional that an installation may go without it,
	// Indirect that the manifest has it for another dependency.
	Dev, Optional, Indirect bool
	// Deprecated is the notice that a lock file has about it.
	Deprecated string
	// Engine is the version of its language or runtime that a lock file says it needs, such as ">=20".
	Engine string
	// Line is its line in the file, 0 if that is unknown.
	Line int
}

// Manifest is one read file.
type Manifest struct {
	Path      string // as given
	Ecosystem string
	// Lock says that the file fixes versions, and declares nothing.
	Lock bool
	// Name is the name of the project itself.
	Name string
	// Engine is the version of the language or runtime that the project is for, as it is written: that of Go, node, Python,
	// Rust or PHP.
	Engine string
	// Deprecated is what the file says about the project itself, Retracted are the versions that it takes back; both are of
	// go.mod only.
	Deprecated string
	Retracted  []Retraction
	// Dependencies are in the order of the file. A lock file may have several versions of one name.
	Dependencies []Dependency
	// Scripts are the named commands of package.json and composer.json.
	Scripts map[string]string
	// Manager is the package manager that package.json names, without its version, such as pnpm.
	Manager string
}

// Retraction is a range of versions that a module's authors took back.
type Retraction struct{ Low, High, Why string }

// Normal is the form of a name by which an ecosystem compares names.
func Normal(ecosystem, name string) string {
	switch ecosystem {
	case PyPI:
		return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' }), "-")
	case Composer, NuGet:
		return strings.ToLower(name)
	case Cargo:
		return strings.ReplaceAll(name, "_", "-")
	}
	return name
}

// add appends a dependency; one without a name is nothing.
func (m *Manifest) add(d Dependency) {
	if d.Name != "" {
		m.Dependencies = append(m.Dependencies, d)
	}
}

// inOrder sorts the dependencies that came from a table without an order by their line, then by name.
func (m *Manifest) inOrder() {
	slices.SortStableFunc(m.Dependencies, func(a, b Dependency) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
}

// lines finds the lines on which keys stand.
type lines struct {
	text []string
}

func linesOf(text []byte) lines { return lines{strings.Split(string(text), "\n")} }

// find returns the first line after a line, counted from 1, that begins with a key, in quotation marks or not; 0 without such a line.
func (l lines) find(key string, after int) int {
	for i := max(after, 0); i < len(l.text); i++ {
		line := strings.TrimLeft(l.text[i], " \t[\"'")
		rest, ok := strings.CutPrefix(line, key)
		if ok && (rest == "" || strings.IndexByte("\"' \t=:.<>!~;,[(@]\r", rest[0]) >= 0) {
			return i + 1
		}
	}
	for i := max(after-1, 0); i < len(l.text) && key != ""; i++ { // in a list on one line
		if strings.Contains(l.text[i], `"`+key) || strings.Contains(l.text[i], "'"+key) {
			return i + 1
		}
	}
	return 0
}

// section returns the first line of a TOML table, or of a key with a table or a list, whose dotted name is given; 0 without one.
func (l lines) section(name string) int {
	for i, line := range l.text {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "["+name+"]") || strings.HasPrefix(line, "["+name+".") {
			return i + 1
		}
	}
	return 0
}

// member is a member of a JSON object.
type member struct {
	key   string
	value json.RawMessage
	at    int // the offset of its key's end
}

// members are those of a JSON object in their order; nil for any other value.
func members(text []byte, from int) (out []member) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return out
		}
		at := from + int(d.InputOffset())
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return out
		}
		out = append(out, member{key, v, at})
	}
	return out
}

// below are the members of a member that is an object, with their lines in the whole text.
func (m member) below(text []byte) []member {
	end := m.at + bytes.Index(text[m.at:], m.value)
	return members(m.value, end)
}

func lineAt(text []byte, at int) int { return 1 + bytes.Count(text[:min(at, len(text))], []byte("\n")) }

// text is the value of a JSON text, "" of anything else.
func (m member) text() (s string) {
	if json.Unmarshal(m.value, &s) != nil {
		return ""
	}
	return s
}

// checkJSON returns the error of a JSON text with its line.
func checkJSON(text []byte) error {
	var v map[string]json.RawMessage
	err := json.Unmarshal(text, &v)
	if s, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // as encoding/json returns it
		return fmt.Errorf("line %d: %w", lineAt(text, int(s.Offset)), err)
	}
	return err
}

// decodeTOML reads TOML, with the line in its errors.
func decodeTOML(text []byte, to any) error {
	err := toml.Unmarshal(text, to)
	if d, ok := err.(*toml.DecodeError); ok { //nolint:errorlint // as go-toml returns it
		row, _ := d.Position()
		return fmt.Errorf("line %d: %w", row, err)
	}
	return err
}
