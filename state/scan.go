package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/state/disk"
)

// A scan walks the folders of a tree and reads the stat of every file in them, without opening any. It dominates the cost
// of a run with nothing to do, so it works on raw listings, allocates nothing per file, and splits even one flat folder
// of many files among processors.

// visitor receives the files that one worker of a scan finds. dir is the slash path of the folder; name is valid during
// the call.
type visitor interface {
	// folder is called for a folder that is worth watching, before its names are read; d is nil if the folder of specs or
	// state does not exist.
	folder(d *disk.Dir, dir string)
	file(a area, dir string, name []byte, st *disk.Stat)
	// other is called for a file or folder that is not part of the tree, unless its name begins with a dot, and for a link.
	other(dir string, name []byte)
	scanError(t scanError)
}

// scanFolder is a folder that is being scanned.
type scanFolder struct {
	dir   string
	area  area
	depth int // folders between the area's folder and this one

	*disk.Dir
	users atomic.Int32 // tasks that need the folder open
	up    *scanFolder
	name  string // in the parent
}

// task is a folder to list, or names in it to stat.
type task struct {
	*scanFolder
	names *disk.Listing // nil: list the folder
}

// maxDepth is the maximum depth of folders of specs.
const maxDepth = 32

type treeScanner struct {
	root   *os.Root
	layout *layout
	unread bool // leave out the stat of regular files, which are going to be read

	mu      sync.Mutex // held for moments only: a long wait puts a worker to sleep, which costs more than most folders
	wake    sync.Cond
	tasks   []task // a stack: depth first, so that few folders are open at once
	pending int    // tasks that are on the stack or in progress
	err     error

	failed atomic.Bool // err is set
	spare  sync.Pool   // of *listing
}

// scan finds all files of the tree's folders with one worker for each visitor; the caller is the first worker.
func scan(ctx context.Context, root *os.Root, l *layout, visitors ...visitor) error {
	return newScanner(root, l, false).scan(ctx, visitors...)
}

func newScanner(root *os.Root, l *layout, unread bool) *treeScanner {
	s := &treeScanner{root: root, layout: l, unread: unread}
	s.wake.L = &s.mu
	s.spare.New = func() any { return new(disk.Listing) }
	return s
}

func (s *treeScanner) scan(ctx context.Context, visitors ...visitor) error {
	// The specs come last: they are not watched yet during Fresh.
	return s.scanFrom(ctx, s.tops(), visitors...)
}

// tops returns the folders of the tree.
func (s *treeScanner) tops() []*scanFolder {
	return append(s.specs(), &scanFolder{dir: s.layout.state, area: areaNone})
}

// specs returns the folder of specs.
func (s *treeScanner) specs() []*scanFolder {
	return []*scanFolder{{dir: s.layout.specs, area: areaSpecs}}
}

// placeOf returns a folder below these to start from; nil if a scan would not reach it.
func (s *treeScanner) placeOf(dir string, v visitor) *scanFolder {
	for _, p := range s.tops() {
		if !within(p.dir, dir) {
			continue
		}
		for name := range strings.SplitSeq(dir[len(p.dir)+1:], "/") {
			if p = s.subfolder(p, []byte(name), v); p == nil || hidden(name) {
				return nil
			}
			if st, err := disk.Lstat(s.root, p.dir); err != nil || st.Form() != disk.Folder {
				return nil
			}
		}
		p.up = nil
		return p
	}
	return nil
}

// scanFrom finds all files of some folders and those below.
func (s *treeScanner) scanFrom(ctx context.Context, from []*scanFolder, visitors ...visitor) error {
	for _, p := range from {
		s.push(0, task{scanFolder: p})
	}
	stop := context.AfterFunc(ctx, func() { s.fail(ctx.Err()) })
	defer stop()
	var wg sync.WaitGroup
	for _, v := range visitors[1:] {
		wg.Go(func() { s.work(v) })
	}
	s.work(visitors[0])
	wg.Wait()
	s.mu.Lock() // ctx may end at this very moment
	defer s.mu.Unlock()
	return s.err
}

// workers returns the number of visitors that a scan should have.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// push adds tasks, and wakes that many waiting workers for them.
func (s *treeScanner) push(wake int, tasks ...task) {
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

func (s *treeScanner) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.failed.Store(true)
	s.wake.Broadcast()
}

