package ops

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

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
)

const (
	// AllowSecret is the comment by which a person marks a line as free of secrets.
	AllowSecret = "reconcile:allow-secret"
	// largestScanned bounds the files that are read, in bytes. reconcile writes no larger ones.
	largestScanned = 256 << 20
)

// SecretScan is the result of ScanSecrets.
type SecretScan struct {
	Files   int           `json:"files"` // number of files read
	Secrets []FoundSecret `json:"secrets"`
	Skipped []string      `json:"skipped,omitempty"` // skipped files, each with the reason
}

// FoundSecret is the place of a secret, without its content.
type FoundSecret struct {
	schemas.Place
	Rule string `json:"rule"`
}

// ScanSecrets scans files and folders for secrets and private text, or by default all files of the tree.
func ScanSecrets(ctx context.Context, env Env, paths []string) (scan SecretScan, err error) {
	defer func() { err = typed(err) }()
	s, err := env.Tree.Open()
	if err != nil {
		return scan, err
	}
	defer s.Close()
	scan.Secrets = []FoundSecret{}
	if len(paths) > 0 {
		for _, p := range paths {
			if err := scan.walk(ctx, env.CallerPath(p), filepath.ToSlash(p)); err != nil {
				return scan, err
			}
		}
		return scan, nil
	}
	folders := s.Settings().Folders
	for _, p := range []string{schemas.SettingsPath, folders.Specs, folders.State} {
		if _, err := s.Root().Lstat(p); err != nil {
			continue
		}
		if err := scan.walk(ctx, filepath.Join(s.Dir(), filepath.FromSlash(p)), p); err != nil {
			return scan, err
		}
	}
	return scan, nil
}

// walk reads the regular files in full, in order of their names; it does not follow links.
func (r *SecretScan) walk(ctx context.Context, full, shown string) error {
	return filepath.WalkDir(full, func(name string, d fs.DirEntry, err error) error {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("%s: %w", shown, regular.Cause(err))
		}
		if d.IsDir() {
			if name != full && treepath.OfName(d.Name()) != treepath.User {
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
		return r.read(name, path.Join(shown, filepath.ToSlash(rel)))
	})
}

// read scans one file. A deleted one is skipped.
func (r *SecretScan) read(name, shown string) error {
	info, err := os.Lstat(name)
	if err == nil && info.Size() > largestScanned {
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s: it has more than %d MiB", shown, largestScanned>>20))
		return nil
	}
	var data []byte
	if err == nil {
		data, err = regular.ReadPath(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", shown, regular.Cause(err))
	case bytes.IndexByte(data, 0) >= 0:
		r.Skipped = append(r.Skipped, shown+": it is no text")
		return nil
	}
	r.Files++
	r.search(string(data), shown)
	return nil
}

// search adds the findings in a text.
func (r *SecretScan) search(text, shown string) {
	found := slices.Concat(secrets.Find(text), secrets.Private(text))
	slices.SortFunc(found, func(a, b secrets.Finding) int { return cmp.Compare(a.Start, b.Start) })
	line, start := 1, 0 // of the finding's line
	for _, f := range found {
		line += strings.Count(text[start:f.Start], "\n")
		start += strings.LastIndexByte(text[start:f.Start], '\n') + 1
		if rest, _, _ := strings.Cut(text[start:], "\n"); strings.Contains(rest, AllowSecret) {
			continue
		}
		at := schemas.Place{Path: shown, Line: line, Column: 1 + utf8.RuneCountInString(text[start:f.Start])}
		r.Secrets = append(r.Secrets, FoundSecret{at, f.Rule})
	}
}

// Problems converts the secrets to problems of their files.
func (r *SecretScan) Problems() []schemas.Problem {
	out := make([]schemas.Problem, len(r.Secrets))
	for i, f := range r.Secrets {
		out[i] = schemas.Problem{Place: f.Place, Severity: schemas.Error, Code: f.Rule,
			Message:    fmt.Sprintf("here is a secret, by the rule %s", f.Rule),
			Suggestion: "remove it, and replace it where it is used: git's history keeps what was committed"}
	}
	return out
}
