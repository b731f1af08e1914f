package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// FollowObjects follows the objects of a GetRequest: it yields the objects of [Get], and then those whose spec or
// status changed, and deleted ones, until ctx ends, which is not an error. It also yields empty results, at least every
// second, so that a caller can stop.
func FollowObjects(ctx context.Context, env Env, q GetRequest) iter.Seq2[GetResult, error] {
	return func(yield func(GetResult, error) bool) {
		if err := env.followObjects(ctx, q, yield); err != nil && ctx.Err() == nil {
			yield(GetResult{}, typed(err))
		}
	}
}

func (e Env) followObjects(ctx context.Context, q GetRequest, yield func(GetResult, error) bool) error {
	labels, err := q.read()
	switch {
	case err != nil:
		return err
	case q.At != "":
		return badField("at", ": a commit does not change; leave out --watch")
	}
	o, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer o.store.Close()
	folders := o.tree.Settings().Folders
	f, err := e.follow(followInterval, schemas.SettingsPath, folders.Specs, folders.State)
	if err != nil {
		return err
	}
	defer f.close()
	r, err := q.pick(o.tree, labels)
	if err != nil {
		return err
	}
	last := r.texts()
	for yield(r, nil) {
		paths, err := f.next(ctx)
		if err != nil {
			return err
		}
		if err := o.refresh(ctx, paths); err != nil {
			return err
		}
		if r, err = q.pickAgain(o.tree, labels, last); err != nil {
			return err
		}
		now := r.texts()
		r.keepChanged(last, now)
		last = now
	}
	return nil
}

// follower reports which files of a tree may have changed.
type follower struct {
	watcher *watch.Watcher
	tick    *time.Ticker // for the journals, which are not watched
}

// follow follows the files at some paths, and below, and the journals.
func (e Env) follow(interval time.Duration, paths ...string) (*follower, error) {
	w, err := watch.New(e.Tree.Dir, watch.Options{Paths: paths, Debounce: followDebounce, Poll: followInterval,
		Warn: func(err error) { e.note("%v", err) }})
	if err != nil {
		return nil, err
	}
	return &follower{w, time.NewTicker(interval)}, nil
}

func (f *follower) close() {
	f.tick.Stop()
	f.watcher.Close()
}

// next waits for changes, at most for the interval, and returns the paths to read; nil: all, as the first time. The
// journals are always to be read.
func (f *follower) next(ctx context.Context) ([]string, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.tick.C:
	case hint := <-f.watcher.Hints():
		if hint.Full {
			return nil, nil
		}
		return hint.Paths, nil
	}
	return []string{}, nil
}

// pickAgain is pick, where objects that were named may be gone.
func (q *GetRequest) pickAgain(t *state.Tree, labels selector, before map[schemas.Ref][]byte) (GetResult, error) {
	if len(q.What) == 0 || len(q.What) == 1 && !isObject(q.What[0]) {
		return q.pick(t, labels)
	}
	r := GetResult{Table: settle.TableOf(t), Single: len(q.What) == 1}
	for _, ref := range slices.SortedFunc(maps.Keys(before), schemas.Ref.Compare) {
		if e := t.Entry(ref); e != nil {
			r.Entries = append(r.Entries, e)
		}
	}
	return r, nil
}

// texts returns the JSON of each object.
func (r *GetResult) texts() map[schemas.Ref][]byte {
	out := make(map[schemas.Ref][]byte, len(r.Entries))
	for _, e := range r.Entries {
		out[e.Ref], _ = json.Marshal(NewObject(e)) // an object that was read can be written
	}
	return out
}

// keepChanged drops the objects whose texts are the same as before, and adds the names of those that went.
func (r *GetResult) keepChanged(before, now map[schemas.Ref][]byte) {
	r.Entries = slices.DeleteFunc(r.Entries, func(e *state.Entry) bool { return bytes.Equal(before[e.Ref], now[e.Ref]) })
	for _, ref := range slices.SortedFunc(maps.Keys(before), schemas.Ref.Compare) {
		if now[ref] == nil {
			r.Gone = append(r.Gone, ref)
		}
	}
}

// GetResult has objects.
type GetResult struct {
	Entries []*state.Entry // in the requested order
	All     bool           // neither kinds nor objects were named
	Kinds   []string       // the requested kinds
	Single  bool           // one object was named
	Table   settle.Table   // of the kinds
	// Nameless counts the problems of files without a recognizable object. It is counted for All.
	Nameless int
	// Interrupted has, for each DAG, the nodes with the status Running that no process runs.
	Interrupted map[schemas.Ref][]string
	// Gone are objects that were there before; only [FollowObjects] knows.
	Gone []schemas.Ref
}
