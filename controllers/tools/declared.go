package tools

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"reconcile.dev/reconcile/controllers/manifests"
)

// declaredReader reads where the dependencies come from that a manifest declares; nil for another file. The project itself and its registry are always
// among them: a new dependency may come from there.
func declaredReader(file string) func([]byte) ([]locked, error) {
	read := map[string]func([]byte, func(string) string) (map[string]string, error){"package.json": declaredByNPM, "Cargo.toml": declaredInTOML, "pyproject.toml": declaredInTOML}[path.Base(file)]
	if read == nil {
		return nil
	}
	const project = "the project"
	place := func(source string) string {
		folder := path.Join(path.Dir(file), source)
		if path.IsAbs(source) || folder == ".." || strings.HasPrefix(folder, "../") {
			return source
		}
		return project
	}
	return func(text []byte) ([]locked, error) {
		from, err := read(text, place)
		out := []locked{{from: []string{"", project}}}
		for name, source := range from {
			out = append(out, locked{name: name, from: []string{source}})
		}
		return out, err
	}
}

// shorthand is a repository of GitHub in a package.json.
var shorthand = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w.-]+/[\w.-]+(#.*)?$`) })

// declaredByNPM are the sources of the dependencies in a package.json; "" for the registry.
func declaredByNPM(text []byte, place func(string) string) (map[string]string, error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, section := range []string{"peerDependencies", "optionalDependencies", "devDependencies", "dependencies"} {
		var all map[string]string
		_ = json.Unmarshal(file[section], &all) // what is no table of texts declares nothing
		for name, wanted := range all {
			protocol, rest, has := strings.Cut(wanted, ":")
			switch {
			case !has && shorthand().MatchString(wanted):
				out[name] = cutCommit(wanted)
			case !has || protocol == "workspace" || protocol == "catalog":
				out[name] = ""
			case protocol == "npm":
				real, _ := cutVersion(rest)
				out[name] = "as " + real
			case slices.Contains([]string{"file", "link", "portal"}, protocol):
				out[name] = place(rest)
			default:
				out[name] = cutCommit(wanted)
			}
		}
	}
	return out, nil
}

// declaredInTOML are the sources of the dependencies in a Cargo.toml or pyproject.toml: in tables of dependencies and lists of requirements, wherever they are.
func declaredInTOML(text []byte, place func(string) string) (map[string]string, error) {
	var file map[string]any
	if err := toml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	out := map[string]string{}
	var look func(in map[string]any)
	look = func(in map[string]any) {
		for key, value := range in {
			of, isTable := value.(map[string]any)
			if !isTable {
				addRequirements(out, value)
				continue
			}
			if strings.HasSuffix(key, "dependencies") {
				for name, d := range of {
					addRequirements(out, d) // of a group
					if source := sourceInTable(d, place); source != "" || out[name] == "" {
						out[name] = source
					}
				}
			}
			look(of)
		}
	}
	look(file)
	return out, nil
}

// sourceInTable is where a dependency in a table of Cargo or poetry comes from.
func sourceInTable(dependency any, place func(string) string) string {
	table, _ := dependency.(map[string]any)
	for _, key := range []string{"git", "url", "path", "registry", "source"} {
		if s, ok := table[key].(string); ok {
			if key == "path" {
				return place(s)
			}
			return key + " " + cutCommit(s)
		}
	}
	return ""
}

// addRequirements adds the sources of the requirements of Python in a list.
func addRequirements(to map[string]string, list any) {
	all, _ := list.([]any)
	for _, r := range all {
		if text, ok := r.(string); ok {
			if m := pinned().FindStringSubmatch(text); m != nil && m[3] != "" {
				to[manifests.Normal(manifests.PyPI, m[1])] = cutCommit(m[3])
			}
		}
	}
}
