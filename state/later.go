package state

import (
	"context"
	"os"
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// A process that reads a tree of which nothing is known looks at most of its records in no way. Load leaves them unread
// where they are many, until something of one of them is asked for, or whether files are damaged: then all of them are read.

// leaveRecords is how many records that nobody knows are read by Load at once.
const leaveRecords = 1000

// later are records that were found and not read. They are read through a root of their own: the store may be closed by
// then.
type later struct {
	once  sync.Once
	store *Store
	root  *os.Root
	want  []seen

	found    map[string]*heldRun // by key
	problems []schemas.Problem
}

// leave takes the records out of what is to be read, if they are many, and returns files in their place.
func (s *Store) leave(want []seen) (now []seen, instead []*file, l *later) {
	record := func(f seen) bool { return f.area == areaRuns }
	n := 0
	for i := range want {
		if record(want[i]) {
			n++
		}
	}
	if n <= s.leaveFrom {
		return want, nil, nil
	}
	root, err := s.root.OpenRoot(".")
	if err != nil {
		return want, nil, nil
	}
	l = &later{store: s, root: root, want: make([]seen, 0, n)}
	files, runs := make([]file, n), make([]heldRun, n)
	for _, w := range want {
		if !record(w) {
			continue
		}
		i := len(l.want)
		runs[i] = heldRun{key: s.layout().runKey(w.path), later: l}
		files[i] = file{path: w.path, area: w.area, body: &runs[i]}
		instead = append(instead, &files[i])
		l.want = append(l.want, w)
	}
	return slices.DeleteFunc(want, record), instead, l
}

// read reads all of them, once.
func (l *later) read() {
	l.once.Do(func() {
		files, troubles, _ := l.store.readFiles(context.Background(), l.root, l.want, nil)
		l.store.cache.end()
		_ = l.root.Close()
		l.want = nil
		m := newModel(l.store.layout())
		l.found = make(map[string]*heldRun, len(files))
		for _, f := range files {
			switch b := f.body.(type) {
			case *heldRun:
				l.found[b.key] = b
			case *damage:
				l.problems = append(l.problems, m.damaged(f, b))
			}
		}
		for _, t := range troubles {
			l.problems = append(l.problems, m.troubleProblem(t))
		}
	})
}

// unread reports whether f stands for a record that was left unread.
func (f *file) unread() bool {
	h, ok := f.body.(*heldRun)
	return ok && h.later != nil
}

// known is the record itself, once it was read; nil if it cannot be used.
func (h *heldRun) known() *heldRun {
	if h.later == nil {
		return h
	}
	h.later.read()
	return h.later.found[h.key]
}

// whole has the store know all of the tree: Load may have left records unread.
func (s *Store) whole(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || s.model.later == nil {
		return nil
	}
	_, err := s.load(ctx, false)
	return err
}
