package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"reconcile.dev/reconcile/state/regular"
)

// Folders of the search index and of local caches.
const (
	indexFolder   = "vectors"
	cacheFolder   = ".reconcile/cache"
	embeddingsDir = "embeddings" // in the cache: vectors of a paid endpoint
)

// checkIndex examines the search index: whether it is readable, belongs to the configured embedder, and is ignored by
// git. It may be missing: the first search creates it.
func checkIndex(ctx context.Context, e *Env) []Finding {
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

// unignored reports whether the tree is in a repository that does not ignore a file.
func (e *Env) unignored(ctx context.Context, name string) bool {
	if _, err := e.git(ctx, "rev-parse", "--git-dir"); err != nil {
		return false // no repository, or no git: another check reports it
	}
	_, err := e.git(ctx, "check-ignore", "--quiet", "--no-index", "--", name)
	return err != nil
}

// sizeOf returns the total size in bytes and the number of files below a folder whose names match.
func (e *Env) sizeOf(dir, pattern string) (size, files int64) {
	_ = fs.WalkDir(regular.FS(e.root), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // unreadable folders count as empty
		}
		if ok, _ := path.Match(pattern, path.Base(name)); ok {
			if info, err := d.Info(); err == nil {
				size += info.Size()
				files++
			}
		}
		return nil
	})
	return size, files
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// dropCache removes caches that the next run recreates. It keeps vectors of an endpoint: each is verified when it is
// read.
func (e *Env) dropCache(context.Context) error {
	entries, err := regular.List(e.root, cacheFolder)
	for _, entry := range entries {
		if entry.Name() != embeddingsDir {
			err = errors.Join(err, e.root.RemoveAll(path.Join(cacheFolder, entry.Name())))
		}
	}
	return err
}
