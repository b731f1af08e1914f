package state

import "path"

// Listing is the content of the folders that a run scanned, so that no one has to read them again.
type Listing struct {
	layout  *layout
	folders map[string][]Listed
}

// Listed is a name in a folder.
type Listed struct {
	Name   string
	Folder bool
	// Other says that the listing has nothing but the name: it is not part of the tree, or a link.
	Other bool
	Stat  // of a regular file
}

// Stat is the metadata of a regular file. Times are in nanoseconds since 1970.
type Stat struct {
	Size, Mtime, Ctime int64
	Ino                uint64
	Executable         bool
}

// Listing returns the folders of specs and of the state as Fresh scanned them; nil unless Fresh found the settled tree, and no reconcile process
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
	others := map[string]bool{}
	for i := range g.parts {
		for _, p := range g.parts[i].others {
			others[p] = true
		}
	}
	count, all := map[string]int{}, 0
	for f := range g.each() {
		count[f.dir]++
		all++
	}
	room := make([]Listed, all) // for all folders
	for dir, n := range count {
		l.folders[dir], room = room[:0:n], room[n:]
	}
	for f := range g.each() {
		if len(others) == 0 || !others[f.dir+"/"+string(f.name)] {
			st := Stat{f.stat.Size, f.stat.Mtime, f.stat.Ctime, f.stat.Ino, f.stat.Mode&0o100 != 0}
			l.folders[f.dir] = append(l.folders[f.dir], Listed{Name: string(f.name), Stat: st})
		}
	}
	added := map[string]bool{}
	for dir := range count {
		l.addFolder(dir, added)
	}
	for p := range others {
		dir := path.Dir(p)
		l.folders[dir] = append(l.folders[dir], Listed{Name: path.Base(p), Other: true})
		l.addFolder(dir, added)
	}
	return l
}

// addFolder adds a folder to that which contains it, unless it was added, and so on.
func (l *Listing) addFolder(dir string, added map[string]bool) {
	for ; (within(l.layout.state, dir) || within(l.layout.specs, dir)) && !added[dir]; dir = path.Dir(dir) {
		added[dir] = true
		up := path.Dir(dir)
		l.folders[up] = append(l.folders[up], Listed{Name: path.Base(dir), Folder: true})
	}
}

// Folder returns the names in a folder, in any order, except those that begin with a dot and empty folders. ok is false if
// the folder was not scanned, or is empty.
func (l *Listing) Folder(dir string) (names []Listed, ok bool) {
	names, ok = l.folders[dir]
	return names, ok
}
