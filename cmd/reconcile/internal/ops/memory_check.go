package ops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// AuditMemoryRequest requests an audit of the memory.
type AuditMemoryRequest struct {
	Most   memory.AuditBounds
	Unused time.Duration // age from which on an observation counts as never recalled
	Since  time.Time     // only observations learned or recalled since
}

// AuditMemoryResult has the findings.
type AuditMemoryResult struct {
	memory.Audit
	Past []string `json:"past"` // exceeded bounds
}

// AuditMemory audits the observations and records of the memory for duplicates, stale and unused observations, and
// secrets.
func AuditMemory(ctx context.Context, env Env, q AuditMemoryRequest) (r AuditMemoryResult, err error) {
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) (err error) {
		in := memory.AuditInput{Now: env.Tree.Now(), Unused: q.Unused, Since: q.Since, Stale: m.Stale}
		if in.Records, err = m.Records(); err != nil {
			return err
		}
		err = m.Each(ctx, func(o *schemas.Observation) error {
			in.Observations = append(in.Observations, *o)
			return nil
		})
		if err != nil {
			return err
		}
		r = AuditMemoryResult{Audit: memory.NewAudit(in), Past: []string{}}
		for _, s := range r.Sorts(q.Most) {
			if s.Past() {
				r.Past = append(r.Past, fmt.Sprintf("%s: %d, at most %d allowed", s.Name, s.Found, s.Most))
			}
		}
		return nil
	})
	return r, err
}

// Methods of an evaluation.
const (
	BySearch = "search"
	ByRecall = "recall"
)

// EvalMemoryRequest requests an evaluation of the memory with known answers.
type EvalMemoryRequest struct {
	Gold  Text   // the questions, with the ids of their answers
	By    string // BySearch or ByRecall
	Least memory.EvalBounds
}

// EvalMemoryResult has the metrics of an evaluation.
type EvalMemoryResult struct {
	By string `json:"by"`
	memory.Evaluation
	Unknown []string        `json:"unknown"` // expected ids that the memory lacks
	Past    []string        `json:"past"`    // violated bounds
	Answers []memory.Answer `json:"answers"`
}

// EvalMemory evaluates the memory by the questions of a gold set. It records no recalls.
func EvalMemory(ctx context.Context, env Env, q EvalMemoryRequest) (r EvalMemoryResult, err error) {
	if err := q.check(); err != nil {
		return r, err
	}
	data, err := io.ReadAll(q.Gold)
	if err != nil {
		return r, typed(err)
	}
	questions, err := memory.ParseGold(data)
	if err != nil {
		return r, badRequest("%s: %v", q.Gold.Name, err)
	}
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) error {
		if r, err = evaluate(ctx, m, q.By, questions); err != nil {
			return err
		}
		r.Past = r.Evaluation.Past(q.Least)
		if n := len(r.Unknown); n > 0 {
			env.warnMemory(fmt.Sprintf("the memory does not have %d of the expected observations, %s first; "+
				"run reconcile if they are in specs, or correct %s", n, r.Unknown[0], q.Gold.Name))
		}
		return nil
	})
	return r, err
}

func (q *EvalMemoryRequest) check() error {
	if ways := []string{BySearch, ByRecall}; !slices.Contains(ways, q.By) {
		return badField("by", " %q%s: there are %s", q.By, schemas.DidYouMean(q.By, ways), strings.Join(ways, " and "))
	}
	for _, least := range []float64{q.Least.Recall1, q.Least.Recall5, q.Least.Recall10, q.Least.MRR, q.Least.NDCG} {
		if math.IsNaN(least) || least < 0 || least > 1 {
			return badRequest("a bound of %v: shares are between 0 and 1", least)
		}
	}
	if q.Least.Tokens < 0 {
		return badField("max-tokens", " %d: a number of tokens is wanted, 0 for no bound", q.Least.Tokens)
	}
	return nil
}

// knownIDs has the length of every observation, and the replacements by compaction.
type knownIDs struct {
	tokens map[string]int
	merged map[string]string
}

func knownOf(ctx context.Context, m *memstore.Files) (knownIDs, error) {
	k := knownIDs{map[string]int{}, map[string]string{}}
	return k, m.Each(ctx, func(o *schemas.Observation) error {
		k.tokens[o.ID] = o.Tokens
		for _, id := range o.Compacts {
			k.merged[id] = o.ID
		}
		return nil
	})
}

// merge replaces ids with those of the observations that they were merged into, without duplicates.
func (k *knownIDs) merge(ids []string) []string {
	var out []string
	for _, id := range ids {
		for range len(k.merged) { // follow repeated merges; a cycle in damaged files ends
			next, ok := k.merged[id]
			if !ok {
				break
			}
			id = next
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

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
