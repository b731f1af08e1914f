package manifests

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// requirement matches a dependency of Python: its name, and what follows its extras.
var requirement = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*\(?([^;#)]*)\)?`)
})

// parseRequirement reads one dependency in the form of PEP 508; its name is "" if it is none.
func parseRequirement(text string) Dependency {
	found := requirement().FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return Dependency{}
	}
	v := strings.TrimSpace(found[2])
	if v != "" && !strings.ContainsAny(v[:1], "<>=!~@") {
		return Dependency{}
	}
	return Dependency{Name: found[1], Version: v}
}

// readRequirements reads a file for pip. Options, other files and addresses are skipped. The name of the file says whether it is
// for development.
func readRequirements(m *Manifest, text []byte) error {
	dev := isDevGroup(strings.TrimSuffix(path.Base(m.Path), ".txt"))
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '-' {
			continue
		}
		line, _, _ = strings.Cut(line, " --")
		d := parseRequirement(strings.TrimSuffix(line, "\\"))
		d.Dev, d.Line = dev, i+1
		m.add(d)
	}
	return nil
}

// isDevGroup reports whether the name of a group of dependencies says that they are for development.
func isDevGroup(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "dev", "development", "test", "tests", "testing", "lint", "linting", "typing", "types", "doc", "docs", "ci", "build", "style", "check":
			return true
		}
		return false
	})
}

// pyproject has the known parts of pyproject.toml.
type pyproject struct {
	Project struct {
		Name         string              `toml:"name"`
		Requires     string              `toml:"requires-python"`
		Dependencies []string            `toml:"dependencies"`
		Optional     map[string][]string `toml:"optional-dependencies"`
	} `toml:"project"`
	Groups map[string][]any `toml:"dependency-groups"`
	Tool   map[string]any   `toml:"tool"`
}

// readPyproject reads the table project (PEP 621), the groups of PEP 735, and the tables of poetry, uv and pdm.
func readPyproject(m *Manifest, text []byte) error {
	var f pyproject
	if err := decodeTOML(text, &f); err != nil {
		return err
	}
	at := linesOf(text)
	m.Name, m.Engine = f.Project.Name, f.Project.Requires
	add := func(text string, dev, optional bool, after int) {
		d := parseRequirement(text)
		d.Dev, d.Optional, d.Line = dev, optional, at.find(d.Name, after)
		m.add(d)
	}
	for _, t := range f.Project.Dependencies {
		add(t, false, false, at.section("project"))
	}
	for _, g := range slices.Sorted(maps.Keys(f.Project.Optional)) {
		for _, t := range f.Project.Optional[g] {
			add(t, isDevGroup(g), true, at.section("project.optional-dependencies"))
		}
	}
	for _, g := range slices.Sorted(maps.Keys(f.Groups)) {
		for _, v := range f.Groups[g] {
			if t, ok := v.(string); ok { // else a table that includes another group
				add(t, true, false, at.section("dependency-groups"))
			}
		}
	}
	for _, t := range texts(table(f.Tool, "uv")["dev-dependencies"]) {
		add(t, true, false, at.section("tool.uv"))
	}
	pdm := table(f.Tool, "pdm", "dev-dependencies")
	for _, g := range slices.Sorted(maps.Keys(pdm)) {
		for _, t := range texts(pdm[g]) {
			add(t, true, false, at.section("tool.pdm"))
		}
	}
	m.poetry(table(f.Tool, "poetry"), at)
	m.inOrder()
	return nil
}

// poetry reads the tables of poetry, in which the language is a dependency, too.
func (m *Manifest) poetry(poetry map[string]any, at lines) {
	if name, ok := poetry["name"].(string); ok && m.Name == "" {
		m.Name = name
	}
	add := func(of map[string]any, dev bool, section string) {
		for name, v := range of {
			version, optional := tomlVersion(v)
			if name == "python" {
				m.Engine = version
				continue
			}
			m.add(Dependency{Name: name, Version: version, Dev: dev, Optional: optional, Line: at.find(name, at.section(section))})
		}
	}
	add(table(poetry, "dependencies"), false, "tool.poetry.dependencies")
	add(table(poetry, "dev-dependencies"), true, "tool.poetry.dev-dependencies")
	for name := range table(poetry, "group") {
		add(table(poetry, "group", name, "dependencies"), true, "tool.poetry.group."+name)
	}
}

// table returns the table below keys, nil for a missing one.
func table(in map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		in, _ = in[k].(map[string]any)
	}
	return in
}

// texts are the texts in a list.
func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		if t, ok := e.(string); ok {
			out = append(out, t)
		}
	}
	return out
}

// tomlVersion reads the value of a dependency in the tables of Cargo and poetry: a version, or a table with one.
func tomlVersion(v any) (version string, optional bool) {
	switch v := v.(type) {
	case string:
		return v, false
	case map[string]any:
		version, _ = v["version"].(string)
		optional, _ = v["optional"].(bool)
		return version, optional
	case []any: // poetry: several, for different systems
		if len(v) > 0 {
			return tomlVersion(v[0])
		}
	}
	return "", false
}

// readTOMLLock reads the lock files of uv, poetry and Cargo: a list of packages. Those without a source are the project's own.
func readTOMLLock(m *Manifest, text []byte) error {
	var f struct {
		Package []struct {
			Name    string `toml:"name"`
			Version string `toml:"version"`
			Python  string `toml:"python-versions"`
		} `toml:"package"`
	}
	if err := decodeTOML(text, &f); err != nil {
		return err
	}
	for _, p := range f.Package {
		m.add(Dependency{Name: p.Name, Version: p.Version, Engine: p.Python})
	}
	return nil
}
