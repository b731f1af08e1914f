package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/regular"
)

const (
	longHold    = 10 * time.Second // locks are held for milliseconds
	leftoverAge = time.Minute      // a temporary file lives for milliseconds
	lockAgent   = "reconcile doctor"
	tempFolder  = ".reconcile/tmp"
)

// checkLocks examines every lock with the code that takes locks.
func checkLocks(_ context.Context, e *Patient) []Finding {
	if e.root == nil {
		return skipped("the tree cannot be read")
	}
	locked, err := e.lockedFiles()
	if err != nil {
		return []Finding{bad(fmt.Sprintf("locks cannot be listed: %v", err), "check the permissions of the folder")}
	}
	var found []Finding
	for _, name := range locked {
		info, err := lock.Inspect(e.root, name, lock.Options{Now: e.Now})
		if err != nil {
			found = append(found, bad(err.Error(), "check the permissions of the file"))
			continue
		}
		if f := e.lockFinding(name, info); f.Level != OK {
			found = append(found, f)
		}
	}
	if len(found) > 0 {
		return found
	}
	return ok(counted(len(locked), "lock") + ", none abandoned")
}

// lockFinding returns the finding for the state of a lock.
func (e *Patient) lockFinding(name string, info lock.Info) Finding {
	who := fmt.Sprintf("%s.lock of process %d (%s), %s old", name, info.PID, info.Agent, info.Age.Round(time.Second))
	take := func(ctx context.Context) error {
		l, err := lock.Acquire(ctx, e.root, name, lock.Options{Agent: lockAgent, Tries: 1})
		if err != nil {
			return err
		}
		return l.Release()
	}
	const fix = "doctor --fix removes it; so does whoever needs the lock next"
	switch {
	case info.State == lock.Corpse || info.State == lock.Stale:
		return warn(fmt.Sprintf("%s lock: %s", info.State, who), fix).by(take)
	case info.State == lock.Empty && info.Age > leftoverAge:
		return warn("empty lock: "+who, fix).by(take)
	case info.State == lock.Free && len(info.Litter) > 0:
		return warn("left by a killed process: "+some(info.Litter), fix).by(take)
	case info.State == lock.Live && info.Age > longHold:
		return warn("held for long: "+who, fmt.Sprintf("if process %d hangs, end it; its lock goes with it", info.PID))
	}
	return Finding{Level: OK}
}

// lockedFiles lists the files with a lock, or with leftovers of one, sorted.
func (e *Patient) lockedFiles() ([]string, error) {
	var files []string
	for _, folder := range []string{e.settings().Folders.State, ".reconcile"} {
		err := fs.WalkDir(regular.FS(e.root), folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case d.IsDir() && strings.HasPrefix(name, ".reconcile/") && name != ".reconcile":
				return fs.SkipDir // guards, logs and caches; .reconcile has its locks at the top level
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			}
			if f, ok := lockedFile(name); ok && !d.IsDir() {
				files = append(files, f)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// lockedFile returns the file that a lock file, or a leftover of one, belongs to.
func lockedFile(name string) (string, bool) {
	for _, suffix := range []string{".reap.lock", ".new.lock", ".lock"} {
		if f, ok := strings.CutSuffix(name, suffix); ok {
			return f, true
		}
	}
	return "", false
}

// checkLitter looks for leftover temporary files, and for logs of runs without a record.
func checkLitter(ctx context.Context, e *Patient) []Finding {
	if e.root == nil {
		return skipped("the tree cannot be read")
	}
	found := e.temporary()
	if e.tree != nil {
		found = append(found, e.looseLogs(ctx)...)
	}
	if len(found) > 0 {
		return found
	}
	return ok("no temporary files are left, and no logs of forgotten runs")
}

func (e *Patient) temporary() []Finding {
	var old []string
	err := fs.WalkDir(regular.FS(e.root), tempFolder, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && e.Now().Sub(info.ModTime()) > leftoverAge {
			old = append(old, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return []Finding{bad(fmt.Sprintf("temporary files cannot be listed: %v", err), "check the permissions of the folder")}
	case len(old) == 0:
		return nil
	}
	return []Finding{warn(counted(len(old), "temporary file")+" of killed processes: "+some(old),
		"doctor --fix removes those whose writers have ended").by(
		func(context.Context) error { return durable.Sweep(e.root, tempFolder) })}
}

func (e *Patient) looseLogs(ctx context.Context) []Finding {
	loose, err := e.store.OrphanLogs(ctx)
	switch {
	case err != nil:
		return []Finding{bad(err.Error(), "check the permissions of .reconcile/logs")}
	case len(loose) == 0:
		return nil
	}
	return []Finding{warn(counted(len(loose), "log")+" of runs that nothing tells of any more: "+some(loose),
		"doctor --fix removes them").by(func(ctx context.Context) error {
		return e.withLock(ctx, func() error { return e.store.RemoveOrphanLogs(ctx) })
	})}
}

// checkJournals looks for journals of killed processes.
func checkJournals(_ context.Context, e *Patient) []Finding {
	if e.store == nil {
		return skipped("the tree cannot be read")
	}
	var found []Finding
	live := 0
	for _, j := range e.store.Journals() {
		switch {
		case j.Alive:
			live++
		case j.Damaged:
			found = append(found, warn(fmt.Sprintf("process %s was killed, and its journal is damaged: "+
				"%s before the damage, %s without a result", j.Process, schemas.Count(j.Results, "result"), schemas.Count(j.Claims, "effect")),
				"doctor --fix keeps the results; what has none runs again").by(e.recoverKilled))
		default:
			found = append(found, warn(fmt.Sprintf("process %s was killed and left %s and %s without one",
				j.Process, schemas.Count(j.Results, "result"), schemas.Count(j.Claims, "effect")),
				"doctor --fix keeps the results and ends what still runs; so does the next run").by(e.recoverKilled))
		}
	}
	if len(found) > 0 {
		return found
	}
	return ok(schemas.Count(live, "process") + " at work, none was killed")
}

// recoverKilled does the first step of a run: it turns results into files, and ends remaining processes before their
// journal is deleted.
func (e *Patient) recoverKilled(ctx context.Context) error {
	var orphans []state.Orphan
	err := e.withLock(ctx, func() (err error) {
		orphans, err = e.store.Recover(ctx)
		return err
	})
	if err != nil || len(orphans) == 0 {
		return err
	}
	if e.Reap == nil {
		return fmt.Errorf("%s may still run; the next run of reconcile ends them", schemas.Count(len(orphans), "effect"))
	}
	if err := e.Reap(ctx, orphans); err != nil { // not under the lock: it takes as long as the programs take to end
		return err
	}
	return e.withLock(ctx, func() error { return e.store.ForgetOrphans(ctx, orphans, settle.InterruptedBy(orphans)) })
}

// reap ends the remaining processes of killed runs.
func (o Options) reap(ctx context.Context, orphans []state.Orphan) error {
	r, err := runner.New(runner.Options{Root: o.Tree.Dir, Now: o.Tree.Now})
	if err != nil {
		return err
	}
	return errors.Join(r.ReapAll(ctx, orphans), r.Close(ctx))
}
