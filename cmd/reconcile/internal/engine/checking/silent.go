package checking

import (
	"path/filepath"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// silent lists the files that count as one test, which passed, though they declare tests. node --test says so of each file that ended well before a test
// of it was reported, as when the code that it loads ends the process.
func (c *Checker) silent(t tools.Discovered, tests []checks.Test) (out []string) {
	root, err := filepath.EvalSymlinks(c.Root)
	if err != nil {
		root = c.Root
	}
	for _, test := range tests {
		if test.Outcome != checks.TestPassed || test.File != "" || tools.LanguageOf(test.Name) == "" {
			continue
		}
		name := filepath.FromSlash(test.Name)
		if !filepath.IsAbs(name) {
			name = filepath.Join(root, filepath.FromSlash(t.Folder), name)
		} else if real, err := filepath.EvalSymlinks(name); err == nil {
			name = real
		}
		below, ok := worktree.Within(root, name)
		if !ok {
			continue
		}
		if text, err := regular.ReadPathUpTo(name, outputLimit); err == nil && tools.DeclaresTests(string(text)) {
			out = append(out, below)
		}
	}
	return out
}
