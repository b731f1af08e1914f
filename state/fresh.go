package state

import (
	"context"
	"iter"
	"os"
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// Fresh scans the tree and reports whether it is as it was settled, so that a run would have nothing to do; then it returns
// the settled summary. By their stats, no file of the tree, the settings or any node's inputs changed since Settle, no
// journal has entries, the program is the same, and no object is due yet. It reads no file of the tree.
func (s *Store) Fresh() (Summary, bool) {
	was, ok := s.readSettled()
	if !ok || !s.applies(was) || s.journalsInUse() || s.treeLockExists() {
		return Summary{}, false
	}
	due := !was.Summary.Wake.IsZero() && !s.opts.Now().Before(was.Summary.Wake) // the load that follows uses the scan
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
	if due || is != was.Sum || !s.outputsUnchanged(was.Outputs, was.Missing) {
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

// each yields the files that were scanned to see whether the loaded tree is fresh.
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
	return s.freshScan != nil && (s.opts.FileNow().Sub(s.freshScan.at) <= time.Second || s.watch.Complete()) &&
		s.freshScan.gen == gen && s.freshScan.layout.specs == l.specs && s.freshScan.layout.state == l.state
}

// sumTree returns the fingerprint of all files that a run depends on.
func (s *Store) sumTree(ctx context.Context, look *freshScan, globs []string) (fingerprint, error) {
	l := look.layout
	if err := look.scan(ctx, s.root); err != nil {
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

// scan finds all files.
func (g *freshScan) scan(ctx context.Context, root *os.Root) error {
	g.parts = make([]freshCollector, workers())
	visitors := make([]visitor, len(g.parts))
	for i := range g.parts {
		visitors[i] = &g.parts[i]
	}
	return scan(ctx, root, g.layout, visitors...)
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
