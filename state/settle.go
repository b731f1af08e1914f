package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/regular"
)

// sumTree returns the fingerprint of all files that a run depends on.
func (s *Store) sumTree(ctx context.Context, look *freshScan, globs []string) (fingerprint, error) {
	l := look.layout
	look.parts = make([]freshCollector, workers())
	visitors := make([]visitor, len(look.parts))
	for i := range look.parts {
		visitors[i] = &look.parts[i]
	}
	if err := scan(ctx, s.root, l, visitors...); err != nil {
		return fingerprint{}, err
	}
	var all fingerprinter
	for i := range look.parts {
		all.merge(look.parts[i].fingerprint)
	}
	if st, err := disk.Lstat(s.root, schemas.SettingsPath); err == nil {
		all.addFile("", []byte(schemas.SettingsPath), &st)
	}
	s.addRules(&all, globs, s.cleanRules(globs))
	err := walkInputs(ctx, s.root, l, globs, func(p string, st disk.Stat) { addInput(&all, p, &st) }, all.addRule)
	return all.fingerprint, err
}

// sum returns the fingerprint of everything that the model depends on, from that of its files; it equals that of Fresh if
// and only if no other file changed.
func (m *model) sum(files fingerprint) fingerprint {
	all := fingerprinter{fingerprint: files}
	for _, t := range m.scanErrors {
		all.addScanError(t)
	}
	if m.settings.stat != (disk.Stat{}) {
		all.addFile("", []byte(schemas.SettingsPath), &m.settings.stat)
	}
	m.inputs.addTo(&all)
	return all.fingerprint
}

// ErrChanged says that another process changed a file: the caller must load the tree again.
var ErrChanged = errors.New("the tree changed meanwhile")

// Settle records the summary and the stats of all files of the tree as its settled base, with which Fresh compares: the
// tree, as this store knows it, is at its fixed point. It returns ErrChanged and records nothing if another reconcile
// process wrote or recorded something since the last load. If a journal is still in use, it records nothing, so that the
// next run loads the tree; nor if it left temporary files, which the next run then removes. Settle waits, for some milliseconds, until no file is racy.
func (s *Store) Settle(sum Summary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || s.model.deferred != nil || s.opts.NoCache {
		return nil
	}
	if !s.waitOutTick() || s.journalsInUse() || durable.Litter(s.root, tmpDir) {
		return s.unsettle()
	}
	present, missing := s.model.declared.split()
	if s.needsFullLoad.Load() || s.generation() != s.seenGen || !s.outputsUnchanged(present, missing) {
		return ErrChanged
	}
	if err := errors.Join(s.ensureLocal(localDir), s.bumpGeneration()); err != nil {
		return err
	}
	if err := s.rereadRacy(context.Background()); err != nil {
		return fmt.Errorf("read again what was written: %w", err)
	}
	base, files, err := s.writeBase(sum.Clocks, sum.Dormant)
	if err != nil {
		return err
	}
	l := s.layout()
	b, err := json.Marshal(settled{s.opts.Build, schemas.Folders{Specs: l.specs, State: l.state}, s.model.inputs.globs,
		present, missing, s.model.sum(files), base, s.opts.Now(), sum})
	if err != nil {
		return fmt.Errorf("record that the tree is settled: %w", err)
	}
	return s.replaceLocal(settledPath, append(fmt.Appendf(nil, "%016x\n", xxhash.Sum64(b)), b...))
}

// rereadRacy reads again the files that were racy when they were read or written. They are old enough now, so that the
// next process finds all of them in the cache, even after a first run. A file whose content differs by now stays
// unchanged here: then the tree is not settled.
func (s *Store) rereadRacy(ctx context.Context) error {
	var young []scanEntry
	for p, f := range s.model.files {
		if f.racy && f.area != areaOther {
			young = append(young, scanEntry{p, f.area, f.stat})
		}
	}
	slices.SortFunc(young, bySeenPath)
	for part := range slices.Chunk(young, Batch) {
		read, _, err := s.readFiles(ctx, s.root, part, s.model.files)
		if err != nil {
			return err
		}
		for _, f := range read {
			if old := s.model.files[f.path]; !f.racy && old.sum == f.sum && old.stat == f.stat {
				old.racy, old.at = false, f.at
			}
		}
	}
	s.cache.finishLoad(s.model)
	return nil
}

