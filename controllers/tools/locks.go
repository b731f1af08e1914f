package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/schemas"
)

// A lock file says which content each dependency has, and where it comes from. Other versions are the daily work; the same version with another
// content, or a dependency from elsewhere, is a replaced one: perhaps one of the tools that check.

// locked is one version of a dependency in a lock file.
type locked struct {
	name, version string
	// from are where it comes from: the registry, the server, the repository, or the folder.
	from []string
	// sums are the checksums of its files by their names; "" where there is one only.
	sums map[string]string
}

// lockReaders read lock files, by name.
var lockReaders = map[string]func([]byte) ([]locked, error){"go.sum": lockedInGoSum, "package-lock.json": lockedByNPM, "npm-shrinkwrap.json": lockedByNPM,
	"Cargo.lock": lockedInTOML, "poetry.lock": lockedInTOML, "uv.lock": lockedInTOML, "yarn.lock": lockedByYarn, "pnpm-lock.yaml": lockedByPnpm,
	"composer.lock": lockedByComposer, "Gemfile.lock": lockedByBundler, "Pipfile.lock": lockedByPipenv,
	"bun.lock": lockedByBun, "packages.lock.json": lockedByNuGet}

// lockReader is what reads a lock file; nil for another file.
func lockReader(file string) func([]byte) ([]locked, error) {
	if read := lockReaders[path.Base(file)]; read != nil {
		return read
	}
	if manifests.IsRequirements(file) {
		return lockedByPip
	}
	return declaredReader(file)
}

// binaryLocks are lock files that nobody can read.
var binaryLocks = []string{"bun.lockb"}

// replaced says which dependencies a change of a lock file replaces.
func replaced(file string, before, after []byte) []string {
	read := lockReader(file)
	if read == nil || len(before) == 0 || len(after) == 0 {
		return nil
	}
	was, err := read(before)
	if err != nil {
		return nil // nothing could be installed by it
	}
	is, err := read(after)
	if err != nil && declaredReader(file) != nil {
		return nil // [differs] says so
	}
	if err != nil {
		return []string{fmt.Sprintf("changes %s: %s", file, unparsed)}
	}
	versions, sources, all := map[string]*locked{}, map[string][]string{}, []string{}
	for i := range was {
		l := &was[i]
		versions[l.name+" "+l.version] = l
		sources[l.name] = append(sources[l.name], l.from...)
		all = append(all, l.from...)
	}
	var content, elsewhere []string
	for i := range is {
		l := &is[i]
		known, isKnown := sources[l.name]
		if !isKnown {
			known = all
		}
		old := versions[l.name+" "+l.version]
		switch {
		case len(was) > 0 && slices.ContainsFunc(l.from, func(from string) bool { return !slices.Contains(known, from) }):
			elsewhere = append(elsewhere, strings.TrimSpace(l.name+" "+l.version))
		case old != nil && differ(old.sums, l.sums):
			content = append(content, l.name+" "+l.version)
		}
	}
	var out []string
	if len(content) > 0 {
		out = append(out, fmt.Sprintf("has other content of %s in %s", shortened(content), file))
	}
	if len(elsewhere) > 0 {
		out = append(out, fmt.Sprintf("has %s come from elsewhere in %s", shortened(elsewhere), file))
	}
	return out
}

// shortened lists names once, in order.
func shortened(names []string) string {
	slices.Sort(names)
	return schemas.Shorten(slices.Compact(names), 3)
}

// differ reports whether files of one version have other checksums, or none any more. Further files may have been published.
func differ(was, is map[string]string) bool {
	same := 0
	for name, sum := range was {
		now, there := is[name]
		if there && now != sum {
			return true
		}
		if there {
			same++
		}
	}
	return len(was) > 0 && same == 0
}

// lockedInGoSum are the modules of a go.sum.
func lockedInGoSum(text []byte) (out []locked, _ error) {
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(line); len(w) == 3 {
			out = append(out, locked{name: w[0], version: w[1], sums: map[string]string{"": w[2]}})
		}
	}
	return out, nil
}

// npmPackage is a package in a lock file of npm.
type npmPackage struct {
	Name, Version, Resolved, Integrity string
	Dependencies                       json.RawMessage // packages in the first version of the format, ranges in later ones
}

