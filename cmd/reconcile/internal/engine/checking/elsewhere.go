package checking

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
)

// astray divides findings: those in files that are not there, and the others. A tool that prints the name of a file with a newline or an escape in
// it names another one, so that nobody knows whether it is one of those that were asked for.
func (c *Checker) astray(findings []checks.Finding) (gone, there []checks.Finding) {
	known := map[string]bool{}
	for _, f := range findings {
		exists, looked := known[f.File]
		if !looked {
			_, err := os.Lstat(filepath.Join(c.Root, filepath.FromSlash(f.File)))
			exists = f.Outside() || err == nil
			known[f.File] = exists
		}
		if exists {
			there = append(there, f)
		} else {
			gone = append(gone, f)
		}
	}
	return gone, there
}

// sinceChange divides the findings of a job in files that did not change: those that the tool does not have in the commit before, and the number of
// the others. why says why it is unknown which are new; "" if it is known. An error says that ctx ended.
func (c *Checker) sinceChange(ctx context.Context, j tools.Job, elsewhere []checks.Finding) (fresh []checks.Finding, old int, why string, err error) {
	if !j.Uses || len(elsewhere) == 0 {
		return nil, len(elsewhere), "", nil
	}
	b := &bases{checker: c, d: Diagnosing{Base: c.Base}}
	dir, err := b.checkOut(ctx, j.Tool, false)
	if err != nil {
		return nil, len(elsewhere), err.Error(), ctx.Err()
	}
	defer os.RemoveAll(dir)
	base := *c
	base.Root, base.Coverage = dir, false
	if j.Files != nil {
		j.Files = slices.DeleteFunc(slices.Concat(j.Files, j.Removed), func(f string) bool {
			_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f)))
			return err != nil
		})
	}
	scratch, err := os.MkdirTemp("", "reconcile-check-")
	if err != nil {
		return nil, len(elsewhere), "", err
	}
	defer os.RemoveAll(scratch)
	_, ended, err := base.perform(ctx, j, scratch)
	if err != nil {
		return nil, len(elsewhere), "", err
	}
	if outcome, said := checks.Judge(c.expected(j.Tool.Role), ended); outcome == checks.Unknown {
		return nil, len(elsewhere), "in the commit before the tool is unknown: " + said, nil
	}
	before := map[string]bool{}
	for _, f := range own(j, ended.Report.Findings) {
		before[f.ID] = true
	}
	for _, f := range own(j, elsewhere) {
		if !before[f.ID] {
			fresh = append(fresh, f)
		}
	}
	return fresh, len(elsewhere) - len(fresh), "", nil
}

// own marks findings as those of a job's tool.
func own(j tools.Job, findings []checks.Finding) []checks.Finding {
	for i := range findings {
		findings[i].Tool, findings[i].Category = j.Tool.Tool, j.Tool.Category
	}
	checks.Identify(findings)
	return findings
}