// outputsUnchanged reports whether exactly the present ones of the declared outputs exist.
func (s *Store) outputsUnchanged(present, missing []string) bool {
	if len(present)+len(missing) == 0 {
		return true
	}
	is := findMissing(s.root, slices.Concat(present, missing))
	return !slices.ContainsFunc(present, func(p string) bool { return is[p] }) &&
		!slices.ContainsFunc(missing, func(p string) bool { return !is[p] })
}

func (s *Store) unsettle() error {
	if err := s.root.Remove(settledPath); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("forget that the tree was settled: %w", err)
	}
	return nil
}

// waitOutTick reports whether all files are old enough, after waiting for at most one tick of the file system's clock.
func (s *Store) waitOutTick() bool {
	newest := s.model.settings.stat.Changed()
	for _, f := range s.model.files {
		newest = max(newest, f.stat.Changed())
	}
	for _, f := range s.model.inputs.files {
		newest = max(newest, f.stat.Changed())
	}
	wait := time.Duration(newest-s.opts.FileNow().UnixNano()) + disk.Tick
	if wait > disk.Tick {
		return false // a time in the future: the clocks differ
	}
	if wait > 0 {
		<-time.After(wait)
	}
	return true
}

// journalsInUse reports whether a journal has entries, or is left from a process that died.
func (s *Store) journalsInUse() bool {
	for _, name := range s.journalNames() {
		f, fi, err := regular.Open(s.root, journalDir+"/"+name+journalSuffix)
		if err != nil {
			continue
		}
		holds := fi.Size() > 0 || (s.own.Load() == nil || s.own.Load().name != name) && !filelock.Held(f)
		f.Close()
		if holds {
			return true
		}
	}
	return false
}

// treeLockExists reports whether a process holds the lock of the tree, or died while it did.
func (s *Store) treeLockExists() bool {
	return slices.ContainsFunc(s.folderNames(localDir), func(name string) bool {
		return strings.HasPrefix(localDir+"/"+name, treeLockPath+".")
	})
}

// Listing is the content of the folders that a run scanned, so that nobody has to read them again.
type Listing struct {
	layout  *layout
	folders map[string][]Listed
}

// Listed is a name in a folder.
type Listed struct {
	Name   string
	Folder bool
	// Other says that the scan read nothing but the name, since it is not part of the tree.
	Other bool
	Stat  // of a regular file
}

// Stat is the metadata of a regular file. Times are in nanoseconds since 1970.
type Stat struct {
	Size, Mtime, Ctime int64
	Ino                uint64
	Executable         bool
}

// Listing returns the state folder as Fresh scanned it; nil unless Fresh found the settled tree, and no reconcile process
// has written, nor this one has seen a change, since then.
func (s *Store) Listing() *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.settledScan
	if g == nil || g.hasErrors() || g.gen != s.generation() {
		return nil
	}
	return g.listing()
}

func (g *freshScan) listing() *Listing {
	l := &Listing{g.layout, map[string][]Listed{}}
	count, all := map[string]int{}, 0
	for f := range g.each() {
		if within(g.layout.state, f.dir) {
			count[f.dir]++
			all++
		}
	}
	room := make([]Listed, all) // for all folders
	for dir, n := range count {
		l.folders[dir], room = room[:0:n], room[n:]
	}
	for f := range g.each() {
		if of, ok := l.folders[f.dir]; ok {
			st := Stat{f.stat.Size, f.stat.Mtime, f.stat.Ctime, f.stat.Ino, f.stat.Mode&0o100 != 0}
			l.folders[f.dir] = append(of, Listed{Name: string(f.name), Stat: st})
		}
	}
	added := map[string]bool{}
	for dir := range count {
		l.addFolder(dir, added)
	}
	for i := range g.parts {
		for _, p := range g.parts[i].others {
			dir := path.Dir(p)
			l.folders[dir] = append(l.folders[dir], Listed{Name: path.Base(p), Other: true})
			l.addFolder(dir, added)
		}
	}
	return l
}

// addFolder adds a folder to that which contains it, unless it was added, and so on.
func (l *Listing) addFolder(dir string, added map[string]bool) {
	for ; within(l.layout.state, dir) && !added[dir]; dir = path.Dir(dir) {
		added[dir] = true
		up := path.Dir(dir)
		l.folders[up] = append(l.folders[up], Listed{Name: path.Base(dir), Folder: true})
	}
}

