package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// GetRequest requests objects.
type GetRequest struct {
	// What names kinds, as "dags" or "sessions,dags", or objects, as "dag/checks" or a kind and names; empty means
	// all.
	What     []string
	Selector string // a label selector, as "a=b,c!=d,e,!f,g in (h,i)"; ignored for named objects
	At       string // a revision of git; "": the present tree
	Wide     bool   // the table has all columns
}

// Get lists objects.
func Get(ctx context.Context, env Env, q GetRequest) (GetResult, error) {
	labels, err := q.read()
	if err != nil {
		return GetResult{}, err
	}
	s, t, done, err := env.loadAt(ctx, q.At)
	if err != nil {
		return GetResult{}, typed(err)
	}
	defer done()
	r, err := q.pick(t, labels)
	if q.Wide && err == nil {
		r.Table = withPrograms(ctx, agents.Wide(r.Table, t, env.Tree.Now()), t, r.Entries)
	}
	if q.Wide && err == nil && q.At == "" {
		r.Table = progress.Wide(r.Table, t, runtime.NumCPU(), env.Tree.Now())
	}
	if q.At == "" {
		r.Interrupted = interruptedIn(r.Entries, s.Attended())
	}
	return r, typed(err)
}

// read parses the selector, and joins a kind with the names behind it.
func (q *GetRequest) read() (selector, error) {
	q.What = objectNames(q.What)
	return parseSelector(q.Selector)
}

// pick returns the objects of a tree that were asked for.
func (q *GetRequest) pick(t *state.Tree, labels selector) (r GetResult, err error) {
	r.Table = settle.TableOf(t)
	switch {
	case len(q.What) == 0:
		r.All = true
		for _, kind := range t.Kinds() {
			r.Entries = append(r.Entries, labels.pick(t.Entries(kind))...)
		}
		r.Nameless = nameless(t)
	case len(q.What) > 1 || isObject(q.What[0]):
		r.Single = len(q.What) == 1
		r.Entries, err = findAll(t, q.What)
	default:
		r.Entries, r.Kinds, err = ofKinds(t, strings.Split(q.What[0], ","), labels)
		r.Nameless = nameless(t)
	}
	return r, err
}

// nameless returns the problems of files in which no object can be named: it may be of every kind.
func nameless(t *state.Tree) (out []schemas.Problem) {
	for _, p := range t.Problems() {
		if p.Severity == schemas.Error && p.Ref == (schemas.Ref{}) {
			out = append(out, p)
		}
	}
	return out
}

// ofKinds lists the objects of the kinds that words name, and the names of the kinds: one by its plural, several as
// written.
func ofKinds(t *state.Tree, words []string, labels selector) (all []*state.Entry, called []string, err error) {
	var seen []string
	kinds := settle.TableOf(t).Schemas()
	for _, word := range words {
		k, ok := kinds.Find(word)
		if !ok {
			return nil, nil, badRequest("no kind is called %q%s", word, kindHint(kinds, word))
		}
		if len(words) == 1 {
			words = []string{k.Plural}
		}
		if !slices.Contains(seen, k.Name) {
			seen = append(seen, k.Name)
			all = append(all, labels.pick(t.Entries(k.Name))...)
		}
	}
	return all, words, nil
}

// Object is a whole object: spec and status.
type Object struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   schemas.Metadata  `json:"metadata"`
	Spec       json.RawMessage   `json:"spec,omitempty"`
	Status     schemas.Status    `json:"status,omitempty"`
	Problems   []schemas.Problem `json:"problems,omitempty"`
	// NotHere are the missing outputs of succeeded nodes, by node.
	NotHere map[string][]string `json:"outputsNotHere,omitempty"`
}

// NewObject converts an entry to an Object with its metadata, canonical spec, status and problems.
func NewObject(e *state.Entry) Object {
	m := Object{
		APIVersion: schemas.APIVersion, Kind: e.Kind, Metadata: schemas.Metadata{Name: e.Name},
		Status: e.Status(), Problems: e.Problems, NotHere: nodes.NotHere(e),
	}
	if e.Object != nil {
		m.Metadata, m.Spec = e.Object.Metadata, e.Object.Canonical()
	}
	return m
}

// ObjectList is several objects.
type ObjectList struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Items      []Object `json:"items"`
}

// NewObjectList converts entries to an ObjectList.
func NewObjectList(entries []*state.Entry) ObjectList {
	l := ObjectList{APIVersion: schemas.APIVersion, Kind: schemas.ListKind, Items: make([]Object, len(entries))}
	for i, e := range entries {
		l.Items[i] = NewObject(e)
	}
	return l
}

// pick returns the entries with matching labels; a broken object has no labels.
func (s selector) pick(entries []*state.Entry) []*state.Entry {
	if len(s) == 0 {
		return entries
	}
	var out []*state.Entry
	for _, e := range entries {
		var labels map[string]string
		if e.Object != nil {
			labels = e.Object.Metadata.Labels
		}
		if s.matches(labels) {
			out = append(out, e)
		}
	}
	return out
}

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
	// Nameless are the problems of files without a recognizable object; none where objects are named.
	Nameless []schemas.Problem
	// Interrupted has, for each DAG, the nodes that are said to run, or to wait for a place, while no process here is at them.
	Interrupted map[schemas.Ref][]string
	// Gone are objects that were there before; only [FollowObjects] knows.
	Gone []schemas.Ref
}
