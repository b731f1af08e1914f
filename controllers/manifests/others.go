package manifests

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// readCargo reads what a package of Rust needs, for any system, or what the packages of a workspace share.
func readCargo(m *Manifest, text []byte) error {
	var f map[string]any
	if err := decodeTOML(text, &f); err != nil {
		return err
	}
	at := linesOf(text)
	m.Name, _ = table(f, "package")["name"].(string)
	m.Engine, _ = table(f, "package")["rust-version"].(string)
	shared := table(f, "workspace", "dependencies")
	m.crates(shared, false, "workspace.dependencies", at, nil)
	read := func(of map[string]any, prefix string) {
		m.crates(table(of, "dependencies"), false, prefix+"dependencies", at, shared)
		m.crates(table(of, "dev-dependencies"), true, prefix+"dev-dependencies", at, shared)
		m.crates(table(of, "build-dependencies"), true, prefix+"build-dependencies", at, shared)
	}
	read(f, "")
	for name := range table(f, "target") {
		read(table(f, "target", name), "target."+name+".")
	}
	m.inOrder()
	m.once()
	return nil
}

// crates adds the dependencies of one table. One that was renamed has its name in package, one of the workspace its version there.
func (m *Manifest) crates(of map[string]any, dev bool, section string, at lines, shared map[string]any) {
	for name, v := range of {
		line := at.find(name, at.section(section))
		if t := table(of, name); t != nil {
			if inherits, _ := t["workspace"].(bool); inherits && shared[name] != nil {
				v = shared[name]
			}
			if real, ok := t["package"].(string); ok {
				name = real
			}
		}
		version, optional := tomlVersion(v)
		m.add(Dependency{Name: name, Version: version, Dev: dev, Optional: optional, Line: line})
	}
}

