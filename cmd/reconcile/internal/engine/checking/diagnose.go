package checking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/regular"
)

const (
	aloneRuns    = 3  // of a failed test
	mostDiagnose = 20 // failed tests that are diagnosed in a run
)

// Diagnosing is what failed tests are compared with.
type Diagnosing struct {
	Base    string   // a commit; "" is the last one
	Changed []string // the files that changed since, also removed ones
	Git     bool     // there is a commit to compare with
}

// Diagnose finds the cause of each failed test of some checks, and notes it there: it runs the test alone, and in the commit before the
// change. Of checks, each belongs to the tool in the same place of found. left is the number of failed tests that were too many.
func (c *Checker) Diagnose(ctx context.Context, found []tools.Discovered, all []checks.Check, d Diagnosing) (out []checks.Diagnosis, left int, err error) {
	b := &bases{checker: c, d: d}
	defer b.close()
	for i, check := range all {
		for k, t := range check.Tests {
			if t.Outcome != checks.TestFailed {
				continue
			}
			if len(out) == mostDiagnose {
				left++
				continue
			}
			e, err := c.evidence(ctx, found[i], t, b)
			if err != nil {
				return out, left, err
			}
			blame, why := checks.Diagnose(e)
			all[i].Tests[k].Blame, all[i].Tests[k].Why = blame, why
			out = append(out, checks.Diagnosis{Test: t.Name, Suite: t.Suite, Blame: blame, Why: why, Evidence: e})
		}
	}
	return out, left, nil
}

// evidence collects the facts about a failed test. The commit before is asked only if the test fails each time alone.
func (c *Checker) evidence(ctx context.Context, t tools.Discovered, test checks.Test, b *bases) (e checks.Symptoms, err error) {
	for _, f := range b.d.Changed {
		switch {
		case f == test.File || test.File == "" && t.Role.IsTest(f) && path.Dir(f) == testFolder(t, test):
			e.TestChanged = true
		case !t.Role.IsTest(f) && (len(t.Role.Extensions) == 0 || slices.Contains(t.Role.Extensions, path.Ext(f))):
			e.CodeChanged = true
		}
	}
	for range aloneRuns {
		r, err := c.alone(ctx, t, test)
		if err != nil || r.Outcome == "" {
			return e, err
		}
		if e.Alone = e.Alone.Plus(r.Outcome); e.Alone.Passed > 0 && e.Alone.Failed > 0 {
			return e, nil
		}
	}
	if e.Alone.Passed > 0 || !b.d.Git {
		return e, nil
	}
	r, err := b.try(ctx, t, test, false)
	if e.Base = e.Base.Plus(r.Outcome); err != nil {
		return e, err
	}
	if e.Base.Failed == 0 && e.TestChanged {
		r, err = b.try(ctx, t, test, true)
		e.BaseTested, e.Same = e.BaseTested.Plus(r.Outcome), r.Outcome == checks.TestFailed && r.Message == test.Message
	}
	return e, err
}

// testFolder is the folder of a test without a file, if its suite says so.
func testFolder(t tools.Discovered, test checks.Test) string {
	return path.Join(t.Folder, strings.TrimPrefix(test.Suite, "./"))
}

// alone runs one test; it has no outcome if the tool cannot, or did not run it.
func (c *Checker) alone(ctx context.Context, t tools.Discovered, test checks.Test) (none checks.Test, err error) {
	argv, can := t.One(test)
	if !can {
		return none, nil
	}
	scratch, err := os.MkdirTemp("", "reconcile-check-")
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(scratch)
	report := filepath.Join(scratch, "report")
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{report}", report)
	}
	ended, _, err := c.execute(ctx, t, argv, filepath.Join(c.Root, filepath.FromSlash(t.Folder)), scratch, report)
	if err != nil {
		return none, err
	}
	for _, r := range ended.Report.Tests {
		if r.Name == test.Name && (r.Suite == test.Suite || test.Suite == "") {
			return r, nil
		}
	}
	return none, nil
}

// bases are checkouts of the commit before a change.
type bases struct {
	checker *Checker
	d       Diagnosing
	dirs    [2]string // as it was, and with the tests of the change
	failed  error
}

func (b *bases) close() {
	for _, dir := range b.dirs {
		if dir != "" {
			os.RemoveAll(dir)
		}
	}
}

// try runs one test in a checkout, which the first one makes.
func (b *bases) try(ctx context.Context, t tools.Discovered, test checks.Test, withTests bool) (r checks.Test, err error) {
	which := 0
	if withTests {
		which = 1
	}
	if b.dirs[which] == "" && b.failed == nil {
		b.dirs[which], b.failed = b.checkOut(ctx, t, withTests)
	}
	if b.failed != nil {
		return r, fmt.Errorf("check out the commit before the change: %w", b.failed)
	}
	c := *b.checker
	c.Root = b.dirs[which]
	return c.alone(ctx, t, test)
}

// linked are folders with installed dependencies, which no commit has.
var linked = []string{"node_modules", ".venv", "venv", "vendor/bundle"}

// checkOut makes a checkout of the base in a folder of its own.
func (b *bases) checkOut(ctx context.Context, t tools.Discovered, withTests bool) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "reconcile-base-"); err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
			dir = ""
		}
	}()
	root := b.checker.Root
	if err := b.checker.checkOut(ctx, cmp.Or(b.d.Base, "HEAD"), dir); err != nil {
		return dir, err
	}
	for _, folder := range slices.Compact([]string{"", t.Folder}) {
		for _, name := range linked {
			at := filepath.FromSlash(path.Join(folder, name))
			if fi, err := os.Stat(filepath.Join(root, at)); err != nil || !fi.IsDir() {
				continue
			}
			if err := os.Symlink(filepath.Join(root, at), filepath.Join(dir, at)); err != nil && !errors.Is(err, fs.ErrExist) {
				return dir, err
			}
		}
	}
	if withTests {
		return dir, b.addTests(t, dir)
	}
	return dir, nil
}

// checkOut writes the files of a commit of the project to a folder. Where tools are confined, they could have configured filters for git, which would
// not be: then only the objects of the repository count.
func (c *Checker) checkOut(ctx context.Context, commit, dir string) error {
	scratch, err := os.MkdirTemp("", "reconcile-git-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	from := c.Root
	more := []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "index")}
	if c.confined() {
		private := filepath.Join(scratch, "git")
		if err := gitrepo.Apart(ctx, c.Root, private, commit); err != nil {
			return err
		}
		from, more = dir, append(more, "GIT_DIR="+private, "GIT_WORK_TREE="+dir)
	}
	for _, args := range [][]string{{"read-tree", "--end-of-options", commit}, {"checkout-index", "-a", "-f", "--prefix=" + dir + "/"}} {
		cmd := gitrepo.Inspect(ctx, from, os.Environ(), args...)
		cmd.Env = append(cmd.Env, more...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, lastLine(string(out)))
		}
	}
	return nil
}

// addTests copies the changed files with tests into a checkout.
func (b *bases) addTests(t tools.Discovered, dir string) error {
	for _, f := range b.d.Changed {
		if !t.Role.IsTest(f) {
			continue
		}
		data, err := regular.ReadPath(filepath.Join(b.checker.Root, filepath.FromSlash(f)))
		if errors.Is(err, fs.ErrNotExist) {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(f))); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := writeBelow(dir, f, data, 0o700); err != nil {
			return err
		}
	}
	return nil
}
