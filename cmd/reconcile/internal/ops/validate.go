package ops

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// ValidateRequest requests a validation of spec files.
type ValidateRequest struct {
	Paths []string // files and folders, relative to the caller's folder; none: the whole tree
}

// Validation has the problems of spec files.
type Validation struct {
	Files    int               `json:"files"` // number of checked files
	Errors   int               `json:"errors"`
	Warnings int               `json:"warnings"`
	Problems []schemas.Problem `json:"problems"`
}

// Validate validates spec files: those of the tree, or the files and folders in the paths of a ValidateRequest. It
// checks them with the code of a run. Files outside the tree's specs are checked individually: their references are not
// resolved.
func Validate(ctx context.Context, env Env, q ValidateRequest) (Validation, error) {
	v := Validation{Problems: []schemas.Problem{}}
	s, t, err := env.load(ctx)
	if err != nil {
		return v, typed(err)
	}
	defer s.Close()
	if len(q.Paths) == 0 {
		v.Files, v.Problems = countFiles(s, t), append(v.Problems, tree.Problems(s, t)...)
	}
	for _, p := range q.Paths {
		if err := v.check(s, t, env.CallerPath(p), p); err != nil {
			return v, typed(err)
		}
	}
	for _, p := range v.Problems {
		if p.Severity == schemas.Error {
			v.Errors++
		} else {
			v.Warnings++
		}
	}
	return v, nil
}

// Verdict is Invalid if there are errors.
func (v Validation) Verdict() Code {
	if v.Errors > 0 {
		return Invalid
	}
	return OK
}

// countFiles counts the spec files with an object or a problem, and the settings.
func countFiles(s *state.Store, t *state.Tree) int {
	files := map[string]bool{}
	if _, err := s.Root().Lstat(schemas.SettingsPath); err == nil {
		files[schemas.SettingsPath] = true
	}
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			if e.Object != nil {
				files[e.Object.Path] = true
			}
		}
	}
	for _, p := range t.Problems() {
		if isSpecs(t, p.Path) {
			files[p.Path] = true
		}
	}
	return len(files)
}

// check adds the problems of the file or folder full; p is its name on the command line.
func (v *Validation) check(s *state.Store, t *state.Tree, full, p string) error {
	if _, err := os.Stat(full); err != nil {
		return fmt.Errorf("%s: %w; name a file or a folder, or none for the whole tree", p, regular.Cause(err))
	}
	if rel, ok := pathBelow(s.Dir(), full); ok && (isSpecs(t, rel) || rel == schemas.SettingsPath) {
		v.addTreeProblems(s, t, rel)
		return nil
	}
	return v.checkFiles(s, full, p, t.Settings().Limits.FileSize)
}

// pathBelow returns the slash path of full relative to root, if it is below.
func pathBelow(root, full string) (string, bool) {
	a, err1 := realFolder(root, true)
	b, err2 := realFolder(full, false)
	if err1 != nil || err2 != nil {
		return "", false
	}
	return worktree.Within(a, b)
}

// isSpecs reports whether spec files are read from a path.
func isSpecs(t *state.Tree, p string) bool {
	folders := t.Settings().Folders
	return treepath.Below(p, folders.Specs) || treepath.Below(p, state.ArchiveDir(folders.State))
}

// addTreeProblems adds the problems of the tree's files at and below rel.
func (v *Validation) addTreeProblems(s *state.Store, t *state.Tree, rel string) {
	files := map[string]bool{}
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			if e.Object != nil && treepath.Below(e.Object.Path, rel) {
				files[e.Object.Path] = true
			}
		}
	}
	for _, p := range tree.Problems(s, t) {
		if treepath.Below(p.Path, rel) {
			files[p.Path] = true
			v.Problems = append(v.Problems, p)
		}
	}
	v.Files += max(len(files), 1)
}

// checkFiles checks the spec files at or below full individually; shown is the name of full in the report.
func (v *Validation) checkFiles(s *state.Store, full, shown string, limit int) error {
	return filepath.WalkDir(full, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || !isSpecFile(name) && name != full {
			return nil
		}
		rel, err := filepath.Rel(full, name)
		if err != nil {
			return err
		}
		src, err := readBounded(name, limit)
		if err != nil {
			return err
		}
		v.Files++
		v.Problems = append(v.Problems, s.CheckFile(path.Join(filepath.ToSlash(shown), filepath.ToSlash(rel)), src)...)
		return nil
	})
}

func isSpecFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".toml"}, strings.ToLower(filepath.Ext(name)))
}

// realFolder resolves links in the folders of a path; all says whether a link at its end is resolved, too: a spec may
// be one.
func realFolder(p string, all bool) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	if all {
		return filepath.EvalSymlinks(abs)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	return filepath.Join(dir, filepath.Base(abs)), err
}
