package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"reconcile.dev/reconcile/vectors"
)

// quiet is how long a watcher of the index waits for more changes: before it acts, and before it indexes them. The second
// wait is shorter than the default, to measure faster; both are subtracted.
const quiet = 2 * debounce

// watchedIndex: from saving a file of Go's own source to the moment that the index holds it, while reconcile watches.
func (v *vectorFigures) watchedIndex(ctx context.Context, _ []int) (err error) {
	dir, err := v.indexedStd(ctx)
	if err != nil {
		return err
	}
	w := &watchedFile{index: dir, file: filepath.Join(dir, stdCopy, "strings", "strings.go"), draft: filepath.Join(v.bench.trees, "vectors-saved")}
	if w.text, err = os.ReadFile(w.file); err != nil {
		return err
	}
	settings := filepath.Join(dir, "reconcile.yaml")
	text := fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec:\n"+
		"  watch: {debounce: %v, commitDelay: %v}\n", debounce, quiet-debounce)
	if err := os.WriteFile(settings, []byte(text), 0o666); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(settings)) }()
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	defer w.notify.Close()
	if err := w.notify.Add(filepath.Dir(w.path(deltaPath))); err != nil {
		return err
	}
	stop, err := v.bench.startWatch(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.WriteFile(w.file, w.text, 0o666), stop()) }()
	return v.watchedRows(ctx, w)
}

func (v *vectorFigures) watchedRows(ctx context.Context, w *watchedFile) error {
	if _, err := w.save(ctx, 0, time.Minute); err != nil { // the first answer says that it watches
		return err
	}
	var times []time.Duration
	for n := range edits {
		took, err := w.save(ctx, n+1, 20*time.Second)
		if err != nil {
			return err
		}
		times = append(times, took-quiet)
	}
	p50, most := quantile(times, 0.5), slices.Max(times)
	what := fmt.Sprintf("Go's source watched: save to index - %v", quiet)
	v.bench.row(what+", p50", short(p50), "", short(p50), ms(p50), 50, " ms")
	v.bench.row(what+", most", short(most), "", short(most), ms(most), 0, "")
	return nil
}

// Where the index of a tree is, as the documentation says.
const snapshotPath, deltaPath = "vectors/index.snapshot", "vectors/delta.snapshot"

// watchedFile is a file that is saved again and again, while another process maintains the index.
type watchedFile struct {
	index       string // folder of the tree
	file, draft string
	text        []byte
	notify      *fsnotify.Watcher
}

func (w *watchedFile) path(p string) string { return filepath.Join(w.index, filepath.FromSlash(p)) }

// save saves another edit as editors do, by rename, and returns the time until the index that was written holds it.
func (w *watchedFile) save(ctx context.Context, n int, limit time.Duration) (time.Duration, error) {
	text, err := editBody(w.text, n)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(w.draft, text, 0o666); err != nil {
		return 0, err
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	start := time.Now()
	if err := os.Rename(w.draft, w.file); err != nil {
		return 0, err
	}
	for {
		select {
		case ev := <-w.notify.Events:
			took := time.Since(start)
			if ev.Name != w.path(deltaPath) || !ev.Has(fsnotify.Create) {
				continue
			}
			if holds, err := w.holds(ctx, editedName(n)); holds || err != nil {
				return took, err
			}
		case err := <-w.notify.Errors:
			return 0, err
		case <-late.C:
			return 0, fmt.Errorf("the index did not follow %s within %v", w.file, limit)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// holds reports whether the index on disk finds a word.
func (w *watchedFile) holds(ctx context.Context, word string) (bool, error) {
	data, unmap, err := mapVectors(w.path(snapshotPath))
	if err != nil {
		return false, err
	}
	defer unmap()
	delta, err := os.ReadFile(w.path(deltaPath))
	if err != nil {
		return false, err
	}
	x, err := vectors.Open(data, delta, vectors.Options{Sound: true})
	if err != nil {
		return false, err
	}
	a, err := x.Search(ctx, vectors.Query{Text: word, Mode: vectors.Lexical})
	return err == nil && len(a.Results) > 0, err
}
