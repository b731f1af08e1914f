// Package deps relates what the manifests of a project declare to what its source code imports. It reads no files. Imports of Go are
// found by go/parser; those of other languages line by line.
package deps

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
)

// The states of a dependency; "" where a language does not say which package an import is of.
const (
	used       = "used"
	unused     = "unused"     // declared for more than development, and imported nowhere
	undeclared = "undeclared" // imported, and in no manifest
)

// API is a name of a dependency that the code uses.
type API struct {
	Name string `json:"name"`
	Uses int    `json:"uses"`
}

// Dependency is a package that the project depends on.
type Dependency struct {
	Name       string   `json:"name"`
	Ecosystem  string   `json:"ecosystem"`
	Version    string   `json:"version,omitempty"` // as declared
	Locked     string   `json:"locked,omitempty"`  // as the lock file fixes it
	ImportPath string   `json:"importPath,omitempty"`
	CommonAPIs []API    `json:"commonApis"` // the most used first, at most 10
	UsedIn     []string `json:"usedIn"`     // file:line of imports
	DevOnly    bool     `json:"devOnly"`
	Direct     bool     `json:"direct"`
	Deprecated string   `json:"deprecated,omitempty"` // what a local file says about that
	Manifest   string   `json:"manifest,omitempty"`   // path:line
	State      string   `json:"state,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`

	dir string // of the manifest
	src manifests.Dependency
	api map[string]int
	of  map[string]map[string]bool // the imported packages, and the names of each that are used; of Go
}

// Installed describes the installed versions of dependencies by local files.
type Installed interface {
	// About returns the notice that a dependency is deprecated, and the version of the language that it needs; "" for what is not known.
	About(ecosystem, name, version string) (deprecated, engine string)
	// DeprecatedNames returns the notices of the exported names of one of its packages that are deprecated.
	DeprecatedNames(ecosystem, name, version, pkg string) map[string]string
}

// Track relates manifests and lock files to source files. installed may be nil.
func Track(all []*manifests.Manifest, files []File, installed Installed) []*Dependency {
	t := &tracker{own: map[string]bool{}, undeclared: map[string]*Dependency{}}
	for _, m := range all {
		if !m.Lock {
			t.own[m.Ecosystem+" "+m.Name] = true
			t.declare(m)
		}
	}
	for _, m := range all {
		if m.Lock {
			t.lock(m)
		}
	}
	for _, f := range files {
		t.folders(f.Path)
	}
	for _, f := range files {
		for _, i := range importsOf(f) {
			t.use(f.Path, i)
		}
	}
	engines := map[string]string{}
	for _, m := range all {
		if !m.Lock && m.Engine != "" {
			engines[m.Ecosystem+" "+path.Dir(m.Path)] = m.Engine
		}
	}
	for _, d := range t.list {
		d.finish(engines[d.Ecosystem+" "+d.dir], t.meant(d), installed)
	}
	slices.SortStableFunc(t.list, func(a, b *Dependency) int {
		return cmp.Or(strings.Compare(a.Ecosystem, b.Ecosystem), strings.Compare(a.Name, b.Name), strings.Compare(a.Manifest, b.Manifest))
	})
	return t.list
}

type tracker struct {
	list       []*Dependency
	own        map[string]bool // the project's packages, by ecosystem and name, and its folders and modules for Python
	undeclared map[string]*Dependency
}

func (t *tracker) declare(m *manifests.Manifest) {
	for _, d := range m.Dependencies {
		t.list = append(t.list, &Dependency{Name: d.Name, Ecosystem: m.Ecosystem, Version: d.Version, ImportPath: importName(m.Ecosystem, d.Name),
			DevOnly: d.Dev, Direct: !d.Indirect, Deprecated: d.Deprecated, Manifest: fmt.Sprintf("%s:%d", m.Path, max(d.Line, 1)),
			dir: path.Dir(m.Path), src: d, api: map[string]int{}, of: map[string]map[string]bool{}, UsedIn: []string{}, CommonAPIs: []API{}})
	}
}

// lock notes the versions of a lock file for the manifests in its folder and below.
func (t *tracker) lock(m *manifests.Manifest) {
	by := map[string]manifests.Dependency{}
	for _, d := range m.Dependencies {
		by[manifests.Normal(m.Ecosystem, d.Name)] = d
	}
	for _, d := range t.list {
		l, ok := by[manifests.Normal(m.Ecosystem, d.Name)]
		if d.Ecosystem != m.Ecosystem || !ok || !treepath.Below(d.dir, path.Dir(m.Path)) {
			continue
		}
		if d.Ecosystem == manifests.Go {
			l.Version = d.Version // go.sum has several; go.mod says which
		}
		d.Locked, d.Deprecated, d.src.Engine = l.Version, cmp.Or(d.Deprecated, l.Deprecated), l.Engine
	}
}

// folders notes the modules of Python that a file makes importable.
func (t *tracker) folders(p string) {
	if strings.HasSuffix(p, ".py") {
		for part := range strings.SplitSeq(strings.TrimSuffix(p, ".py"), "/") {
			t.own["pypi "+part] = true
		}
	}
}

