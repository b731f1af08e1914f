package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"reconcile.dev/reconcile/cmd/reconcile/internal/toolscan"
	"reconcile.dev/reconcile/controllers/deps"
	"reconcile.dev/reconcile/controllers/languages"
	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state/durable"
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
	all, err := p.allFiles()
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
	tracked, err := p.dependencies(ctx, declared, sources)
	if err != nil {
		return nil, err
	}
	r = &DepsResult{Root: p.root, Dependencies: []*deps.Dependency{}, Unread: tracked.Unread}
	var names []string
	for _, d := range tracked.All {
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

// cachedDeps are the dependencies of a project with what they were found by.
type cachedDeps struct {
	Key    string // of the manifests, lock files and sources, by their names, sizes and times
	At     time.Time
	All    []*deps.Dependency
	Unread []string
}

// dependencies tracks the dependencies of the project, or returns those that were tracked within the hour before, where none of the files changed.
func (p *project) dependencies(ctx context.Context, declared, sources []string) (found cachedDeps, err error) {
	const name = "deps.json"
	key, now := p.stamp(append(append([]string{p.env.moduleDir()}, declared...), sources...)), p.env.Tree.Now()
	c, cacheErr := p.cache()
	if cacheErr == nil {
		defer c.Close()
		data, err := regular.Read(c.root, c.dir+"/"+name)
		if err == nil && json.Unmarshal(data, &found) == nil && found.Key == key && !now.Before(found.At) && now.Sub(found.At) <= toolscan.Lasting {
			return found, nil
		}
	}
	began := time.Now()
	found = cachedDeps{Key: key, At: now}
	if found.All, found.Unread, err = p.track(ctx, declared, sources); err != nil {
		return found, err
	}
	if cacheErr == nil && p.settled(append(declared, sources...), began) {
		data, err := json.Marshal(found)
		if err == nil {
			err = durable.Replace(c.root, c.temp, c.dir+"/"+name, data)
		}
		if err != nil {
			p.env.warn(fmt.Sprintf("the dependencies are not kept: %v", err))
		}
	}
	return found, nil
}

// track relates the manifests of the project to the imports of its sources.
func (p *project) track(ctx context.Context, declared, sources []string) (all []*deps.Dependency, unread []string, err error) {
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
		unread = append(unread, err.Error())
	}
	texts, err := p.read(ctx, sources)
	if err != nil {
		return nil, nil, err
	}
	files := make([]deps.File, len(texts))
	for i, t := range texts {
		files[i] = deps.File(t)
	}
	return deps.Track(found, files, moduleCache{dir: p.env.moduleDir()}), unread, nil
}

// settled reports whether files were last changed clearly before a time: a later change of the others may not change their times.
func (p *project) settled(files []string, before time.Time) bool {
	return !slices.ContainsFunc(files, func(f string) bool {
		fi, err := os.Lstat(filepath.Join(p.root, filepath.FromSlash(f)))
		return err != nil || fi.ModTime().After(before.Add(-20*time.Millisecond))
	})
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

// moduleCache reads the modules that Go's commands have downloaded; see [deps.Installed].
type moduleCache struct{ dir string }

// DeprecatedNames returns the functions, types, constants and variables of a package of Go whose comments say "Deprecated:".
func (c moduleCache) DeprecatedNames(ecosystem, name, version, pkg string) map[string]string {
	escaped, err := module.EscapePath(name)
	if ecosystem != manifests.Go || c.dir == "" || err != nil || !semver.IsValid(version) || module.CheckImportPath(pkg) != nil {
		return nil // an import with ".." leads out of the module
	}
	dir := filepath.Join(c.dir, filepath.FromSlash(escaped)+"@"+version, filepath.FromSlash(strings.TrimPrefix(pkg, name)))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if ours, err := build.Default.MatchFile(dir, e.Name()); !ours || err != nil || strings.HasSuffix(e.Name(), "_test.go") {
			continue // of another system
		}
		text, err := regular.ReadPathUpTo(filepath.Join(dir, e.Name()), largestManifest)
		if err != nil || !bytes.Contains(text, []byte("Deprecated:")) {
			continue
		}
		if f, _ := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments|parser.SkipObjectResolution); f != nil {
			deprecatedIn(f, found)
		}
	}
	return found
}

// deprecatedIn adds the exported names of a file that are deprecated, with what their comments say of it.
func deprecatedIn(f *ast.File, found map[string]string) {
	note := func(id *ast.Ident, comments ...*ast.CommentGroup) {
		for _, c := range comments {
			for p := range strings.SplitSeq(c.Text(), "\n\n") {
				if why, ok := strings.CutPrefix(strings.Join(strings.Fields(p), " "), "Deprecated: "); ok && id.IsExported() {
					found[id.Name] = shorten.Text(why, 200)
				}
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				note(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					note(s.Name, d.Doc, s.Doc)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						note(id, d.Doc, s.Doc)
					}
				}
			}
		}
	}
}

// About returns the state of a module in the latest go.mod there, and the version of Go that the given version needs.
func (c moduleCache) About(ecosystem, name, version string) (deprecated, engine string) {
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
