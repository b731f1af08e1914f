package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/toolscan"
	"reconcile.dev/reconcile/cmd/reconcile/internal/versions"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state/regular"
)

// ToolsRequest requests the tools of a project.
type ToolsRequest struct {
	CheckRequest
	Categories []checks.Category // none: all
	Language   string            // only tools of this language; "": all
}

// ToolsResult are the tools of a project.
type ToolsResult struct {
	Root  string             `json:"root"`
	Tools []tools.Discovered `json:"tools"`
}

// Tools discovers the tools with which a project checks its code. It runs none of them.
func Tools(ctx context.Context, env Env, q ToolsRequest) (r *ToolsResult, err error) {
	defer func() { err = typed(err) }()
	p, err := env.openProject(ctx, &q.CheckRequest)
	if err != nil {
		return nil, err
	}
	found, err := p.discover(ctx, &q.CheckRequest)
	if err != nil {
		return nil, err
	}
	r = &ToolsResult{Root: p.root, Tools: []tools.Discovered{}}
	for _, t := range found {
		if (len(q.Categories) == 0 || slices.Contains(q.Categories, t.Category)) && (q.Language == "" || strings.EqualFold(t.Language, q.Language)) &&
			(len(p.scope) == 0 || slices.ContainsFunc(p.scope, func(s string) bool { return t.Holds(s) || strings.HasPrefix(t.Folder, s+"/") })) {
			r.Tools = append(r.Tools, t)
		}
	}
	return r, nil
}

// discover discovers the tools of the project, or returns what was discovered shortly before. Programs of the project are asked for their versions
// only where its checks may run.
func (p *project) discover(ctx context.Context, q *CheckRequest) ([]tools.Discovered, error) {
	allowed, _, err := p.allowed()
	if err != nil {
		return nil, err
	}
	searchPath, began := p.env.Tree.Getenv("PATH"), time.Now()
	key := fmt.Sprint(tools.Edition(), allowed, p.git, searchPath)
	c, cacheErr := p.cache()
	if cacheErr == nil {
		defer c.Close()
		if found, ok := toolscan.Load(c.root, c.dir, p.root, key, p.env.Tree.Now()); ok && !q.Refresh {
			return found, nil
		}
	}
	files, err := p.allFiles(ctx)
	if err != nil {
		return nil, err
	}
	facts := toolscan.Scan(p.root, files, searchPath)
	found := tools.Discover(facts)
	if cacheErr != nil {
		return found, nil // without a place for the answers no program is asked
	}
	if facts.Said, err = p.versions(ctx, c, tools.Questions(found), allowed, q.Refresh); err != nil {
		return nil, err
	}
	if len(facts.Said) > 0 {
		found = tools.Discover(facts)
	}
	if err := toolscan.Save(c.root, c.dir, c.temp, p.root, key, toolscan.Watched(p.root, searchPath, facts, found), found, began, p.env.Tree.Now()); err != nil {
		p.env.warn(fmt.Sprintf("what was discovered is not kept: %v", err))
	}
	return found, nil
}

// versions asks programs for their versions, again if refresh is set. Where the checks are not allowed, these are programs from outside of the
// project, without a way to those in it.
func (p *project) versions(ctx context.Context, c cached, all []tools.Question, allowed, refresh bool) (map[tools.Question]string, error) {
	searchPath := p.env.Tree.Getenv("PATH")
	if !allowed {
		searchPath = strings.Join(slices.DeleteFunc(filepath.SplitList(searchPath), p.contains), string(filepath.ListSeparator))
		all = slices.DeleteFunc(all, func(q tools.Question) bool { return p.contains(q.Path) || p.contains(filepath.Dir(q.Path)) })
	}
	answers := c.dir + "/programs.json"
	if refresh {
		_ = c.root.Remove(answers) // what remains is used
	}
	book := versions.OpenAt(p.root, c.root, answers, c.temp, secrets.RedactBytes)
	said := book.Ask(ctx, all, searchPath)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := book.Save(); err != nil {
		p.env.warn(err.Error())
	}
	return said, nil
}

// contains reports whether a path lies in the project, also by a link; one that cannot be resolved counts.
func (p *project) contains(at string) bool {
	at, err := filepath.EvalSymlinks(at)
	if err != nil || !filepath.IsAbs(at) {
		return true
	}
	rel, err := filepath.Rel(p.root, at)
	return err == nil && filepath.IsLocal(rel)
}

// cached is a folder for what is known of a project: of its tree, or the user's where it has none.
type cached struct {
	root *os.Root
	dir  string // below root, with slashes
	temp string // where its files are written first
}

func (c cached) Close() { c.root.Close() }

// cache opens the cache folder of the project.
func (p *project) cache() (c cached, err error) {
	if c.root, err = regular.Root(p.root); err != nil {
		return c, err
	}
	if fi, err := c.root.Lstat(".reconcile"); err == nil && fi.IsDir() {
		c.dir, c.temp = ".reconcile/cache/tools", ".reconcile/tmp"
	} else {
		c.root.Close()
		user, err := os.UserCacheDir()
		if err != nil {
			return c, err
		}
		own := filepath.Join(user, "reconcile")
		if err := os.MkdirAll(own, 0o700); err != nil {
			return c, err
		}
		if c.root, err = regular.Root(own); err != nil {
			return c, err
		}
		sum := sha256.Sum256([]byte(p.root))
		c.dir, c.temp = "tools/"+hex.EncodeToString(sum[:8]), "tmp"
	}
	if err := c.root.MkdirAll(c.dir, 0o700); err != nil {
		c.root.Close()
		return c, err
	}
	return c, nil
}
