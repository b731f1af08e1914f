package ops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"reconcile.dev/reconcile/controllers/deps"
	"reconcile.dev/reconcile/controllers/languages"
	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// DepsRequest asks what a project depends on.
type DepsRequest struct {
	Dir   string   // the folder of the caller
	Paths []string // files and folders below it whose imports count; none: Dir
	Name  string   // of a dependency; "": all
	All   bool     // also those that only others need
}

// DepsResult are the dependencies of a project, by ecosystem and name.
type DepsResult struct {
	Root         string             `json:"root"`
	Dependencies []*deps.Dependency `json:"dependencies"`
	// Unread are the manifests that could not be read, with the reason.
	Unread []string `json:"unread,omitempty"`
}

// largestManifest is the size of the largest manifest or lock file that is read, in bytes.
const largestManifest = 64 << 20

// Deps relates the manifests and lock files of a project to its imports. It uses no network and starts no program of the project.
func Deps(ctx context.Context, env Env, q DepsRequest) (r *DepsResult, err error) {
	defer func() { err = typed(err) }()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := env.openProject(ctx, &CheckRequest{Dir: q.Dir, Paths: q.Paths})
	if err != nil {
		return nil, err
	}
	all, err := p.allFiles(ctx)
	if err != nil {
		return nil, err
	}
	var declared, sources []string
	for _, f := range all {
		switch {
		case isForeign(f):
		case manifests.Known(f):
			declared = append(declared, f)
		case p.inScope(f) && hasImports(f):
			sources = append(sources, f)
		}
	}
	r = &DepsResult{Root: p.root, Dependencies: []*deps.Dependency{}}
	var found []*manifests.Manifest
	for _, f := range declared {
		text, err := p.text(f, largestManifest)
		if err == nil {
			var m *manifests.Manifest
			if m, err = manifests.Parse(f, text); err == nil {
				found = append(found, m)
				continue
			}
		}
		r.Unread = append(r.Unread, err.Error())
	}
	texts, err := p.read(ctx, sources)
	if err != nil {
		return nil, err
	}
	files := make([]deps.File, len(texts))
	for i, t := range texts {
		files[i] = deps.File(t)
	}
	cache := moduleCache{dir: env.moduleDir()}
	var names []string
	for _, d := range deps.Track(found, files, cache.about) {
		names = append(names, d.Name)
		if q.Name == "" && (d.Direct || q.All) || q.Name != "" && strings.EqualFold(d.Name, q.Name) {
			r.Dependencies = append(r.Dependencies, d)
		}
	}
	if q.Name != "" && len(r.Dependencies) == 0 {
		return nil, badRequest("no manifest and no import has %q%s", q.Name, schemas.DidYouMean(q.Name, names))
	}
	return r, nil
}

func hasImports(f string) bool {
	switch languages.Of(f) {
	case languages.Go, languages.TypeScript, languages.JavaScript, languages.Python, languages.Rust, languages.Ruby, languages.Java, "kotlin":
		return true
	}
	return false
}

// moduleDir is Go's cache of modules.
func (e Env) moduleDir() string {
	if dir := e.Tree.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	if dir, _, _ := strings.Cut(e.Tree.Getenv("GOPATH"), string(filepath.ListSeparator)); dir != "" {
		return filepath.Join(dir, "pkg", "mod")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, "go", "pkg", "mod")
}

// moduleCache reads the go.mod files that Go's commands have downloaded.
type moduleCache struct{ dir string }

// about returns the state of a module in the latest go.mod there, and the version of Go that the given version needs.
func (c moduleCache) about(ecosystem, name, version string) (deprecated, engine string) {
	escaped, err := module.EscapePath(name)
	if ecosystem != manifests.Go || c.dir == "" || err != nil {
		return "", ""
	}
	dir := filepath.Join(c.dir, "cache", "download", filepath.FromSlash(escaped), "@v")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", ""
	}
	latest := ""
	for _, e := range entries {
		if v, ok := strings.CutSuffix(e.Name(), ".mod"); ok && semver.Compare(v, latest) > 0 {
			latest = v
		}
	}
	read := func(v string) *manifests.Manifest {
		text, err := regular.ReadPathUpTo(filepath.Join(dir, v+".mod"), largestManifest)
		if err != nil {
			return nil
		}
		m, err := manifests.Parse("go.mod", text)
		if err != nil {
			return nil
		}
		return m
	}
	if m := read(latest); m != nil {
		deprecated = m.Deprecated
		if why, back := m.Retraction(version); back && deprecated == "" {
			deprecated = fmt.Sprintf("version %s was retracted: %s", version, why)
		}
	}
	if m := read(version); m != nil {
		engine = m.Engine
	}
	return deprecated, engine
}
