package state

import (
	"context"
	"slices"
)

// A process that reads a tree without a cache does not need most of its records. If there are many, Load defers reading
// them until one of them is accessed, or damaged files are listed: then all of them are read.

// minDeferredRecords is the number of unknown records from which on Load defers reading them.
const minDeferredRecords = 1000

// deferRecords takes the records out of the list of files to read, if they are many, and returns placeholders.
func (s *Store) deferRecords(want []scanEntry) (now []scanEntry, instead []*file, l *deferredRecords) {
	record := func(f scanEntry) bool { return f.area == areaRuns }
	n := 0
	for i := range want {
		if record(want[i]) {
			n++
		}
	}
	if n <= s.deferFrom {
		return want, nil, nil
	}
	root, err := s.root.OpenRoot(".")
	if err != nil {
		return want, nil, nil
	}
	l = &deferredRecords{store: s, root: root, want: make([]scanEntry, 0, n)}
	files, runs := make([]file, n), make([]lazyRun, n)
	for _, w := range want {
		if !record(w) {
			continue
		}
		i := len(l.want)
		runs[i] = lazyRun{key: s.layout().runKey(w.path), deferred: l}
		files[i] = file{path: w.path, area: w.area, body: &runs[i]}
		instead = append(instead, &files[i])
		l.want = append(l.want, w)
	}
	return slices.DeleteFunc(want, record), instead, l
}

// read reads all of them, once.
func (l *deferredRecords) read() {
	l.once.Do(func() {
		files, troubles, _ := l.store.readFiles(context.Background(), l.root, l.want, nil)
		l.store.cache.flush()
		_ = l.root.Close()
		l.want = nil
		m := newModel(l.store.layout())
		l.found = make(map[string]*lazyRun, len(files))
		for _, f := range files {
			switch b := f.body.(type) {
			case *lazyRun:
				l.found[b.key] = b
			case *damage:
				l.problems = append(l.problems, m.damaged(f, b))
			}
		}
		for _, t := range troubles {
			l.problems = append(l.problems, m.scanProblem(t))
		}
	})
}

// isDeferred reports whether f is the placeholder of a record.
func (f *file) isDeferred() bool {
	h, ok := f.body.(*lazyRun)
	return ok && h.deferred != nil
}

// resolved returns the record itself, once it was read; nil if it cannot be used.
func (h *lazyRun) resolved() *lazyRun {
	if h.deferred == nil {
		return h
	}
	h.deferred.read()
	return h.deferred.found[h.key]
}
