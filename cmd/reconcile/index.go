package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
)

// indexFlags are the flags of index.
type indexFlags struct {
	rebuild, stats, verify bool
}

const indexLong = `Bring the index up to date, which search, related and path do by themselves. It is derived from the files of the
tree and lies in vectors/, which git ignores: deleted, it is built again, the same byte for byte.

--verify compares the index with one that is built anew, and what its vectors find with what looking at each of them
finds; it exits with 1 where they differ.`

func newIndexCmd(a *app) *cobra.Command {
	o := &indexFlags{}
	cmd := &cobra.Command{
		Use:     "index",
		Short:   "Bring the index of search up to date, rebuild or check it",
		Long:    indexLong,
		Example: "  reconcile index --stats\n  reconcile index --rebuild",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.index(cmd.Context(), *o) },
	}
	cmd.Flags().BoolVar(&o.rebuild, "rebuild", false, "build it anew from the files")
	cmd.Flags().BoolVar(&o.stats, "stats", false, "print how much is in it")
	cmd.Flags().BoolVar(&o.verify, "verify", false, "compare it with one that is built anew, and with a search through everything")
	return cmd
}

// indexing says what keeping the index takes.
func (a *app) indexing() indexing.Options {
	note := func(text string) { a.note("%s", text) }
	return indexing.Options{Tree: a.config(), Warn: a.warnIndex, Note: note, Progress: a.indexProgress()}
}

// keeper is who keeps the index of an open tree.
func (a *app) keeper(ctx context.Context, s *state.Store, t *state.Tree) (k *index.Keeper, err error) {
	k, a.refused, err = indexing.NewKeeper(ctx, a.indexing(), s, t)
	return k, err
}