// use finds the dependency that an import is of: that of the nearest manifest.
func (t *tracker) use(file string, i imported) {
	var best *Dependency
	for _, d := range t.list {
		if d.Ecosystem != i.ecosystem || !d.provides(i.path) || !treepath.Below(file, d.dir) {
			continue
		}
		if best == nil || len(d.dir) > len(best.dir) || len(d.ImportPath) > len(best.ImportPath) {
			best = d
		}
	}
	if best == nil {
		if best = t.unknown(i); best == nil {
			return
		}
	}
	best.UsedIn = append(best.UsedIn, fmt.Sprintf("%s:%d", file, i.line))
	for name, n := range i.apis {
		best.api[name] += n
		if _, of, ok := strings.Cut(name, "."); ok && i.ecosystem == manifests.Go && best.of != nil {
			if best.of[i.path] == nil {
				best.of[i.path] = map[string]bool{}
			}
			best.of[i.path][of] = true
		}
	}
}

// unknown is the dependency of an import that no manifest declares; nil if it is of the project or the language itself, or that cannot
// be known.
func (t *tracker) unknown(i imported) *Dependency {
	name := i.path
	switch i.ecosystem {
	case manifests.Go:
		if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") || t.isOwnModule(name) {
			return nil
		}
	case manifests.NPM, manifests.PyPI:
		if t.own[i.ecosystem+" "+name] || builtIn(i.ecosystem, name) {
			return nil
		}
	default:
		return nil
	}
	if !slices.ContainsFunc(t.list, func(d *Dependency) bool { return d.Ecosystem == i.ecosystem && d.Manifest != "" }) {
		return nil // nothing is declared at all: a script, not a project
	}
	key := i.ecosystem + " " + name
	if t.undeclared[key] == nil {
		d := &Dependency{Name: name, Ecosystem: i.ecosystem, ImportPath: name, Direct: true, State: undeclared, api: map[string]int{}, CommonAPIs: []API{}}
		t.undeclared[key] = d
		t.list = append(t.list, d)
	}
	return t.undeclared[key]
}

func (t *tracker) isOwnModule(p string) bool {
	for ; p != "." && p != "/"; p = path.Dir(p) {
		if t.own["golang "+p] {
			return true
		}
	}
	return false
}

// provides reports whether an import is of the dependency.
func (d *Dependency) provides(p string) bool {
	if d.Manifest == "" {
		return d.ImportPath == p
	}
	sep := map[string]string{manifests.Go: "/", manifests.Maven: ".", manifests.Gem: "/"}[d.Ecosystem]
	return p == d.ImportPath || sep != "" && strings.HasPrefix(p, d.ImportPath+sep)
}

// meant returns the declared dependency whose name is similar to that of an undeclared one; "" if none is.
func (t *tracker) meant(d *Dependency) string {
	var names []string
	for _, other := range t.list {
		if d.State == undeclared && other.Ecosystem == d.Ecosystem && other.Manifest != "" {
			names = append(names, other.ImportPath)
		}
	}
	return schemas.GuessWord(d.Name, names)
}

// finish sums up the uses of a dependency. meant is a declared one with a similar name.
func (d *Dependency) finish(engine, meant string, installed Installed) {
	for name, n := range d.api {
		d.CommonAPIs = append(d.CommonAPIs, API{name, n})
	}
	slices.SortFunc(d.CommonAPIs, func(a, b API) int { return cmp.Or(b.Uses-a.Uses, strings.Compare(a.Name, b.Name)) })
	d.CommonAPIs = d.CommonAPIs[:min(len(d.CommonAPIs), 10)]
	if d.State == undeclared {
		w := "it is imported, and in no manifest: declare it"
		if meant != "" {
			w += ", or import " + meant + ", which is declared"
		}
		d.Warnings = append(d.Warnings, w)
		return
	}
	needs, old := d.src.Engine, []string(nil)
	if installed != nil {
		version := cmp.Or(d.Locked, d.Version)
		deprecated, other := installed.About(d.Ecosystem, d.Name, version)
		d.Deprecated, needs = cmp.Or(d.Deprecated, deprecated), cmp.Or(needs, other)
		for pkg, names := range d.of {
			for name, why := range installed.DeprecatedNames(d.Ecosystem, d.Name, version, pkg) {
				if names[name] {
					old = append(old, fmt.Sprintf("%s.%s is deprecated: %s", path.Base(pkg), name, why))
				}
			}
		}
	}
	slices.Sort(old)
	d.Warnings = append(d.Warnings, old[:min(len(old), 10)]...)
	switch {
	case len(d.UsedIn) > 0:
		d.State = used
	case d.Ecosystem != manifests.Maven && d.Ecosystem != manifests.Composer && d.Direct && !d.DevOnly && !d.src.Optional:
		d.State = unused
		d.Warnings = append(d.Warnings, "no import of it was found")
	}
	if d.Deprecated != "" {
		d.Warnings = append(d.Warnings, "deprecated: "+d.Deprecated)
	}
	if engine != "" && needs != "" && later(needs, engine) {
		d.Warnings = append(d.Warnings, fmt.Sprintf("it needs %s, and the project is for %s", needs, engine))
	}
}

var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+(?:\.\d+)*`) })

// later reports whether the least version of one range is later than that of another. Of ranges with several parts the first counts.
func later(a, b string) bool {
	x, y := strings.Split(number().FindString(a), "."), strings.Split(number().FindString(b), ".")
	for i := range max(len(x), len(y)) {
		n, m := 0, 0
		if i < len(x) {
			n, _ = strconv.Atoi(x[i])
		}
		if i < len(y) {
			m, _ = strconv.Atoi(y[i])
		}
		if n != m {
			return n > m
		}
	}
	return false
}
