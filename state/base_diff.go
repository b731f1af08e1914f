package state

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// baseDiff finds the differences from the tree that was settled.
type baseDiff struct {
	update *update
	was    settled
	base   *base
	known  map[string]*file // files that earlier processes read
	specs  map[schemas.Ref]bool
	paths  []string // paths of specs that were added or removed
	hides  bool     // an unfinished file was added, removed or changed
}

// changedSince returns the objects to decide again because of differences from the tree that was settled last, sorted, with the
// summary of that; if it is nil, the caller must decide everything.
func (s *Store) changedSince(m *model, known map[string]*file) ([]schemas.Ref, *Summary) {
	was, ok := s.readSettled()
	if !ok || m.journaled() {
		return nil, nil
	}
	b := s.readBase(was, m)
	if b == nil {
		return nil, nil
	}
	refs, ok := s.since(m, was, b, known).refs()
	if !ok {
		return nil, nil
	}
	return refs, &was.Summary
}

// refs returns the objects to decide again, sorted; ok is false if that is everything.
func (u *baseDiff) refs() (refs []schemas.Ref, ok bool) {
	if !u.touchFiles() {
		return nil, false
	}
	u.inputs()
	u.outputs()
	u.touchReferrers()
	if u.hides || len(u.update.model.scanErrors) > 0 {
		u.update.touchSpecless()
	}
	for _, ref := range u.base.clocks {
		u.update.touch(ref)
	}
	for ref := range u.update.touched {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, schemas.Ref.Compare)
	return refs, true
}

// touchReferrers touches the objects whose files are validated against a touched object.
func (u *baseDiff) touchReferrers() {
	for p := range u.update.model.related {
		if f := u.update.model.files[p]; u.update.touchedBy(f.body.(*specBody)) {
			u.update.touch(u.update.model.refOf(f))
		}
	}
	if len(u.specs) == 0 {
		return
	}
	low := map[string]bool{}
	for _, p := range u.paths {
		low[strings.ToLower(p)] = true
	}
	for p, f := range u.update.model.files {
		b, ok := f.body.(*specBody)
		if !ok {
			continue
		}
		if len(low) > 0 && (u.update.model.missing[p] || low[strings.ToLower(p)]) ||
			slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return u.specs[r.To] }) {
			u.update.touch(b.ref)
		}
	}
}

// outputs touches the objects with a declared output that was added or removed, or is missing: the cache of outputs may
// have it now.
func (u *baseDiff) outputs() {
	gone := map[string]bool{}
	for _, p := range u.was.Missing {
		gone[p] = true
	}
	for p, owners := range u.update.model.declared.owners {
		if u.update.model.declared.missing[p] || gone[p] {
			for _, ref := range owners {
				u.update.touch(ref)
			}
		}
	}
}

// inputs touches the objects with changed inputs. If inputs were removed, their users are not known: then it touches all
// objects with inputs.
func (u *baseDiff) inputs() {
	in := u.update.model.inputs
	var changed []string
	left := len(u.base.inputs)
	for p, f := range in.files {
		sum, had := u.base.input(p)
		if had {
			left--
		}
		if !had || sum != f.content() {
			changed = append(changed, p)
		}
	}
	for ref, nodes := range in.nodes {
		for _, globs := range nodes {
			if left != 0 || slices.ContainsFunc(globs, func(g string) bool {
				return slices.ContainsFunc(changed, func(p string) bool { return matchGlob(g, p) })
			}) {
				u.update.touch(ref)
			}
		}
	}
}

// touchFiles touches the objects of files that were added, removed or changed. It returns false if the objects that
// depend on such a file are not known.
func (u *baseDiff) touchFiles() bool {
	left := u.base.live.Files + len(u.base.files) - u.update.model.dormant.files()
	for p, f := range u.update.model.files {
		was, had := u.base.named(p)
		if had {
			left--
		}
		if had && was.content == f.content() {
			continue
		}
		if !u.readersKnown(f) {
			return false
		}
		if had && f.area == areaSpecs && !u.touchFormer(p, was.content) {
			return false
		}
		u.about(f, !had)
	}
	if left == 0 {
		return true
	}
	for p := range u.known {
		if u.update.model.files[p] != nil {
			continue
		}
		if was, had := u.base.named(p); had {
			if left--; !u.touchFormer(p, was.content) {
				return false
			}
		}
	}
	return left == 0
}

// touchFormer touches the object of a file that was removed or changed, and the objects that only its former content
// referred to.
func (u *baseDiff) touchFormer(p string, sum uint64) bool {
	old := u.known[p]
	if old == nil || !u.readersKnown(old) || old.area == areaSpecs && old.sum != sum {
		return false
	}
	now := u.update.model.files[p]
	u.about(old, now == nil || u.update.model.refOf(now) != u.update.model.refOf(old))
	body, ok := old.body.(*specBody)
	if !ok {
		return true
	}
	var still []schemas.Reference
	if now != nil {
		still = now.body.(*specBody).references()
	}
	for _, r := range body.references() {
		if !slices.ContainsFunc(still, func(s schemas.Reference) bool { return s.To == r.To }) {
			u.update.touch(r.To)
		}
	}
	return true
}

func (u *baseDiff) about(f *file, moved bool) {
	ref := u.update.model.refOf(f)
	u.update.touch(ref)
	if f.area != areaSpecs {
		return
	}
	b, ok := f.body.(*specBody)
	u.hides = u.hides || ok && b.unfinished()
	u.specs[ref] = true
	if moved {
		u.paths = append(u.paths, f.path)
	}
}

// readersKnown reports whether the readers of a file's content are known. For a changed status or record they are not: a
// broken DAG belongs to the session that its status names, and a record can make an agent stuck. Who reads what an agent reports of its
// own work depends on the agent.
func (u *baseDiff) readersKnown(f *file) bool {
	return f.area != areaStatus && (f.area != areaRuns || u.update.model.refOf(f).Kind == schemas.AgentKind.Name)
}

func (s *Store) since(m *model, was settled, b *base, known map[string]*file) *baseDiff {
	u := &baseDiff{update: s.update(), was: was, base: b, known: known, specs: map[schemas.Ref]bool{}}
	u.update.model = m
	return u
}