var (
	gemLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*gem[ (]\s*["']([^"']+)["']\s*(?:,\s*["']([^"']+)["'])?(.*)`)
	})
	rubyLine  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*ruby[ (]\s*["']([^"']+)["']`) })
	groupLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*group[ (](.*)\bdo\b`) })
	blockLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bdo\s*(?:\|[^|]*\|)?\s*$|^\s*(?:if|unless|case)\b`) })
	lockedGem = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^    ([^ ]+) \(([^)]+)\)`) })
)

// readGemfile reads the lines with gem of a program of Ruby, and the blocks of groups.
func readGemfile(m *Manifest, text []byte) error {
	var blocks []bool // whether each open block is of a group for development
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, " #")
		if g := gemLine().FindStringSubmatch(line); g != nil {
			dev := slices.Contains(blocks, true) || strings.Contains(g[3], "group") && isDevWords(g[3])
			m.add(Dependency{Name: g[1], Version: g[2], Dev: dev, Line: i + 1})
		} else if r := rubyLine().FindStringSubmatch(line); r != nil {
			m.Engine = r[1]
		}
		switch g := groupLine().FindStringSubmatch(line); {
		case g != nil:
			blocks = append(blocks, isDevWords(g[1]))
		case blockLine().MatchString(line):
			blocks = append(blocks, false)
		case strings.TrimSpace(line) == "end" && len(blocks) > 0:
			blocks = blocks[:len(blocks)-1]
		}
	}
	return nil
}

func isDevWords(s string) bool {
	return strings.Contains(s, "development") || strings.Contains(s, "test")
}

func readGemfileLock(m *Manifest, text []byte) error {
	for i, line := range strings.Split(string(text), "\n") {
		if g := lockedGem().FindStringSubmatch(line); g != nil {
			m.add(Dependency{Name: g[1], Version: g[2], Line: i + 1})
		}
	}
	return nil
}

// readComposer reads what a package of PHP needs; php itself and its extensions are no packages.
func readComposer(m *Manifest, text []byte) error {
	if err := checkJSON(text); err != nil {
		return err
	}
	for _, f := range members(text, 0) {
		switch f.key {
		case "name":
			m.Name = f.text()
		case "scripts":
			m.Scripts = map[string]string{}
			for _, s := range f.below(text) {
				m.Scripts[s.key] = s.text()
			}
		case "require", "require-dev":
			for _, d := range f.below(text) {
				if d.key == "php" {
					m.Engine = d.text()
				} else if strings.Contains(d.key, "/") {
					m.add(Dependency{Name: d.key, Version: d.text(), Dev: f.key == "require-dev", Line: lineAt(text, d.at)})
				}
			}
		}
	}
	return nil
}

func readComposerLock(m *Manifest, text []byte) error {
	type locked struct {
		Name      string            `json:"name"`
		Version   string            `json:"version"`
		Require   map[string]string `json:"require"`
		Abandoned json.RawMessage   `json:"abandoned"` // true, or the name of what replaces it
	}
	var f struct {
		Packages []locked `json:"packages"`
		Dev      []locked `json:"packages-dev"`
	}
	if err := checkJSON(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	for i, p := range append(slices.Clone(f.Packages), f.Dev...) {
		d := Dependency{Name: p.Name, Version: p.Version, Dev: i >= len(f.Packages), Engine: p.Require["php"]}
		var by string
		if json.Unmarshal(p.Abandoned, &by) == nil && by != "" {
			d.Deprecated = "abandoned; use " + by
		} else if string(p.Abandoned) == "true" {
			d.Deprecated = "abandoned"
		}
		m.add(d)
	}
	return nil
}

// readPOM reads the dependencies of a project of Maven. Versions from properties and from dependencyManagement of the same file are
// filled in; those of a parent in another file are not known.
func readPOM(m *Manifest, text []byte) error {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = true
	properties, managed := map[string]string{}, map[string]string{}
	var path []string
	var cur map[string]string
	line := 0
	var own [2]string
	for {
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if path = append(path, t.Name.Local); isDependency(path) {
				line, _ = d.InputPos()
				cur = map[string]string{}
			}
		case xml.CharData:
			value := strings.TrimSpace(string(t))
			if value == "" || len(path) == 0 {
				break
			}
			name := path[len(path)-1]
			switch {
			case cur != nil && isDependency(path[:len(path)-1]):
				cur[name] = value
			case len(path) == 3 && path[1] == "properties":
				properties[name] = value
			case len(path) == 2 && name == "groupId":
				own[0] = value
			case len(path) == 2 && name == "artifactId":
				own[1] = value
			case len(path) == 2 && name == "version":
				properties["project.version"] = value
			}
		case xml.EndElement:
			if cur != nil && isDependency(path) {
				name := cur["groupId"] + ":" + cur["artifactId"]
				if slices.Contains(path, "dependencyManagement") {
					managed[name] = cur["version"]
				} else {
					m.add(Dependency{Name: name, Version: cur["version"], Dev: cur["scope"] == "test", Optional: cur["optional"] == "true", Line: line})
				}
				cur = nil
			}
			path = path[:len(path)-1]
		}
	}
	m.Name = strings.TrimPrefix(own[0]+":"+own[1], ":")
	m.Engine = properties["maven.compiler.release"]
	for i := range m.Dependencies {
		dep := &m.Dependencies[i]
		if dep.Version == "" {
			dep.Version = managed[dep.Name]
		}
		if key, ok := strings.CutPrefix(dep.Version, "${"); ok {
			dep.Version = properties[strings.TrimSuffix(key, "}")]
		}
	}
	return nil
}

// isDependency reports whether a path of elements is that of a dependency of the project, or of its dependency management.
func isDependency(path []string) bool {
	n := len(path)
	return n >= 3 && path[n-1] == "dependency" && path[n-2] == "dependencies" && !slices.Contains(path, "plugin") && !slices.Contains(path, "profile")
}

var gradleLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(\w*(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly|[aA]nnotationProcessor|kapt))\b[\s(]*(?:platform\()?["']([^"':]+):([^"':]+)(?::([^"':@]+))?`)
})

// readGradle reads the dependencies that a script of Gradle writes as literal coordinates. Catalogues of versions, variables and plugins
// are not followed.
func readGradle(m *Manifest, text []byte) error {
	for i, line := range strings.Split(string(text), "\n") {
		if g := gradleLine().FindStringSubmatch(line); g != nil {
			m.add(Dependency{Name: fmt.Sprintf("%s:%s", g[2], g[3]), Version: g[4], Dev: strings.HasPrefix(g[1], "test"), Line: i + 1})
		}
	}
	return nil
}

// readDotnetTools reads the tools of .NET that a project has for itself.
func readDotnetTools(m *Manifest, text []byte) error {
	if err := checkJSON(text); err != nil {
		return err
	}
	for _, f := range members(text, 0) {
		if f.key != "tools" {
			continue
		}
		for _, d := range f.below(text) {
			var tool struct{ Version string }
			if json.Unmarshal(d.value, &tool) == nil {
				m.add(Dependency{Name: d.key, Version: tool.Version, Line: lineAt(text, d.at), Dev: true})
			}
		}
	}
	return nil
}