// Folder returns the names in a folder, in any order, except those that begin with a dot and empty folders. ok is false if
// the folder was not scanned, is empty, or may contain links.
func (l *Listing) Folder(dir string) (names []Listed, ok bool) {
	if !within(l.layout.state, dir) {
		return nil, false
	}
	top, _, _ := strings.Cut(dir[len(l.layout.state)+1:], "/")
	if l.layout.stateArea(top) == areaSpecs {
		return nil, false
	}
	names, ok = l.folders[dir]
	return names, ok
}

// Fresh scans the tree and reports whether it is as it was settled, so that a run would have nothing to do; then it returns
// the settled summary. By their stats, no file of the tree, the settings or any node's inputs changed since Settle, no
// journal has entries, the program is the same, and no object is due yet. It reads no file of the tree.
func (s *Store) Fresh() (Summary, bool) {
	was, ok := s.readSettled()
	if !ok || s.opts.NoCache || was.Build != s.opts.Build || s.journalsInUse() || s.treeLockExists() {
		return Summary{}, false
	}
	now := s.opts.Now()
	if now.Before(was.At) || !was.Summary.Wake.IsZero() && !now.Before(was.Summary.Wake) {
		return Summary{}, false
	}
	l := &layout{kinds: s.opts.Kinds, specs: was.Folders.Specs, state: was.Folders.State}
	if s.checkFolders(l) != nil {
		return Summary{}, false
	}
	first := &freshScan{gen: s.generation(), layout: l}
	is, err := s.sumTree(context.Background(), first, was.Globs)
	if err != nil {
		return Summary{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first.at = s.opts.FileNow()
	s.freshScan = first
	if is != was.Sum || !s.outputsUnchanged(was.Outputs, was.Missing) {
		return Summary{}, false
	}
	s.settledScan = first
	return was.Summary, true
}

func (n *freshCollector) file(a area, dir string, name []byte, st *disk.Stat) {
	look := n.addFile(dir, name, st)
	if len(n.files) == cap(n.files) {
		n.full = append(n.full, n.files)
		n.files = make([]scannedFile, 0, 1024)
	}
	if cap(n.names)-len(n.names) < len(name) {
		n.names = make([]byte, 0, 32<<10)
	}
	at := len(n.names)
	n.names = append(n.names, name...)
	n.files = append(n.files, scannedFile{dir, n.names[at:len(n.names):len(n.names)], a, look, *st})
}

func (n *freshCollector) folder(_ *disk.Dir, dir string) { n.folders = append(n.folders, dir) }

func (n *freshCollector) other(dir string, name []byte) {
	n.others = append(n.others, dir+"/"+string(name))
}

func (n *freshCollector) scanError(t scanError) {
	n.addScanError(t)
	n.troubles = append(n.troubles, t)
}

// each yields the files.
func (g *freshScan) each() iter.Seq[*scannedFile] {
	return func(yield func(*scannedFile) bool) {
		for list := range g.lists() {
			for j := range list {
				if !yield(&list[j]) {
					return
				}
			}
		}
	}
}

// lists yields the files in their lists.
func (g *freshScan) lists() iter.Seq[[]scannedFile] {
	return func(yield func([]scannedFile) bool) {
		for i := range g.parts {
			n := &g.parts[i]
			for _, list := range append(n.full, n.files) {
				if !yield(list) {
					return
				}
			}
		}
	}
}

// hasErrors reports whether the scan had errors.
func (g *freshScan) hasErrors() bool {
	return slices.ContainsFunc(g.parts, func(n freshCollector) bool { return len(n.troubles) > 0 })
}

// entries returns the result as a scan would.
func (g *freshScan) entries() (found []scanEntry, troubles []scanError) {
	for f := range g.each() {
		found = append(found, scanEntry{f.dir + "/" + string(f.name), f.area, f.stat})
	}
	for i := range g.parts {
		troubles = append(troubles, g.parts[i].troubles...)
	}
	return found, troubles
}

// freshScanValid reports whether the scan by Fresh is still valid.
func (s *Store) freshScanValid(gen int64) bool {
	l := s.layout()
	return s.freshScan != nil && (s.watch.Complete() || s.opts.FileNow().Sub(s.freshScan.at) <= time.Second) &&
		s.freshScan.gen == gen && s.freshScan.layout.specs == l.specs && s.freshScan.layout.state == l.state
}
