package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// A scan walks the folders of a tree and looks at every file in them, without opening any. It is the floor of what a
// run with nothing to do costs, so it works on raw listings, makes nothing per file, and shares even one flat folder
// of many files between processors.

// visitor takes what one worker of a scan finds. dir is the slash path of the folder; name is valid during the call.
type visitor interface {
	// folder is called of a folder that is worth watching, before its names are read; d is nil where that of the specs, or
	// of the state, does not exist.
	folder(d *folder, dir string)
	file(a area, dir string, name []byte, st *stat)
	trouble(t trouble)
}

// trouble is something in the tree's folders that cannot be looked at or read.
type trouble struct {
	path string
	code string
	text string
}

// place is a folder that is being scanned.
type place struct {
	dir   string
	area  area
	depth int // folders between the area's folder and this one

	*folder
	users atomic.Int32 // tasks that need the folder open
	up    *place
	name  string // in up
}

// task is a folder to list, or names in it to look at.
type task struct {
	*place
	names *listing // nil: list the folder
}

// maxDepth is how deep folders of specs may be nested.
const maxDepth = 32

type scanner struct {
	root   *os.Root
	layout *layout
	unread bool // files that are going to be read are not looked at, if they are known to be files

	mu      sync.Mutex // held for moments only: who waits for it long is put to sleep, which costs more than most folders
	wake    sync.Cond
	tasks   []task // a stack: depth first, so that few folders are open at once
	pending int    // tasks that are on the stack or being worked on
	err     error

	failed atomic.Bool // err is set
	spare  sync.Pool   // of *listing
}

// scan looks at all files of the tree's folders with one worker for each visitor, the first of which is the caller.
func scan(ctx context.Context, root *os.Root, l *layout, visitors ...visitor) error {
	return newScanner(root, l, false).scan(ctx, visitors...)
}

func newScanner(root *os.Root, l *layout, unread bool) *scanner {
	s := &scanner{root: root, layout: l, unread: unread}
	s.wake.L = &s.mu
	s.spare.New = func() any { return new(listing) }
	return s
}

func (s *scanner) scan(ctx context.Context, visitors ...visitor) error {
	// The specs come last: what Fresh saw of them is not watched yet.
	return s.scanFrom(ctx, s.tops(), visitors...)
}

// tops are the folders of the tree.
func (s *scanner) tops() []*place {
	return []*place{{dir: s.layout.specs, area: areaSpecs}, {dir: s.layout.state, area: areaNone}}
}

// placeOf is a folder below these, to begin with; nil if a scan would not get there.
func (s *scanner) placeOf(dir string, v visitor) *place {
	for _, p := range s.tops() {
		if !within(p.dir, dir) {
			continue
		}
		for name := range strings.SplitSeq(dir[len(p.dir)+1:], "/") {
			if p = s.lookFolder(p, []byte(name), v); p == nil || hidden(name) {
				return nil
			}
			if st, err := lstat(s.root, p.dir); err != nil || st.form() != formFolder {
				return nil
			}
		}
		p.up = nil
		return p
	}
	return nil
}

// scanFrom looks at all files of some folders and those below.
func (s *scanner) scanFrom(ctx context.Context, from []*place, visitors ...visitor) error {
	for _, p := range from {
		s.push(0, task{place: p})
	}
	stop := context.AfterFunc(ctx, func() { s.fail(ctx.Err()) })
	defer stop()
	var wg sync.WaitGroup
	for _, v := range visitors[1:] {
		wg.Go(func() { s.work(v) })
	}
	s.work(visitors[0])
	wg.Wait()
	s.mu.Lock() // the end of ctx may be told at this very moment
	defer s.mu.Unlock()
	return s.err
}

// workers is how many visitors a scan should have.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// push adds tasks, and wakes so many waiting workers for them.
func (s *scanner) push(wake int, tasks ...task) {
	for _, t := range tasks {
		if t.names != nil {
			t.users.Add(1)
		} else if t.up != nil {
			t.up.users.Add(1)
		}
	}
	s.mu.Lock()
	s.tasks = append(s.tasks, tasks...)
	s.pending += len(tasks)
	s.mu.Unlock()
	for range wake {
		s.wake.Signal()
	}
}

func (s *scanner) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.failed.Store(true)
	s.wake.Broadcast()
}

// next waits for a task, for a worker that has ended so many; ok is false when the scan is over.
func (s *scanner) next(ended int) (t task, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending -= ended; s.pending == 0 {
		s.wake.Broadcast()
	}
	for len(s.tasks) == 0 && s.pending > 0 && s.err == nil {
		s.wake.Wait()
	}
	if len(s.tasks) == 0 {
		return task{}, false
	}
	t = s.tasks[len(s.tasks)-1]
	s.tasks = s.tasks[:len(s.tasks)-1]
	return t, true
}

// leave ends what a task needed, and closes a folder when it was the last one in it.
func (t task) leave() {
	if t.names != nil || t.folder != nil {
		t.place.leave()
	}
	if t.names == nil && t.up != nil {
		t.up.leave()
	}
}

func (p *place) leave() {
	if p.users.Add(-1) == 0 {
		p.folder.close()
	}
}

func (s *scanner) work(v visitor) {
	for t, ok := s.next(0); ok; t, ok = s.next(1) {
		switch {
		case s.failed.Load(): // drain, so that folders get closed
		case t.names != nil:
			s.look(t, v)
		default:
			s.list(t, v)
		}
		t.leave()
	}
}

