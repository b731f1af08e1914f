package main

import (
	"bytes"
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
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

func newMemoryScanCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scan [PATH…]",
		Short: "Look for secrets in the tree's specs and state",
		Long: `Look for secrets and private text in all that reconcile reads and writes: reconcile.yaml, and the folders of specs and
state, with the memory, its archive and records, and the runs. Other files are looked into where they are named: "scan ."
is the whole working tree but for .git and .reconcile. Links are not followed. A file that is no text, or larger than 256
MiB, is told as not looked into. Each finding is told with its place and the rule that found it, and never shown. A line
with the comment ` + allowSecret + ` is left alone.

The exit code is 1 if anything is found. What was committed stays in git's history: replace it where it is used.`,
		Example: "  reconcile memory scan\n" +
			"  reconcile memory scan . -o json\n" +
			"  reconcile memory scan -o sarif > secrets.sarif",
		RunE: func(cmd *cobra.Command, args []string) error { return a.memoryScan(cmd.Context(), args) },
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatSARIF, formatGitHub)
	return cmd
}

const (
	// allowSecret is the comment by which a person says that a line has no secret, whatever it looks like.
	allowSecret = "reconcile:allow-secret"
	// largestScanned bounds the files that are looked into, in bytes. reconcile writes none that is larger.
	largestScanned = 256 << 20
	// listedSkips bounds how many files that were not looked into are listed for people.
	listedSkips = 20
)

// secretScan is the result of memory scan for machines.
type secretScan struct {
	Files   int           `json:"files"` // that were looked into
	Secrets []foundSecret `json:"secrets"`
	// Skipped are files that were not looked into, each with the reason.
	Skipped []string `json:"skipped,omitempty"`
}

// foundSecret tells where a secret is, and nothing of what it is.
type foundSecret struct {
	schemas.Place
	Rule string `json:"rule"`
}

func (a *app) memoryScan(ctx context.Context, paths []string) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.Close()
	scan := secretScan{Secrets: []foundSecret{}}
	for _, p := range a.scanned(s, paths) {
		if err := scan.walk(ctx, p.full, p.shown); err != nil {
			return err
		}
	}
	if err := a.printScan(scan); err != nil {
		return err
	}
	if len(scan.Secrets) > 0 {
		return exitWith(exitFailure)
	}
	return nil
}

// scannedPath is a file or folder to look into, and what it is called in the report.
type scannedPath struct{ full, shown string }

// scanned are the given paths; without any, all that the tree keeps.
func (a *app) scanned(s *state.Store, paths []string) []scannedPath {
	var out []scannedPath
	if len(paths) == 0 {
		folders := s.Settings().Folders
		for _, p := range []string{schemas.SettingsPath, folders.Specs, folders.State} {
			if _, err := s.Root().Lstat(p); err == nil {
				out = append(out, scannedPath{filepath.Join(s.Dir(), filepath.FromSlash(p)), p})
			}
		}
		return out
	}
	for _, p := range paths {
		out = append(out, scannedPath{a.within(p), filepath.ToSlash(p)})
	}
	return out
}

// walk looks into the regular files at and below full, in order of their names; links are not followed.
func (r *secretScan) walk(ctx context.Context, full, shown string) error {
	return filepath.WalkDir(full, func(name string, d fs.DirEntry, err error) error {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("%s: %w", shown, regular.Cause(err))
		}
		if d.IsDir() {
			if name != full && slices.Contains([]string{".git", ".reconcile"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(full, name)
		if err != nil {
			return err
		}
		return r.look(name, path.Join(shown, filepath.ToSlash(rel)))
	})
}

// look searches one file. One that is gone meanwhile was none of the tree's.
func (r *secretScan) look(name, shown string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", shown, regular.Cause(err))
	}
	if info.Size() > largestScanned {
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s: it has more than %d MiB", shown, largestScanned>>20))
		return nil
	}
	data, err := regular.ReadPath(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", shown, regular.Cause(err))
	}
	if bytes.IndexByte(data, 0) >= 0 {
		r.Skipped = append(r.Skipped, shown+": it is no text")
		return nil
	}
	r.Files++
	r.search(string(data), shown)
	return nil
}

// search adds what is found in a text.
func (r *secretScan) search(text, shown string) {
	found := slices.Concat(secrets.Find(text), secrets.Private(text))
	slices.SortFunc(found, func(a, b secrets.Finding) int { return cmp.Compare(a.Start, b.Start) })
	line, start := 1, 0 // of the line that is being looked at
	for _, f := range found {
		line += strings.Count(text[start:f.Start], "\n")
		start += strings.LastIndexByte(text[start:f.Start], '\n') + 1
		if rest, _, _ := strings.Cut(text[start:], "\n"); strings.Contains(rest, allowSecret) {
			continue
		}
		at := schemas.Place{Path: shown, Line: line, Column: 1 + utf8.RuneCountInString(text[start:f.Start])}
		r.Secrets = append(r.Secrets, foundSecret{at, f.Rule})
	}
}

// problems are the secrets as problems of their files.
func (r *secretScan) problems() []schemas.Problem {
	out := make([]schemas.Problem, len(r.Secrets))
	for i, f := range r.Secrets {
		out[i] = schemas.Problem{Place: f.Place, Severity: schemas.Error, Code: f.Rule,
			Message:    fmt.Sprintf("here is a secret, by the rule %s", f.Rule),
			Suggestion: "remove it, and replace it where it is used: git's history keeps what was committed"}
	}
	return out
}

func (a *app) printScan(r secretScan) error {
	if a.global.output != formatJSON && a.global.output != formatYAML {
		a.warnSkipped(r.Skipped)
	}
	switch a.global.output {
	case formatGitHub:
		return render.GitHub(a.stdout, a.repositoryPath(), r.problems())
	case formatSARIF:
		return render.SARIF(a.stdout, process.ReadBuild().Version, a.repositoryPath(), r.problems())
	case formatTable:
		return a.printSecrets(r)
	}
	return a.print(r)
}

// warnSkipped tells what was not looked into: no findings there say nothing.
func (a *app) warnSkipped(files []string) {
	for _, s := range files[:min(len(files), listedSkips)] {
		a.warnLine("not looked into: " + s)
	}
	if more := len(files) - listedSkips; more > 0 {
		fmt.Fprintf(a.stderr, "warning: and %s more; -o json has all\n", render.Plural(more, "file"))
	}
}

func (a *app) printSecrets(r secretScan) error {
	p := a.palette()
	for _, f := range r.Secrets {
		fmt.Fprintf(a.stdout, "%s: %s\n", p.Paint(render.Red, clean(f.Place.String())), f.Rule)
	}
	if a.global.quiet {
		return nil
	}
	verdict := "no secrets"
	if len(r.Secrets) > 0 {
		verdict = render.Plural(len(r.Secrets), "secret") +
			"; remove them, and replace them where they are used: git's history keeps what was committed"
		fmt.Fprintln(a.stdout)
	}
	_, err := fmt.Fprintf(a.stdout, "%s looked into, %s\n", render.Plural(r.Files, "file"), verdict)
	return err
}