// lockedByNPM are the packages of a lock file of npm, by the folder in which they are installed.
func lockedByNPM(text []byte) (out []locked, _ error) {
	var file struct {
		Packages     map[string]npmPackage
		Dependencies map[string]npmPackage
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for folder, p := range file.Packages {
		if strings.Contains("/"+folder, "/node_modules/") {
			out = append(out, p.locked(folder))
		}
	}
	if file.Packages == nil {
		out = nested(out, "node_modules/", file.Dependencies)
	}
	return out, nil
}

// nested adds the packages of a lock file of npm's first version.
func nested(out []locked, below string, all map[string]npmPackage) []locked {
	for name, p := range all {
		out = append(out, p.locked(below+name))
		var more map[string]npmPackage
		if json.Unmarshal(p.Dependencies, &more) == nil {
			out = nested(out, below+name+"/node_modules/", more)
		}
	}
	return out
}

// locked is the package that is installed in a folder.
func (p *npmPackage) locked(folder string) locked {
	l := locked{name: strings.TrimPrefix(folder, "node_modules/"), version: p.Version}
	if p.Integrity != "" {
		l.sums = map[string]string{"": p.Integrity}
	}
	_, name, _ := cutLast(folder, "node_modules/")
	from := origin(p.Resolved)
	if at, _, ok := strings.Cut(p.Resolved, "/-/"); ok {
		if at, err := url.PathUnescape(at); err != nil || !strings.HasSuffix(at, "/"+name) {
			from = at // under the name of another one
		}
	} else if from == "" {
		from = inProject(p.Resolved)
	}
	if p.Name != "" && p.Name != name {
		from += " as " + p.Name
	}
	if from != "" {
		l.from = []string{from}
	}
	return l
}

// inProject is a source that is no address: the same for all folders of the project, such as workspaces.
func inProject(source string) string {
	if folder := strings.TrimPrefix(source, "file:"); source == "" || strings.Contains(folder, ":") || strings.Contains("/"+folder, "/../") || path.IsAbs(folder) {
		return source
	}
	return "the project"
}

// cutLast cuts a text around the last place of another one.
func cutLast(text, around string) (before, after string, ok bool) {
	at := strings.LastIndex(text, around)
	if at < 0 {
		return "", text, false
	}
	return text[:at], text[at+len(around):], true
}

// origin is the server of an address; "" of anything else.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// lockedInTOML are the packages in the lock files of Cargo, poetry and uv.
func lockedInTOML(text []byte) (out []locked, _ error) {
	type artifact struct{ File, URL, Hash string }
	var file struct {
		Package []struct {
			Name, Version, Checksum string
			Source                  any
			Sdist                   artifact
			Wheels, Files           []artifact
		}
		Metadata struct{ Files map[string][]artifact } // of older versions of poetry
	}
	if err := toml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for _, p := range file.Package {
		l := locked{name: p.Name, version: p.Version, from: sourcesOf(p.Source), sums: map[string]string{}}
		if p.Checksum != "" {
			l.sums[""] = p.Checksum
		}
		for _, a := range slices.Concat([]artifact{p.Sdist}, p.Wheels, p.Files, file.Metadata.Files[p.Name]) {
			if a.Hash != "" {
				l.sums[a.File+path.Base(a.URL)] = a.Hash
			}
			if from := origin(a.URL); from != "" {
				l.from = append(l.from, from)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// sourcesOf are where a package comes from, by its source in a lock file; the commit of a repository does not count. Without one it is the
// default registry, or the project itself.
func sourcesOf(source any) (out []string) {
	switch s := source.(type) {
	case string:
		s, _, _ = strings.Cut(s, "#")
		s, _, _ = strings.Cut(s, "?")
		return []string{s}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(s)) {
			if key != "reference" && key != "resolved_reference" {
				value, _, _ := strings.Cut(fmt.Sprint(s[key]), "#")
				value, _, _ = strings.Cut(value, "?")
				if key != "type" {
					value = inProject(value)
				}
				out = append(out, key+" "+value)
			}
		}
		return []string{strings.Join(out, ", ")}
	}
	return []string{""}
}
