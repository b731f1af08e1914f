package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// namesAsked is how many names of each sort are searched for.
const namesAsked = 75

// indexedSize is the default of index.maxFileSize.
const indexedSize = 1 << 20

// declaredNames are the names that stand once in a tree of Go, in whatever case: of functions, methods and types, and of
// constants and variables.
func declaredNames(dir string) (defined, values []string, err error) {
	count := map[string]int{}
	note := func(to *[]string, id *ast.Ident) {
		*to = append(*to, id.Name)
		count[strings.ToLower(id.Name)]++
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > indexedSize {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				note(&defined, d.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						note(&defined, s.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							note(&values, id)
						}
					}
				}
			}
		}
		return nil
	})
	again := func(name string) bool { return len(name) < 4 || count[strings.ToLower(name)] > 1 }
	return slices.DeleteFunc(defined, again), slices.DeleteFunc(values, again), err
}

// names: whether a search for an exact name, which is declared once in Go's own source, returns the declaration
// first.
func (v *vectorFigures) names(ctx context.Context, _ []int) error {
	dir, err := v.indexedStd(ctx)
	if err != nil {
		return err
	}
	defined, values, err := declaredNames(filepath.Join(dir, stdCopy))
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(v.bench.seed, 7))
	for _, sort := range []struct {
		what  string
		names []string
	}{{"functions, methods, types", defined}, {"constants, variables", values}} {
		first := 0
		random.Shuffle(len(sort.names), func(i, k int) { sort.names[i], sort.names[k] = sort.names[k], sort.names[i] })
		asked := sort.names[:min(namesAsked, len(sort.names))]
		for _, name := range asked {
			cmd := v.bench.reconcile(ctx, dir, "search", name, "-k", "1", "-o", "json")
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("search %s: %w", name, err)
			}
			var said struct{ Results []struct{ Name string } }
			if err := json.Unmarshal(out, &said); err != nil {
				return fmt.Errorf("search %s: %w", name, err)
			}
			if len(said.Results) > 0 && strings.HasSuffix("."+said.Results[0].Name, "."+name) {
				first++
			} else {
				fmt.Fprintf(v.bench.out, "  %s is not first\n", name)
			}
		}
		v.bench.least("Go's source, exact names first: "+sort.what, fmt.Sprintf("%d of %d", first, len(asked)), "", "",
			100*float64(first)/float64(len(asked)), 100, " %")
	}
	return nil
}

// known is how many observations are searched for, before their issues are compacted and after.
const known = 60

// memoryKnown: of observations, some of them similar, how many are found by some of their words, before and after a
// compaction, and how many tokens the memory has.
func (b *bench) memoryKnown(ctx context.Context, _ []int) error {
	n := memoryStores[0]
	r := &remembered{
		dir: filepath.Join(b.trees, fmt.Sprint("memory-known-", n)), n: n, texts: lexicaltest.New(b.seed),
		begun: time.Now().Add(-30 * 24 * time.Hour), alike: 5,
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	return r.in(func(_ *state.Store, m *memstore.Files) error {
		items, err := knownItems(ctx, m, rand.New(rand.NewPCG(b.seed, 9)))
		if err != nil {
			return err
		}
		before, err := liveTokens(ctx, m)
		if err != nil {
			return err
		}
		found, err := hits(ctx, m, items)
		if err != nil {
			return err
		}
		merged := 0
		for issue := range max(1, n/100) {
			done, err := m.Compact(ctx, 1+issue)
			if err != nil {
				return err
			}
			merged += done.Before - done.After
		}
		if merged == 0 {
			return errors.New("no compaction merged anything")
		}
		after, err := hits(ctx, m, items)
		if err != nil {
			return err
		}
		tokens, err := liveTokens(ctx, m)
		if err != nil {
			return err
		}
		b.least(b.memoryName(r, "known items found after a compaction"), fmt.Sprintf("%d of %d", after, len(items)),
			fmt.Sprintf("%d before", found), "", 100*float64(after)/float64(max(1, found)), 100, " %")
		b.row(b.memoryName(r, "tokens after a compaction"), fmt.Sprint(tokens), fmt.Sprint(before), "",
			100*float64(tokens)/float64(before), 100, " %")
		return nil
	})
}

// item is an observation, and a question for it, or all that it says.
type item struct{ id, question string }

// knownItems chooses observations at random, and the last four words of each, which those like it do not have, as the question.
func knownItems(ctx context.Context, m *memstore.Files, random *rand.Rand) (items []item, err error) {
	var all []item
	err = m.Each(ctx, func(o *schemas.Observation) error {
		all = append(all, item{o.ID, o.Content})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for range known {
		o := all[random.IntN(len(all))]
		words := strings.Fields(o.question)
		items = append(items, item{o.id, strings.Join(words[max(0, len(words)-4):], " ")})
	}
	return items, nil
}

// liveTokens is what all observations have together, those aside that were merged into others.
func liveTokens(ctx context.Context, m *memstore.Files) (sum int, err error) {
	rows, err := m.List(ctx, memstore.Filter{})
	for _, r := range rows {
		sum += r.Tokens
	}
	return sum, err
}

// hits counts the questions that have their observation among the first ten.
func hits(ctx context.Context, m *memstore.Files, items []item) (n int, err error) {
	for _, it := range items {
		rows, err := m.Search(ctx, memstore.Query{Text: it.question, Limit: 10})
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			if row.ID == it.id {
				n++
				break
			}
		}
	}
	return n, nil
}
