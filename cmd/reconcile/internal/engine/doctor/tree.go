package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/outputs"
	"reconcile.dev/reconcile/state/regular"
)

// checkTree examines specs and settings with the code of a run.
func checkTree(ctx context.Context, e *Patient) []Finding {
	switch {
	case e.root == nil || e.store == nil:
		if _, err := e.Open(false); errors.Is(err, state.ErrFolder) {
			return []Finding{noFolder(err)}
		}
		return []Finding{bad(e.Dir+" cannot be opened", "check that it is a folder and that you may read it")}
	case e.tree == nil:
		_, err := e.store.Load(ctx)
		if errors.Is(err, state.ErrFolder) {
			return []Finding{noFolder(err)}
		}
		return []Finding{bad(fmt.Sprintf("%s cannot be read: %v", e.Dir, err), "check the permissions of its folders")}
	}
	specs := e.settings().Folders.Specs
	if _, err := e.root.Stat(specs); errors.Is(err, fs.ErrNotExist) {
		return []Finding{warn("there is no folder "+specs, "reconcile init makes a tree")}
	}
	var errs, warnings int
	for _, p := range e.tree.Problems() {
		switch {
		case p.Code == damagedState || p.Code == damagedJournal:
		case p.Severity == schemas.Error:
			errs++
		default:
			warnings++
		}
	}
	detail := fmt.Sprintf("%s, %s, %s", counted(e.tree.Len(), "object"), counted(errs, "error"),
		counted(warnings, "warning"))
	const fix = "reconcile validate shows them, with file and line"
	switch {
	case errs > 0:
		f := bad(detail, fix)
		f.Invalid = true
		return []Finding{f}
	case warnings > 0:
		return []Finding{warn(detail, fix)}
	}
	return ok(detail)
}

// Codes of problems that are not about specs.
const (
	damagedState   = "damaged-state"
	damagedJournal = "damaged-journal"
)

// noFolder is the finding of a file in place of one of the tree's folders.
func noFolder(err error) Finding {
	f := bad(err.Error(), "what is in the tree was not examined")
	f.Invalid = true
	return f
}

// checkState examines whether the files that reconcile and other programs wrote are readable.
func checkState(_ context.Context, e *Patient) []Finding {
	if e.tree == nil {
		return skipped("the tree cannot be read")
	}
	var found []Finding
	for _, p := range e.tree.Problems() {
		if p.Code == damagedState {
			found = append(found, bad(fmt.Sprintf("%s: %s", p.Place, p.Message),
				"doctor --fix sets it aside under .reconcile/damaged; the next run writes it anew").by(e.moveDamaged))
		}
	}
	shared := e.settings().Folders.State + "/agent-status.json"
	if data, err := regular.Read(e.root, shared); !errors.Is(err, fs.ErrNotExist) && (err != nil || !json.Valid(data)) {
		found = append(found, bad(shared+" is not valid JSON",
			"the next run sets it aside under .reconcile/damaged and writes it anew"))
	}
	if len(found) > 0 {
		return found
	}
	return ok("every status and record can be read")
}

// moveDamaged moves damaged state away, under the lock of the tree. Like the next run, it merges ledgers with git
// conflict markers, and keeps the intact records of others.
func (e *Patient) moveDamaged(ctx context.Context) error {
	return e.withLock(ctx, func() error {
		t, err := e.store.Load(ctx)
		if err != nil {
			return err
		}
		for _, p := range t.Problems() {
			if issue, ok := state.LedgerIssue(p.Ref); ok && p.Code == state.DamagedState {
				// Ledgers that cannot be merged are moved away with the rest.
				_ = e.store.Fold(ctx, p.Path, func(old []byte) ([]byte, error) { return clarify.Unite(old, issue) })
			}
		}
		_, err = e.store.MoveAside(ctx, clarify.Salvage)
		return err
	})
}

// checkDamaged reports files that were moved away: only people can decide whether they are needed.
func checkDamaged(_ context.Context, e *Patient) []Finding {
	if e.root == nil {
		return skipped("the tree cannot be read")
	}
	var names []string
	_ = fs.WalkDir(regular.FS(e.root), ".reconcile/damaged", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return nil // unreadable folders count as empty
	})
	if len(names) == 0 {
		return ok("no file was set aside")
	}
	return []Finding{warn(fmt.Sprintf("set aside because they could not be read: %s", some(names)),
		"look at them, then remove .reconcile/damaged")}
}

// dropCache removes caches that the next run recreates. It keeps vectors of an endpoint: each is verified when it is
// read.
func (e *Patient) dropCache(context.Context) error {
	entries, err := regular.List(e.root, cacheFolder)
	for _, entry := range entries {
		if entry.Name() != embeddingsDir {
			err = errors.Join(err, e.root.RemoveAll(path.Join(cacheFolder, entry.Name())))
		}
	}
	return err
}

// eachJSON reads the JSON files of a folder, sorted by name. A missing folder is empty.
func eachJSON(root *os.Root, dir string, do func(name string, data []byte)) error {
	entries, err := regular.List(root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || path.Ext(entry.Name()) != ".json" {
			continue
		}
		name := path.Join(dir, entry.Name())
		data, readErr := regular.Read(root, name)
		if errors.Is(readErr, fs.ErrNotExist) {
			continue // it was just replaced or removed
		}
		if readErr != nil {
			return readErr
		}
		do(name, data)
	}
	return err
}

// checkOutputs compares the entries of the output cache with their names, which are digests.
func checkOutputs(ctx context.Context, e *Patient) []Finding {
	if e.root == nil {
		return skipped("the tree cannot be read")
	}
	stats, err := outputs.Verify(ctx, e.root)
	if err != nil {
		return []Finding{warn(err.Error(), "check the permissions of "+outputs.Dir)}
	}
	if len(stats.Wrong) == 0 {
		return ok(fmt.Sprintf("%s of nodes in the cache, %d MiB", counted(stats.Entries, "output"), stats.Bytes>>20))
	}
	drop := func(context.Context) error { return outputs.Drop(e.root, stats.Wrong) }
	return []Finding{warn(outputs.Dir+" has entries that are not what their names say: "+some(stats.Wrong),
		"doctor --fix removes them; a run does so, too, before it would use one").by(drop)}
}
