package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// parseAll is the command bench parse: read every spec, archived ones included, with yaml.v3 and validate it against the published
// JSON Schema of its kind, as a plain program would.
func parseAll(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: bench parse DIR")
	}
	compiled := map[string]*jsonschema.Schema{}
	parse := func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return parseFile(p, compiled)
	}
	if err := filepath.WalkDir(filepath.Join(args[0], "specs"), parse); err != nil {
		return err
	}
	err := filepath.WalkDir(filepath.Join(args[0], state.ArchiveDir("state")), parse)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was archived yet
	}
	return err
}

func parseFile(p string, compiled map[string]*jsonschema.Schema) error {
	data, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	kind, _ := doc["kind"].(string)
	if compiled[kind] == nil {
		if compiled[kind], err = compileSchema(kind); err != nil {
			return err
		}
	}
	if err := compiled[kind].Validate(doc); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

// compileSchema compiles the published schema of a kind.
func compileSchema(kind string) (*jsonschema.Schema, error) {
	for _, k := range controllers.Schemas() {
		if k.Name == kind {
			return jsonschema.CompileString(kind+".schema.json", string(schemas.Schema(k)))
		}
	}
	return nil, fmt.Errorf("no kind %q", kind)
}

// decide: the time that controllers take for DAGs of 1,000 and 10,000 nodes, in this process.
func (b *bench) decide(context.Context, []int) error {
	var times []time.Duration
	for _, n := range []int{1000, 10_000} {
		t, err := wideTree(n)
		if err != nil {
			return err
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var samples []usage
		for range 2*b.runs + 1 {
			start := time.Now()
			settle.Tree(t, now, nil)
			samples = append(samples, usage{wall: time.Since(start)})
		}
		times = append(times, median(samples[1:]).wall)
	}
	b.row("decide 1000 nodes", short(times[0]), "", trim(ms(times[0]))+" ms", ms(times[0]), 10, " ms")
	b.ratio("decide 10000 nodes, beside 1000", times[1], times[0], 12)
	return nil
}

// wideTree is a tree with one DAG of n nodes; each needs up to three earlier ones.
func wideTree(n int) (*state.Tree, error) {
	spec := &schemas.DAGSpec{Session: "one"}
	for i := range n {
		node := schemas.Node{Name: fmt.Sprintf("n%d", i), Run: []string{"true"}}
		if i > 10 {
			node.Needs = []string{fmt.Sprintf("n%d", i-1-i%7), fmt.Sprintf("n%d", i/2), fmt.Sprintf("n%d", i/3)}
		}
		spec.Nodes = append(spec.Nodes, node)
	}
	var entries []*state.Entry
	for _, o := range []struct {
		kind schemas.Kind
		name string
		spec schemas.Spec
	}{{schemas.DAGKind, "wide", spec}, {schemas.SessionKind, "one", &schemas.SessionSpec{Title: "one"}}} {
		canonical, err := json.Marshal(o.spec)
		if err != nil {
			return nil, err
		}
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(canonical))
		object := schemas.NewObject(o.kind, schemas.Metadata{Name: o.name}, "specs/"+o.name+".yaml", digest, canonical, o.spec.References())
		entries = append(entries, &state.Entry{Ref: object.Ref, Object: object})
	}
	return state.NewTree(controllers.Schemas(), nil, nil, entries...), nil
}

// commit: a hundred changed statuses in the largest tree, compared with git add and git commit of the same paths.
func (b *bench) commit(ctx context.Context, sizes []int) error {
	n := sizes[len(sizes)-1]
	dir, err := b.tree(ctx, n)
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "state", "dags", "*.json"))
	if err != nil {
		return err
	}
	for i, p := range paths {
		paths[i] = "state/dags/" + filepath.Base(p)
	}
	paths = paths[:min(100, len(paths))]
	change := func() error {
		for _, p := range paths {
			if err := appendLine(filepath.Join(dir, p)); err != nil {
				return err
			}
		}
		return nil
	}
	after := func(commit func(context.Context, string, []string) (usage, error)) func() (usage, error) {
		return func() (usage, error) {
			if err := change(); err != nil {
				return usage{}, err
			}
			return commit(ctx, dir, paths)
		}
	}
	got, err := alternate(b.runs, after(commitHere), after(commitByGit))
	if err != nil {
		return err
	}
	b.ratio(fmt.Sprintf("commit %d statuses of %d objects, beside git", len(paths), n), got[0].wall, got[1].wall, 1)
	return nil
}

// commitHere commits as a run of reconcile does.
func commitHere(ctx context.Context, dir string, paths []string) (usage, error) {
	start := time.Now()
	repo, err := gitrepo.OpenToCommit(dir)
	if err != nil {
		return usage{}, err
	}
	_, err = repo.Commit(ctx, gitrepo.Commit{Paths: paths, Message: "bench", When: start, Sign: "never"})
	return usage{wall: time.Since(start)}, err
}

// commitByGit is git add and git commit.
func commitByGit(ctx context.Context, dir string, paths []string) (usage, error) {
	add, err := process(gitCommand(ctx, dir, append([]string{"add", "--"}, paths...)...))
	if err != nil {
		return usage{}, err
	}
	u, err := process(gitCommand(ctx, dir, "commit", "-q", "--no-gpg-sign", "-m", "bench"))
	u.wall, u.cpu = u.wall+add.wall, u.cpu+add.cpu
	return u, err
}

// appendLine changes a file of JSON, and leaves it JSON.
func appendLine(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o666)
}
