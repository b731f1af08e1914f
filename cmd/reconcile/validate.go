package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

func newValidateCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [PATH…]",
		Short: "Check the spec files, and report all problems of all of them at once",
		Long: `Check the spec files of the tree by the same code that a run uses: what validate accepts, a run accepts. What is
valid and will probably not do what it is meant to is a warning: a question that its agent may not ask, a program that is
not found, inputs that match nothing, a field without effect yet.

A PATH limits the report to a file or folder. Files outside the tree's specs are checked each by itself: what they
refer to is not looked up. Errors make the exit code 3; warnings do not.`,
		Example: "  reconcile validate\n" +
			"  reconcile validate specs/dags -o json\n" +
			"  reconcile validate -o github    # annotations in GitHub Actions\n" +
			"  reconcile validate -o sarif > reconcile.sarif",
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args) },
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatSARIF, formatGitHub)
	return cmd
}

// validation is the result of validate for machines.
type validation struct {
	Files    int               `json:"files"` // that were checked
	Errors   int               `json:"errors"`
	Warnings int               `json:"warnings"`
	Problems []schemas.Problem `json:"problems"`
}

func (a *app) validate(ctx context.Context, paths []string) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	v := validation{Problems: []schemas.Problem{}}
	if len(paths) == 0 {
		v.Files, v.Problems = countFiles(s, t), append(v.Problems, tree.Problems(s, t)...)
	}
	for _, p := range paths {
		if err := v.check(s, t, a.within(p), p); err != nil {
			return err
		}
	}
	for _, p := range v.Problems {
		if p.Severity == schemas.Error {
			v.Errors++
		} else {
			v.Warnings++
		}
	}
	if err := a.printValidation(v); err != nil {
		return err
	}
	if v.Errors > 0 {
		return exitWith(exitInvalid)
	}
	return nil
}

// countFiles counts the spec files that are known by an object or by a problem, and the settings.
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

// check adds what is to be said about the file or folder full; p is what it is called on the command line.
func (v *validation) check(s *state.Store, t *state.Tree, full, p string) error {
	if _, err := os.Stat(full); err != nil {
		return fmt.Errorf("%s: %w", p, regular.Cause(err))
	}
	if rel, ok := below(s.Dir(), full); ok && (isSpecs(t, rel) || rel == schemas.SettingsPath) {
		v.pick(s, t, rel)
		return nil
	}
	return v.checkAlone(s, full, p, t.Settings().Limits.FileSize)
}

// below is the slash path of full below root, if it is there.
func below(root, full string) (string, bool) {
	a, err1 := realPath(root)
	b, err2 := realFolder(full)
	if err1 != nil || err2 != nil {
		return "", false
	}
	rel, err := filepath.Rel(a, b)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// isSpecs reports whether a path is one at which spec files are read.
func isSpecs(t *state.Tree, p string) bool {
	folders := t.Settings().Folders
	return tree.Within(p, folders.Specs) || tree.Within(p, state.ArchiveDir(folders.State))
}

// pick takes over the problems of the tree's files at and below rel.
func (v *validation) pick(s *state.Store, t *state.Tree, rel string) {
	files := map[string]bool{}
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			if e.Object != nil && tree.Within(e.Object.Path, rel) {
				files[e.Object.Path] = true
			}
		}
	}
	for _, p := range tree.Problems(s, t) {
		if tree.Within(p.Path, rel) {
			files[p.Path] = true
			v.Problems = append(v.Problems, p)
		}
	}
	v.Files += max(len(files), 1)
}

// checkAlone judges the spec files at or below full, each by itself; shown is what full is called in the report.
func (v *validation) checkAlone(s *state.Store, full, shown string, limit int) error {
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
		v.Problems = append(v.Problems, s.Judge(path.Join(filepath.ToSlash(shown), filepath.ToSlash(rel)), src)...)
		return nil
	})
}

func isSpecFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".toml"}, strings.ToLower(filepath.Ext(name)))
}

// readBounded reads a regular file, and not more of it than shows that it is too large.
func readBounded(name string, limit int) ([]byte, error) {
	f, info, err := regular.OpenPath(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > int64(limit) {
		return make([]byte, limit+1), nil // the decoder says so, in its own words
	}
	return io.ReadAll(f)
}

func (a *app) printValidation(v validation) error {
	switch a.global.output {
	case formatGitHub:
		return render.GitHub(a.stdout, a.repositoryPath(), v.Problems)
	case formatSARIF:
		return render.SARIF(a.stdout, process.ReadBuild().Version, a.repositoryPath(), v.Problems)
	case formatTable:
		return a.printProblems(v)
	}
	return a.print(v)
}

func (a *app) printProblems(v validation) error {
	if err := render.Problems(a.stdout, a.palette(), v.Problems); err != nil {
		return err
	}
	if a.global.quiet {
		return nil
	}
	if len(v.Problems) > 0 {
		fmt.Fprintln(a.stdout)
	}
	verdict := "no problems"
	if len(v.Problems) > 0 {
		verdict = render.Plural(v.Errors, "error") + ", " + render.Plural(v.Warnings, "warning")
	}
	_, err := fmt.Fprintf(a.stdout, "%s checked, %s\n", render.Plural(v.Files, "file"), verdict)
	return err
}

// repositoryPath is the path of the tree below the top of its git work tree: annotations name files from there.
func (a *app) repositoryPath() string { return worktree.Below(a.global.dir) }
