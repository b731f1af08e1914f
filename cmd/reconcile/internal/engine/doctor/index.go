package doctor

import (
	"context"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// Folders of the search index and of local caches.
const (
	indexFolder   = "vectors"
	cacheFolder   = ".reconcile/cache"
	embeddingsDir = "embeddings" // in the cache: vectors of a paid endpoint
)

// checkIndex examines the search index: whether it is readable, belongs to the configured embedder, and is ignored by
// git. It may be missing: the first search creates it.
func checkIndex(ctx context.Context, e *Patient) []Finding {
	if e.tree == nil || e.root == nil {
		return skipped("the tree cannot be read")
	}
	if e.Index == nil {
		return skipped("this program has none")
	}
	size, files := e.sizeOf(indexFolder, "*.snapshot")
	caches, _ := e.sizeOf(cacheFolder, "*")
	if files == 0 {
		return ok(fmt.Sprintf("there is none; the first search makes it; caches: %s", megabytes(caches)))
	}
	var found []Finding
	detail, err := e.Index(ctx, e.store, e.tree)
	if errors.Is(err, vectors.ErrOtherVersion) {
		detail, err = fmt.Sprintf("%v; the next search builds it again", err), nil
	}
	if err != nil {
		f := warn(fmt.Sprintf("the index of search cannot be used: %v", err),
			"doctor --fix builds it anew, as the next search would do")
		if e.Reindex != nil {
			f = f.by(func(ctx context.Context) error { return e.Reindex(ctx, e.store, e.tree) })
		}
		found = append(found, f)
	}
	if e.unignored(ctx, indexFolder+"/index.snapshot") {
		found = append(found, warn("git does not ignore "+indexFolder+"/*.snapshot, the index of search, which is derived and large",
			"add the line /"+indexFolder+"/*.snapshot to .gitignore"))
	}
	if len(found) > 0 {
		return found
	}
	return ok(fmt.Sprintf("%s; %s; caches: %s", detail, megabytes(size), megabytes(caches)))
}

// Options configure an examination.
type Options struct {
	Tree     tree.Config
	Indexing indexing.Options
	// WarnMemory is called with problems of the memory.
	WarnMemory func(text string)
	// Sandbox confines the programs of agents; nil: it cannot.
	Sandbox *sandbox.Host
}

// examineIndex describes an existing index, or returns why it is unusable.
func (o Options) examineIndex(ctx context.Context, s *state.Store, t *state.Tree) (string, error) {
	k, _, err := indexing.NewKeeper(ctx, o.Indexing, s, t)
	if err != nil {
		return "", err
	}
	return indexing.Examine(k, t)
}

// rebuildIndex replaces an unusable index.
func (o Options) rebuildIndex(ctx context.Context, s *state.Store, t *state.Tree) error {
	k, _, err := indexing.NewKeeper(ctx, o.Indexing, s, t)
	if err != nil {
		return err
	}
	x, err := k.Rebuild(ctx, t)
	if err != nil {
		return err
	}
	x.Close()
	return nil
}