// list opens a folder and hands out its names; the last part it looks at itself.
func (s *scanner) list(t task, v visitor) {
	f, err := s.open(t.place)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			v.trouble(unreadable(t.dir, err))
		} else if t.up == nil {
			v.folder(nil, t.dir)
		}
		return
	}
	t.folder = f
	t.users.Store(1)
	if t.watched() {
		v.folder(f, t.dir)
	}
	for {
		l := s.spare.Get().(*listing)
		l.reset()
		more, err := f.list(l)
		if err != nil {
			v.trouble(unreadable(t.dir, err))
		}
		if !more {
			s.look(task{t.place, l}, v)
			return
		}
		if l.len() < 256 {
			s.look(task{t.place, l}, v)
			continue
		}
		s.push(1, task{t.place, l})
	}
}

// watched reports whether a change in the folder matters to a run that goes on: it does not in the folders of records, of
// which there are as many as objects. Their files never change, and processes of ours say when they add some.
func (p *place) watched() bool { return p.area != areaRuns || p.depth < 3 }

func (s *scanner) open(p *place) (*folder, error) {
	if p.up == nil {
		return openFolder(s.root, p.dir)
	}
	return p.up.sub(p.name)
}

// look looks at some names of a folder. The folders among them become tasks together: one is for this worker.
func (s *scanner) look(t task, v visitor) {
	defer s.spare.Put(t.names)
	var folders []task
	var st stat // one for all: it escapes to the visitor
	for i := range t.names.len() {
		name := t.names.name(i)
		if name[0] == '.' {
			continue
		}
		st = stat{}
		f := t.names.forms[i]
		if f == formUnknown {
			if t.stat(name, &st) != nil {
				continue // it vanished
			}
			f = st.form()
		}
		if f == formFolder {
			if sub := s.lookFolder(t.place, name, v); sub != nil {
				folders = append(folders, task{place: sub})
			}
			continue
		}
		s.lookFile(t.place, name, f, &st, v)
	}
	if len(folders) > 0 {
		s.push(len(folders)-1, folders...)
	}
}

// lookFolder returns the folder of that name, or nil if the scan does not go there.
func (s *scanner) lookFolder(p *place, name []byte, v visitor) *place {
	sub := &place{dir: p.dir + "/" + string(name), area: p.area, depth: p.depth + 1, up: p, name: string(name)}
	switch {
	case p.area == areaSpecs && specFile(name):
		v.trouble(trouble{sub.dir, "not-a-file", "it is a folder and has the name of a spec file; rename it"})
	case p.area == areaSpecs && hidden(sub.name):
	case p.area == areaSpecs && sub.depth > maxDepth:
		v.trouble(trouble{sub.dir, "too-deep", "folders are nested too deep here; it was not looked into"})
	case p.area == areaNone:
		if sub.area = s.layout.stateArea(sub.name); sub.area != areaNone {
			return sub
		}
	case p.area == areaLedgers:
		sub.area = areaOther
		return sub
	case p.area == areaRuns && p.depth < 3, p.area == areaSpecs, p.area == areaOther && sub.depth <= maxDepth:
		return sub
	}
	return nil
}

// stateArea says what a folder directly below state/ is for.
func (l *layout) stateArea(name string) area {
	if name == runsFolder {
		return areaRuns
	}
	if name == specArchive {
		return areaSpecs
	}
	if _, ok := l.statusKind(name); ok {
		return areaStatus
	}
	if name == ledgersFolder {
		return areaLedgers
	}
	for _, f := range otherFolders {
		if f == name {
			return areaOther
		}
	}
	return areaNone
}

func (s *scanner) lookFile(p *place, name []byte, f form, st *stat, v visitor) {
	a := p.fileArea(name)
	if a == areaNone {
		if f == formLink && p.area == areaSpecs && !hidden(name) {
			s.lookFolderLink(p, name, v)
		}
		return
	}
	if f == formLink {
		s.lookLink(p, name, a, v)
		return
	}
	if f == formSpecial {
		v.trouble(trouble{p.dir + "/" + string(name), "not-a-file", "it is a device, a pipe or a socket; remove it"})
		return
	}
	if s.unread && f == formFile && a != areaOther {
		v.file(a, p.dir, name, st)
		return
	}
	if st.Mode == 0 && p.stat(name, st) != nil {
		return // it vanished
	}
	v.file(a, p.dir, name, st)
}

// fileArea says what a file with that name is for in this folder.
func (p *place) fileArea(name []byte) area {
	if hidden(name) {
		return areaNone
	}
	switch p.area {
	case areaSpecs:
		if specFile(name) {
			return areaSpecs
		}
		return areaNone
	case areaRuns:
		if p.depth != 3 {
			return areaNone
		}
	case areaLedgers:
		if _, ok := ledgerIssue(name); !ok && jsonFile(name) {
			return areaOther
		}
	}
	if !jsonFile(name) {
		return areaNone
	}
	if p.area == areaNone {
		return areaOther
	}
	return p.area
}

func jsonFile(name []byte) bool {
	return len(name) > 5 && string(name[len(name)-5:]) == ".json"
}

func unreadable(p string, err error) trouble {
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	switch {
	case errors.Is(err, errNotFile):
		return trouble{p, "not-a-file", "it is not a regular file"}
	case errors.Is(err, fs.ErrPermission):
		return trouble{p, "unreadable", "it cannot be read: permission denied; grant read access or remove it"}
	}
	return trouble{p, "unreadable", "it cannot be read: " + err.Error()}
}
