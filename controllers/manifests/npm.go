package manifests

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readPackageJSON reads what a package of node needs. A package that is also among the peers is listed once.
func readPackageJSON(m *Manifest, text []byte) error {
	if err := checkJSON(text); err != nil {
		return err
	}
	for _, f := range members(text, 0) {
		switch f.key {
		case "name":
			m.Name = f.text()
		case "engines":
			var e map[string]string
			_ = json.Unmarshal(f.value, &e) // what is no table of texts declares nothing
			m.Engine = e["node"]
		case "packageManager":
			m.Manager, _, _ = strings.Cut(f.text(), "@")
		case "scripts":
			_ = json.Unmarshal(f.value, &m.Scripts)
		case "dependencies", "devDependencies", "peerDependencies", "optionalDependencies":
			for _, d := range f.below(text) {
				m.add(Dependency{Name: d.key, Version: d.text(), Line: lineAt(text, d.at), Dev: f.key == "devDependencies",
					Optional: f.key == "optionalDependencies" || f.key == "peerDependencies"})
			}
		}
	}
	m.once()
	return nil
}

// once keeps one entry for each name, preferably one that is neither for development nor optional.
func (m *Manifest) once() {
	weight := func(d *Dependency) (n int) {
		if d.Dev {
			n++
		}
		if d.Optional {
			n += 2
		}
		return n
	}
	at := map[string]int{}
	out := m.Dependencies[:0]
	for _, d := range m.Dependencies {
		if i, there := at[d.Name]; !there {
			at[d.Name] = len(out)
			out = append(out, d)
		} else if weight(&d) < weight(&out[i]) {
			out[i] = d
		}
	}
	m.Dependencies = out
}

// readPackageLock reads the lock file of npm, of version 1 to 3. Of version 2 and 3 only what is installed for the root itself or
// shared counts, not what is nested in a package that needs another version.
func readPackageLock(m *Manifest, text []byte) error {
	type locked struct {
		Version    string          `json:"version"`
		Dev        bool            `json:"dev"`
		Optional   bool            `json:"optional"`
		Deprecated string          `json:"deprecated"`
		Engines    json.RawMessage `json:"engines"` // a list in very old packages
	}
	var f struct {
		Name         string            `json:"name"`
		Packages     map[string]locked `json:"packages"`
		Dependencies map[string]locked `json:"dependencies"`
	}
	if err := checkJSON(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	m.Name = f.Name
	add := func(name string, l locked) {
		var engines struct {
			Node string `json:"node"`
		}
		_ = json.Unmarshal(l.Engines, &engines)
		m.add(Dependency{Name: name, Version: l.Version, Dev: l.Dev, Optional: l.Optional,
			Deprecated: l.Deprecated, Engine: engines.Node})
	}
	for p, l := range f.Packages {
		if name, ok := strings.CutPrefix(p, "node_modules/"); ok && !strings.Contains(name, "node_modules/") {
			add(name, l)
		}
	}
	if f.Packages == nil {
		for name, l := range f.Dependencies {
			add(name, l)
		}
	}
	m.inOrder()
	return nil
}

// readPnpmLock reads the packages of a lock file of pnpm; what is in parentheses after a version are peers.
func readPnpmLock(m *Manifest, text []byte) error {
	var f struct {
		Packages map[string]struct {
			Deprecated string            `yaml:"deprecated"`
			Engines    map[string]string `yaml:"engines"`
			Dev        bool              `yaml:"dev"`
		} `yaml:"packages"`
	}
	if err := yaml.Unmarshal(text, &f); err != nil {
		return err
	}
	for id, p := range f.Packages {
		id, _, _ = strings.Cut(strings.TrimPrefix(id, "/"), "(")
		at := strings.LastIndexByte(id, '@')
		if at <= 0 {
			continue
		}
		m.add(Dependency{Name: id[:at], Version: id[at+1:], Dev: p.Dev, Deprecated: p.Deprecated, Engine: p.Engines["node"]})
	}
	m.inOrder()
	return nil
}

// readYarnLock reads the lock files of yarn, of its first version and of later ones, which are YAML of the same shape.
func readYarnLock(m *Manifest, text []byte) error {
	name, at := "", 0
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] != ' ':
			first, _, _ := strings.Cut(strings.Trim(line, "\":\r"), ",")
			first = strings.Trim(first, `"`)
			name, at = "", i+1
			if end := strings.LastIndexByte(strings.Split(first, ":")[0], '@'); end > 0 {
				name = first[:end]
			}
		case name != "" && strings.HasPrefix(line, "  version"):
			m.add(Dependency{Name: name, Version: strings.Trim(strings.TrimPrefix(line, "  version"), " :\"\r"), Line: at})
			name = ""
		}
	}
	return nil
}
