package checking

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gocache"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// shares reports whether a tool may write the caches that checks share: one of Go that is no part of the project, and compiles and reads code of
// the project without running it. What runs that code, such as a test or a linter with its plugins, could write there what later checks believe.
func (c *Checker) shares(t tools.Discovered, argv []string) bool {
	runs := t.Role.RunsTests() && !c.compiles || t.Category == checks.Deep || c.team
	return t.Language == "go" && !runs && outside(cmp.Or(c.project, c.Root), t.Program) && !c.plugged(t, argv)
}

// plugged reports whether golangci-lint may load plugins, or write reports where the project wants them: it has a configuration, in a folder that it
// checks or above, which may say so.
func (c *Checker) plugged(t tools.Discovered, argv []string) bool {
	if t.Tool != "golangci-lint" {
		return false
	}
	for _, arg := range append([]string{"./"}, argv...) {
		if !strings.HasPrefix(arg, "./") {
			continue
		}
		for dir := path.Join(t.Folder, strings.TrimSuffix(arg, "...")); filepath.IsLocal(dir); dir = path.Dir(dir) {
			for _, ending := range []string{"yml", "yaml", "toml", "json"} {
				data, err := regular.ReadPath(filepath.Join(c.Root, filepath.FromSlash(dir), ".golangci."+ending))
				if err == nil && mayPlug(data) || err != nil && !errors.Is(err, fs.ErrNotExist) {
					return true
				}
			}
			if dir == "." {
				break
			}
		}
	}
	return false
}

// mayPlug reports whether a configuration may have the members custom or output. Its formats know escapes, and ignore case.
func mayPlug(config []byte) bool {
	text := strings.ToLower(string(config))
	return slices.ContainsFunc([]string{"custom", "output", "\\x", "\\u", "\\\n", "\\\r", "\x00"}, func(s string) bool { return strings.Contains(text, s) })
}

// outside reports whether a program is not below a folder, nor a link to a file there.
func outside(root, program string) bool {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return false
	}
	for _, at := range []string{program, real} {
		if _, below := worktree.Within(root, at); below || !filepath.IsAbs(at) {
			return false
		}
	}
	return true
}

// caches are the variables that say where a confined tool has its caches: in the shared folder, or in its scratch folder, which is empty at first and
// removed with it. Of the shared ones it reads that of Go, and Gradle's in the home folder. write are the folders that it may write for them.
func (c *Checker) caches(scratch string, share bool) (set, write []string) {
	if share {
		return []string{"XDG_CACHE_HOME=" + c.Cache, "GOCACHE=" + filepath.Join(c.Cache, "go-build")}, []string{c.Cache}
	}
	own := filepath.Join(scratch, "cache")
	set = []string{"XDG_CACHE_HOME=" + own, "GOCACHE=" + filepath.Join(own, "go-build"), "npm_config_cache=" + filepath.Join(own, "npm"),
		"GRADLE_USER_HOME=" + filepath.Join(own, "gradle")}
	home := variable(c.Environ, "HOME")
	if gradle := cmp.Or(variable(c.Environ, "GRADLE_USER_HOME"), filepath.Join(home, ".gradle")); filepath.IsAbs(gradle) {
		set = append(set, "GRADLE_RO_DEP_CACHE="+filepath.Join(gradle, "caches"))
	}
	if self, err := os.Executable(); err == nil {
		set = append(set, "GOCACHEPROG="+gocache.Program(self, filepath.Join(own, "go-layer"), filepath.Join(c.Cache, "go-build")),
			"GOLANGCI_LINT_CACHEPROG="+gocache.Program(self, filepath.Join(own, "golangci-layer"), filepath.Join(c.Cache, "golangci-lint")))
	}
	return set, nil
}

// compile compiles what the tests of Go need into the shared cache, so that they find it there. It runs no code of the project.
func (c *Checker) compile(ctx context.Context, jobs []tools.Job) error {
	compiler := *c
	compiler.compiles = true
	for _, j := range jobs {
		if j.Tool.Tool != "go test" || !compiler.shares(j.Tool, nil) {
			continue
		}
		scratch, err := os.MkdirTemp("", "reconcile-compile-")
		if err != nil {
			return err
		}
		j.Own, j.Tool.Role.Check = nil, []string{"go", "list", "-e", "-export", "-test", "-deps", "-f", `{{""}}`, "{packages}"}
		_, _, err = compiler.execute(ctx, j.Tool, j.Command(nil), filepath.Join(c.Root, filepath.FromSlash(j.Tool.Folder)), scratch, "")
		if err = errors.Join(err, os.RemoveAll(scratch)); err != nil {
			return err
		}
	}
	return nil
}