// openIndexed opens the tree, and who keeps its index.
func (a *app) openIndexed(ctx context.Context) (*state.Store, *state.Tree, *index.Keeper, error) {
	process.TuneGC(a.getenv, process.GCBatch)
	s, t, err := a.load(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	k, err := a.keeper(ctx, s, t)
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	k.Long = func() { process.TuneGC(a.getenv, process.GCDefault) }
	return s, t, k, nil
}

// withIndex brings the index up to date and hands it to do.
func (a *app) withIndex(ctx context.Context, do func(*state.Store, *index.Kept) error) error {
	s, t, k, err := a.openIndexed(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return indexing.Use(ctx, a.indexing(), k, t, func(x *index.Kept) error { return do(s, x) })
}

// warnIndex tells of what the index has to do without, and keeps nobody from working.
func (a *app) warnIndex(err error) {
	if denied, ok := errors.AsType[*egress.DeniedError](err); ok {
		if !denied.FirstReport() {
			return
		}
		err = denied
	}
	a.warnLine(err.Error())
	if a.log != nil {
		a.log.Warn("index", "message", err.Error())
	}
}

// indexProgress tells people on a terminal how far building is; elsewhere a long one says a line now and then.
func (a *app) indexProgress() func(step string, done, total int) {
	const often = 2 * time.Second
	last := time.Now()
	return func(step string, done, total int) {
		if now := time.Now(); now.Sub(last) >= often && total > 0 {
			last = now
			a.note("index: %s %s of %s", step, render.Grouped(done), render.Grouped(total))
		}
	}
}

func (a *app) index(ctx context.Context, o indexFlags) error {
	s, t, k, err := a.openIndexed(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var x *index.Kept
	k.Retry = true
	if o.rebuild {
		x, err = k.Rebuild(ctx, t)
	} else {
		x, err = k.Complete(ctx, t)
	}
	if err != nil {
		return err
	}
	defer x.Close()
	if x.How.Rebuilt != "" {
		indexing.Ignore(a.indexing(), k)
	}
	if o.verify {
		if err := a.verifyIndex(ctx, k, t, x); err != nil {
			return err
		}
	}
	if o.stats {
		return a.printIndexStats(newIndexStats(x, a.book(s)))
	}
	if a.global.output != formatTable {
		return a.print(newIndexStats(x, a.book(s)))
	}
	a.noteHow(x)
	return nil
}

// noteHow says what was done.
func (a *app) noteHow(x *index.Kept) {
	switch how := x.How; {
	case how.Rebuilt != "":
		a.note("built the index: %s of %s, in %s (%s)", render.GroupedPlural(x.Graph().Nodes(), "node"), render.GroupedPlural(how.Inputs, "input"),
			how.Took.Round(time.Millisecond), how.Rebuilt)
	case how.Changed+how.Gone > 0:
		a.note("took in %s that changed and %d that went, in %s", render.Plural(how.Changed, "input"), how.Gone, how.Took.Round(time.Millisecond))
	default:
		a.note("the index is up to date: %s of %s", render.GroupedPlural(x.Graph().Nodes(), "node"), render.GroupedPlural(how.Inputs, "input"))
	}
}

// verifyIndex compares an index with what it should be.
func (a *app) verifyIndex(ctx context.Context, k *index.Keeper, t *state.Tree, x *index.Kept) error {
	v, err := k.Verify(ctx, t, x)
	if err != nil {
		return err
	}
	a.note("verified: %s; of the 10 nearest of %d vectors %.4f were found, with --thorough %.4f", v.Compared, v.Recall.Asked,
		v.Recall.Default, v.Recall.Thorough)
	if !v.Sound {
		return fmt.Errorf("the index is not what its files come to: %s; run: reconcile index --rebuild", v.Compared)
	}
	return nil
}

// indexStats is what -o json prints of an index.
type indexStats struct {
	Nodes   int `json:"nodes"`
	Edges   int `json:"edges"`
	Inputs  int `json:"inputs"`
	Changed int `json:"changed"` // nodes that are in the delta
	Large   int `json:"large"`   // files that are left out because they are larger than index.maxFileSize
	Binary  int `json:"binary"`  // files that are left out because they are no text
	// Unreadable are files and folders that are left out because they cannot be read.
	Unreadable int    `json:"unreadable"`
	Model      string `json:"model,omitempty"`
	// M and EfConstruction are what its links were made with, EfSearch and EfThorough how many candidates searches keep.
	M              int            `json:"m"`
	EfConstruction int            `json:"efConstruction"`
	EfSearch       int            `json:"efSearch"`
	EfThorough     int            `json:"efThorough"`
	Tools          string         `json:"tools,omitempty"`
	Types          map[string]int `json:"types"`
	EdgesBy        map[string]int `json:"edgesByType"`
	Domains        map[string]int `json:"domains"`
	shape
}

func newIndexStats(x *index.Kept, b *index.Book) indexStats {
	s := x.Graph().Stats()
	out := indexStats{
		Nodes: s.Nodes, Edges: s.Edges, Inputs: x.How.Inputs, Changed: x.Changed(), Model: x.Meta().Model, Tools: x.Meta().Tools,
		M: x.M, EfConstruction: x.EfConstruction,
		Large: x.How.LeftOut.Large, Binary: x.How.LeftOut.Binary, Unreadable: x.How.LeftOut.Unreadable,
		Types: map[string]int{}, EdgesBy: map[string]int{}, Domains: map[string]int{},
	}
	out.EfSearch, out.EfThorough = x.Efforts()
	out.shape = shapeOf(x.Graph(), s, b)
	for t, n := range s.NodesByType {
		out.Types[t.String()] = n
	}
	for d, n := range s.NodesByDomain {
		out.Domains[d.String()] = n
	}
	for t, n := range s.EdgesByType {
		out.EdgesBy[t.String()] = n
	}
	return out
}

func (a *app) printIndexStats(s indexStats) error {
	if a.global.output != formatTable {
		return a.print(s)
	}
	t := render.NewTable(a.palette(), "DOMAIN", "KIND", "NODES")
	for _, d := range graph.Domains {
		for _, kind := range d.Types() {
			if n := s.Types[kind.String()]; n > 0 {
				t.Row(d.String(), kind.String(), render.Grouped(n))
			}
		}
	}
	if err := t.Write(a.stdout); err != nil {
		return err
	}
	if s.Nodes > 0 {
		fmt.Fprintln(a.stdout)
	}
	fmt.Fprintf(a.stdout, "%s, %s, %s; vectors by %s\n", render.GroupedPlural(s.Nodes, "node"),
		render.GroupedPlural(s.Edges, "edge"), render.GroupedPlural(s.Inputs, "input"), orNothing(s.Model))
	if s.Model != "" {
		fmt.Fprintf(a.stdout, "links made with m %d and efConstruction %d; a search keeps %d candidates, a thorough one %d\n",
			s.M, s.EfConstruction, s.EfSearch, s.EfThorough)
	}
	if s.Large+s.Binary > 0 {
		fmt.Fprintf(a.stdout, "left out: %s larger than index.maxFileSize, %s without text\n", render.Plural(s.Large, "file"), render.Plural(s.Binary, "file"))
	}
	if s.Unreadable > 0 {
		fmt.Fprintf(a.stdout, "left out because they cannot be read: %s\n", render.Plural(s.Unreadable, "path"))
	}
	a.printShape(&s.shape)
	return nil
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