// next waits for a task, for a worker that has finished that many; ok is false if the scan is over.
func (s *treeScanner) next(ended int) (t task, ok bool) {
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

// leave ends the use of a folder by a task, and closes the folder after the last one.
func (t task) leave() {
	if t.names != nil || t.Dir != nil {
		t.scanFolder.leave()
	}
	if t.names == nil && t.up != nil {
		t.up.leave()
	}
}

func (p *scanFolder) leave() {
	if p.users.Add(-1) == 0 {
		p.Dir.Close()
	}
}

func (s *treeScanner) work(v visitor) {
	for t, ok := s.next(0); ok; t, ok = s.next(1) {
		switch {
		case s.failed.Load(): // drain, so that folders are closed
		case t.names != nil:
			s.look(t, v)
		default:
			s.list(t, v)
		}
		t.leave()
	}
}

// list opens a folder and distributes its names; it processes the last part itself.
func (s *treeScanner) list(t task, v visitor) {
	f, err := s.open(t.scanFolder)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			v.scanError(unreadable(t.dir, err))
		} else if t.up == nil {
			v.folder(nil, t.dir)
		}
		return
	}
	t.Dir = f
	t.users.Store(1)
	if t.watched() {
		v.folder(f, t.dir)
	}
	for {
		l := s.spare.Get().(*disk.Listing)
		l.Reset()
		more, err := f.List(l)
		if err != nil {
			v.scanError(unreadable(t.dir, err))
		}
		if !more {
			s.look(task{t.scanFolder, l}, v)
			return
		}
		if l.Len() < 256 {
			s.look(task{t.scanFolder, l}, v)
			continue
		}
		s.push(1, task{t.scanFolder, l})
	}
}

// watched reports whether a change in the folder matters to a running process: not in the folders of records, of which
// there are as many as objects. Their files never change, and reconcile processes announce new ones.
func (p *scanFolder) watched() bool { return p.area != areaRuns || p.depth < 3 }

func (s *treeScanner) open(p *scanFolder) (*disk.Dir, error) {
	if p.up == nil {
		return disk.OpenDir(s.root, p.dir)
	}
	return p.up.Sub(p.name)
}

// look processes some names of a folder. The subfolders become tasks together: one is for this worker.
func (s *treeScanner) look(t task, v visitor) {
	defer s.spare.Put(t.names)
	var folders []task
	var st disk.Stat // one for all: it escapes to the visitor
	for i := range t.names.Len() {
		name := t.names.Name(i)
		if name[0] == '.' {
			continue
		}
		st = disk.Stat{}
		f := t.names.Forms[i]
		if f == disk.Unknown {
			if t.Stat(name, &st) != nil {
				continue // it was removed
			}
			f = st.Form()
		}
		if f == disk.Folder {
			if sub := s.subfolder(t.scanFolder, name, v); sub != nil {
				folders = append(folders, task{scanFolder: sub})
			} else {
				v.other(t.dir, name)
			}
			continue
		}
		s.lookFile(t.scanFolder, name, f, &st, v)
	}
	if len(folders) > 0 {
		s.push(len(folders)-1, folders...)
	}
}

// subfolder returns the folder of that name, or nil if the scan skips it.
func (s *treeScanner) subfolder(p *scanFolder, name []byte, v visitor) *scanFolder {
	sub := &scanFolder{dir: p.dir + "/" + string(name), area: p.area, depth: p.depth + 1, up: p, name: string(name)}
	switch {
	case p.area == areaSpecs && specFile(name):
		v.scanError(scanError{sub.dir, "not-a-file", "it is a folder and has the name of a spec file; rename it"})
	case p.area == areaSpecs && hidden(sub.name):
	case p.area == areaSpecs && sub.depth > maxDepth:
		v.scanError(scanError{sub.dir, "too-deep", "folders are nested too deep here; it was not looked into"})
	case p.area == areaNone:
		if sub.area = s.layout.stateArea(sub.name); sub.area != areaNone {
			return sub
		}
	case p.area == areaLedgers:
		sub.area = areaOther
		return sub
	case p.area == areaRuns && p.depth < 3, p.area == areaCheckpoints && p.depth < 2, p.area == areaSpecs, p.area == areaOther && sub.depth <= maxDepth:
		return sub
	}
	return nil
}

// stateArea returns the area of a folder directly below state/.
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
	if name == checkpointsFolder {
		return areaCheckpoints
	}
	if slices.Contains(otherFolders, name) {
		return areaOther
	}
	return areaNone
}

func (s *treeScanner) lookFile(p *scanFolder, name []byte, f disk.Form, st *disk.Stat, v visitor) {
	a := p.fileArea(name)
	if a == areaNone {
		if f == disk.Link && p.area == areaSpecs && !hidden(name) {
			s.checkFolderLink(p, name, v)
		}
		v.other(p.dir, name)
		return
	}
	if f == disk.Link {
		s.checkLink(p, name, a, v)
		v.other(p.dir, name)
		return
	}
	if f == disk.Special {
		v.scanError(scanError{p.dir + "/" + string(name), "not-a-file", "it is a device, a pipe or a socket; remove it"})
		return
	}
	if s.unread && f == disk.File && a != areaOther {
		v.file(a, p.dir, name, st)
		return
	}
	if st.Mode == 0 && p.Stat(name, st) != nil {
		return // it was removed
	}
	v.file(a, p.dir, name, st)
}

// fileArea returns the area of a file with that name in this folder.
func (p *scanFolder) fileArea(name []byte) area {
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
	case areaCheckpoints:
		if p.depth != 2 {
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
