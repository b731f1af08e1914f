package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// kinds is the table of kinds that the whole command line works with.
func kinds() schemas.Kinds { return controllers.Schemas() }

// open takes hold of the tree without reading it.
func (a *app) open() (*state.Store, error) {
	s, err := state.Open(a.global.dir, a.storeOptions())
	if err != nil {
		return nil, fmt.Errorf("open the tree in %s: %w", a.global.dir, err)
	}
	return s, nil
}

// storeOptions are those of every store on the tree.
func (a *app) storeOptions() state.Options {
	stored, storedBy := storedIn(a.global.dir)
	return state.Options{
		Kinds: kinds(), Now: a.now, FileNow: time.Now, Agent: "reconcile", Build: buildIdentity(),
		Large: a.frugal, Log: a.log, Stored: stored, StoredBy: storedBy,
	}
}

// storedIn tells how git stores the files of the tree in dir, and what that follows from. The repository is opened when a
// file is asked about, and anew after each question for what it follows from.
func storedIn(dir string) (stored func(path string) func([]byte) []byte, by func() string) {
	var mu sync.Mutex
	open := sync.OnceValue(func() *gitrepo.Conversions { return conversions(dir) })
	stored = func(path string) func([]byte) []byte {
		mu.Lock()
		get := open
		mu.Unlock()
		c := get()
		if c == nil {
			return nil
		}
		return c.Stored(path)
	}
	return stored, func() string {
		mu.Lock()
		defer mu.Unlock()
		open = sync.OnceValue(func() *gitrepo.Conversions { return conversions(dir) })
		return gitrepo.ConversionSources(dir)
	}
}

// conversions are those of the repository that dir is in; nil where there is none that can be read.
func conversions(dir string) *gitrepo.Conversions {
	repo, err := gitrepo.Open(dir)
	if err != nil {
		return nil
	}
	c, err := repo.Conversions(context.Background())
	if err != nil {
		return nil
	}
	return c
}

// frugal trades some time for memory, the more the larger the tree is: with Go's default the heap may grow to twice what a
// tree takes, which with 50,000 objects is more than 300 MB. Until the heap has the size that such a tree takes, nothing is
// collected: most of what is allocated on the way stays.
func (a *app) frugal(files int) {
	then := 60
	if files > state.LargeTree {
		then = 25
	}
	if a.getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	const least, of = 4 << 20, 3 << 9 // the heap that Go begins with, and what a file takes
	first := uint64(files) * of * 100 / max(live[0].Value.Uint64(), least)
	debug.SetGCPercent(max(int(first)-100, then))
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { debug.SetGCPercent(then) })
}

// hasty trades some memory for time, for a command that ends soon and, unless frugal is called, has a small tree: Go
// collects garbage whenever some megabytes were allocated, which is a tenth of the time of a DAG of quick commands.
func (a *app) hasty() { a.collectAt(memstore.HeapGrowth) }

// brisk is hasty for a command that looks at thousands of files and ends: none of what it needs for that is collected.
// Before what takes long and much memory, it is to be undone by steady.
func (a *app) brisk() { a.collectAt(1600) }

// steady collects garbage as Go does by default, or more often if that was set.
func (a *app) steady() {
	if a.getenv("GOGC") == "" {
		const standard = 100
		debug.SetGCPercent(min(debug.SetGCPercent(standard), standard))
	}
}

// collectAt sets by how much the heap may grow before garbage is collected, unless the user has.
func (a *app) collectAt(percent int) {
	if a.getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// load opens the tree and reads all of it, with the statuses that the journals of running processes lead to. It takes no
// lock and changes nothing.
func (a *app) load(ctx context.Context) (*state.Store, *state.Tree, error) {
	s, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	t, err := s.Load(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the tree in %s: %w", a.global.dir, err)
	}
	return s, a.withJournals(s, t), nil
}

// refresh looks again at a tree that load or refresh has returned: at the files that hints name, or at all, and at journals.
func (a *app) refresh(ctx context.Context, s *state.Store, t *state.Tree, hints []string) (*state.Tree, error) {
	if t == a.shown {
		t = a.written
	}
	next, changed, err := s.Refresh(ctx, t, hints)
	switch {
	case err != nil:
		return nil, err
	case t == a.written && len(changed) == 0:
		return a.shown, nil
	}
	return a.withJournals(s, next), nil
}

// withJournals adds what the journals of running processes have to a tree as files have it.
func (a *app) withJournals(s *state.Store, t *state.Tree) *state.Tree {
	a.written, a.shown = t, controllers.Current(t, a.now(), s.Journaled())
	return a.shown
}

// root opens the folder of the tree, for files beside the objects: logs, events, templates.
func (a *app) root() (*os.Root, error) {
	r, err := regular.Root(a.global.dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", a.global.dir, unwrapPath(err))
	}
	return r, nil
}

// parseRef reads kind/name; what it says about a wrong one is about the command line.
func parseRef(word string) (schemas.Ref, error) {
	ref, err := kinds().ParseRef(word)
	if err != nil {
		return schemas.Ref{}, badUsage("%v", err)
	}
	return ref, nil
}

// find returns the object that word names as kind/name.
func find(t *state.Tree, word string) (*state.Entry, error) {
	ref, err := parseRef(word)
	if err != nil {
		return nil, err
	}
	if e := t.Entry(ref); e != nil {
		return e, nil
	}
	return nil, notFound(t, ref)
}

// withRef puts a kind and a name that were given as two words, "dag checks", into one.
func withRef(args []string) []string {
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		args = slices.Concat([]string{args[0] + "/" + args[1]}, args[2:])
	}
	return args
}

// notFound says that ref does not exist, and what was probably meant.
func notFound(t *state.Tree, ref schemas.Ref) error {
	var names []string
	for _, e := range t.Entries(ref.Kind) {
		if !e.Gone() {
			names = append(names, e.Name)
		}
	}
	word := strings.ToLower(ref.Kind)
	if len(names) == 0 {
		return fmt.Errorf("%s does not exist; the tree has no %s at all", ref, word)
	}
	hint := didYouMean(ref.Name, names)
	if hint == "" {
		hint = fmt.Sprintf("; \"reconcile get %s\" lists what there is", word)
	}
	return fmt.Errorf("%s does not exist%s", ref, hint)
}

// findNode checks that a DAG has a node.
func findNode(e *state.Entry, node string) error {
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return fmt.Errorf("%s has no nodes", e.Ref)
	}
	var names []string
	for _, n := range spec.Nodes {
		names = append(names, n.Name)
	}
	if slices.Contains(names, node) {
		return nil
	}
	hint := didYouMean(node, names)
	if hint == "" {
		hint = "; its nodes: " + shorten(names, 20)
	}
	return fmt.Errorf("%s has no node %q%s", e.Ref, node, hint)
}

// shorten lists at most n words.
func shorten(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}
