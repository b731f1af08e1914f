package state

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/outputs"
)

// producer is a spec with nodes that declare outputs.
type producer interface{ OutputPaths() map[string][]string }

// outputsOf returns the declared outputs of an object by node. It searches the canonical form first: most objects declare
// none and need not be decoded.
func outputsOf(o *schemas.Object) map[string][]string {
	if o == nil || o == o.Declared() && !o.Mentions(schemas.MarkOutputs) {
		return nil
	}
	if p, ok := o.Spec().(producer); ok {
		return p.OutputPaths()
	}
	return nil
}

// newDeclaredOutputs collects the declared outputs of all objects. The state of the files is not known yet.
func (s *Store) newDeclaredOutputs(m *model) *declaredOutputs {
	d := &declaredOutputs{root: s.root, bare: s.opts.Bare, nodes: map[schemas.Ref]map[string][]string{}, owners: map[string][]schemas.Ref{},
		missing: map[string]bool{}, lost: s.lost}
	for ref := range m.slots {
		d.setObject(m, ref)
	}
	return d
}

// setObject updates the outputs that the spec of an object declares. It returns the paths if they changed.
func (d *declaredOutputs) setObject(m *model, ref schemas.Ref) []string {
	var nodes map[string][]string
	if slot := m.slots[ref]; slot != nil && len(slot.specs) == 1 {
		nodes = outputsOf(m.expanded(ref))
	}
	if maps.EqualFunc(d.nodes[ref], nodes, slices.Equal) {
		return nil
	}
	for _, paths := range d.nodes[ref] {
		for _, p := range paths {
			d.owners[p] = slices.DeleteFunc(d.owners[p], func(o schemas.Ref) bool { return o == ref })
			if len(d.owners[p]) == 0 {
				delete(d.owners, p)
				delete(d.missing, p)
			}
		}
	}
	delete(d.nodes, ref)
	if len(nodes) == 0 {
		return nil
	}
	d.nodes[ref] = nodes
	var all []string
	for _, paths := range nodes {
		for _, p := range paths {
			if !slices.Contains(d.owners[p], ref) {
				d.owners[p] = append(d.owners[p], ref)
			}
			all = append(all, p)
		}
	}
	return all
}

// refresh checks which of the paths exist, with one system call each, and returns the objects that declare a path that
// changed.
func (d *declaredOutputs) refresh(paths []string) []schemas.Ref {
	if d.bare {
		return nil
	}
	var changed []schemas.Ref
	for p, gone := range findMissing(d.root, paths) {
		if gone == d.missing[p] || len(d.owners[p]) == 0 {
			continue
		}
		if gone {
			d.missing[p] = true
		} else {
			delete(d.missing, p)
		}
		changed = append(changed, d.owners[p]...)
	}
	return changed
}

// findMissing reports for each path whether nothing exists there.
func findMissing(root *os.Root, paths []string) map[string]bool {
	out := make(map[string]bool, len(paths))
	look := folderCache{root: root}
	defer look.close()
	absent := "" // the last folder that does not exist
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		dir := path.Dir(p)
		if absent != "" && within(absent, dir) {
			out[p] = true
			continue
		}
		_, err := look.lstat(p)
		if err != nil && look.dir == nil { // the folder is missing, or is reached through a link
			_, err = root.Lstat(p)
			if _, e := root.Lstat(dir); errors.Is(e, fs.ErrNotExist) {
				absent = dir
			}
		}
		out[p] = errors.Is(err, fs.ErrNotExist)
	}
	return out
}

// locate finds the runs that can restore the missing outputs of a node.
func (d *declaredOutputs) locate(m *Missing, node string, runs []*schemas.Run) {
	for _, r := range runs {
		switch {
		case r.Node != node || r.Outcome != schemas.OutcomeSucceeded:
		case d.lost[r.Key]:
			m.Lost = append(m.Lost, r.Key)
		case d.cached(r, m.Files):
			m.Cached = append(m.Cached, r.Key)
		}
	}
}

func (d *declaredOutputs) cached(r *schemas.Run, files []string) bool {
	found, ok := r.OutputsAt(files)
	return ok && !slices.ContainsFunc(found, func(o schemas.Output) bool { return !outputs.Has(d.root, o) })
}

// paths returns all declared outputs.
func (d *declaredOutputs) paths() []string { return slices.Collect(maps.Keys(d.owners)) }

// split returns the paths that exist and those that do not, sorted.
func (d *declaredOutputs) split() (present, missing []string) {
	for _, p := range slices.Sorted(maps.Keys(d.owners)) {
		if d.missing[p] {
			missing = append(missing, p)
		} else {
			present = append(present, p)
		}
	}
	return present, missing
}

// MarkLost marks the outputs of a run as lost, and forces the next scan to make the entry of the run's owner again. The
// outputs could not be restored, and this process does not try again.
func (s *Store) MarkLost(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[run] = true
	if s.model == nil {
		return
	}
	if ref := s.model.layout.ownerOf(run); ref != (schemas.Ref{}) {
		s.forced = append(s.forced, ref)
	}
}

// outputs checks the declared outputs that hints name, or all of them if hints is nil, and those of the objects that
// changed.
func (u *update) outputs(hints []string) {
	d := u.model.declared
	var look []string
	for ref := range u.touched {
		look = append(look, d.setObject(u.model, ref)...)
	}
	for _, p := range hints {
		if p = path.Clean(p); len(d.owners[p]) > 0 {
			look = append(look, p)
		}
	}
	if hints == nil {
		look = d.paths()
	}
	for _, ref := range slices.Concat(d.refresh(look), u.store.forced) {
		u.touch(ref)
	}
	u.store.forced = nil
}

// OthersAtWork reports whether there are journals with other names than this store's own: those of other processes, dead
// ones included.
func (s *Store) OthersAtWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.journalNames(), func(name string) bool { return s.own.Load() == nil || s.own.Load().name != name })
}
