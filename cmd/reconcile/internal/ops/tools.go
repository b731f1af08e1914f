package ops

import (
	"context"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/toolscan"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
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

// discover discovers the tools of the project.
func (p *project) discover(ctx context.Context, q *CheckRequest) ([]tools.Discovered, error) {
	files, err := p.allFiles(ctx)
	if err != nil {
		return nil, err
	}
	return tools.Discover(toolscan.Scan(p.root, files, p.env.Tree.Getenv("PATH"))), nil
}
