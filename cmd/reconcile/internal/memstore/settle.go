package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Limits beyond which a store should be compacted (agentx-spec, memory pipeline 12.3).
const (
	largeStore       = 40 << 20 // bytes
	manyObservations = 40_000
)

// Settle brings the memory files up to date with the specs of a tree and the records: it ingests new captures, rebuilds
// files that were changed by hand, moves damaged files aside, and updates the manifest. The tree must be locked by the
// store's process. A second call changes nothing, and costs a stat for each file.
func (f *Files) Settle(ctx context.Context, t *state.Tree) (Settled, error) {
	return f.settle(ctx, t, false)
}

// Rebuild settles the memory files without the cache: it folds every issue file again, and rebuilds the manifest.
func (f *Files) Rebuild(ctx context.Context, t *state.Tree) (Settled, error) {
	return f.settle(ctx, t, true)
}

func (f *Files) settle(ctx context.Context, t *state.Tree, all bool) (Settled, error) {
	entries := t.Entries(schemas.ObservationKind.Name)
	if !*f.settings().Memory.Enabled || len(entries) == 0 && !f.store.HasMemory() {
		return Settled{}, nil
	}
	s := &settling{files: f, entries: entries, tree: t, all: all}
	if err := s.scan(ctx); err != nil {
		return s.out, err
	}
	dirty := s.dirty()
	if err := s.fold(ctx, dirty); err != nil {
		return s.out, err
	}
	if err := f.updateManifest(ctx, dirty); err != nil {
		return s.out, fmt.Errorf("keep %s in step: %w", f.manifestPath(), err)
	}
	summed, err := s.sumRecalls()
	if err != nil {
		return s.out, err
	}
	if len(dirty) > 0 || summed {
		s.saveSettled()
	}
	s.warnIfLarge()
	return s.out, nil
}

// settling is one call of Settle.
type settling struct {
	files   *Files
	tree    *state.Tree
	entries []*state.Entry
	all     bool

	view    *view
	taken   map[string]memory.Taken
	names   map[string]state.Identity // records
	before  settled
	archive map[int]state.Identity // archives
	hashes  map[int]uint64         // of the folded issue files
	wrong   map[int]bool           // issues whose files have a wrong digest of a capture
	missing map[string]bool        // whether the file of a capture that is not in the tree exists
	out     Settled
	stored  map[storedKey]*Stored
}

type storedKey struct {
	issue int
	agent string
}

// scan reads the present files, and moves damaged ones aside.
func (s *settling) scan(ctx context.Context) (err error) {
	if s.view, err = s.files.latest(); err != nil {
		return err
	}
	if err := s.moveAside(ctx); err != nil {
		return err
	}
	err = s.files.again(func() error {
		if s.view, err = s.files.latest(); err == nil {
			s.taken, err = s.view.taken()
		}
		return err
	})
	if err != nil {
		return err
	}
	if s.names, err = s.files.recordNames(); err != nil {
		return err
	}
	s.archive = s.files.archives()
	s.hashes = make(map[int]uint64, len(s.view.owners))
	for issue, o := range s.view.owners {
		s.hashes[issue] = o.hash
	}
	if !s.all {
		s.before = s.files.loadSettled()
	}
	s.edited()
	return nil
}

// archives returns the existing archives.
func (f *Files) archives() map[int]state.Identity {
	out := map[int]state.Identity{}
	_ = f.store.ListFolder(f.archiveDir(), func(name []byte, id state.Identity) {
		stem, ok := strings.CutSuffix(string(name), "-archived.json")
		if issue, is := issueOf(stem + ".json"); ok && is {
			out[issue] = id
		}
	}) // a missing folder has none
	return out
}

// moveAside moves unreadable issue files and archives aside, and keeps their intact parts.
func (s *settling) moveAside(ctx context.Context) error {
	for _, issue := range slices.Sorted(maps.Keys(s.view.bad)) {
		if !errors.Is(s.view.bad[issue], memory.ErrDamaged) {
			continue
		}
		if err := s.setAside(ctx, s.files.issuePath(issue), issue, s.view.bad[issue]); err != nil {
			return err
		}
	}
	return nil
}

func (s *settling) setAside(ctx context.Context, p string, issue int, cause error) error {
	damaged := func(data []byte) bool {
		m, err := memory.Parse(data)
		return errors.Is(err, memory.ErrDamaged) || err == nil && m.IssueNumber != issue
	}
	err := s.files.store.SetAside(ctx, p, damaged, func(data []byte) []byte { return memory.Salvage(data, issue) })
	if err == nil {
		s.out.Wrote = true
		s.files.writes.Add(1)
		s.warning(fmt.Sprintf("%s: %v; it was moved to .reconcile/damaged, and is made anew of what can be read in it and of "+
			"the Observations", p, cause))
	}
	return err
}

func (s *settling) warning(text string) { s.out.Warnings = append(s.out.Warnings, text) }

// edited finds the captures whose specs differ from the ingested ones. If the observations of one match its spec, only the
// recorded digest is wrong: folding the issue again corrects it.
func (s *settling) edited() {
	s.out.Edited, s.wrong = map[string]string{}, map[int]bool{}
	for _, e := range s.entries {
		taken, ok := s.taken[e.Name]
		if !ok || e.Object == nil || taken.Digest == e.Object.Digest {
			continue
		}
		if s.accepted(e, taken) {
			taken.Digest = e.Object.Digest
			s.taken[e.Name], s.wrong[taken.Issue] = taken, true
			continue
		}
		s.out.Edited[e.Name] = taken.Digest
	}
}

// accepted reports whether a capture was ingested with its present spec.
func (s *settling) accepted(e *state.Entry, taken memory.Taken) bool {
	spec := schemas.SpecAs[*schemas.ObservationSpec](e.Object)
	if spec == nil {
		return false
	}
	var stored []schemas.Observation
	for _, p := range []string{s.files.issuePath(taken.Issue), s.files.archivePath(taken.Issue)} {
		m, err := s.files.readIssue(p, taken.Issue)
		if err != nil {
			return false
		}
		stored = append(stored, m.Observations...)
	}
	removed := map[string]bool{}
	for _, r := range s.files.records(s.names) {
		if r.Type == schemas.RecordRemoved {
			for _, id := range r.IDs {
				removed[id] = true
			}
		}
	}
	return memory.Holds(memory.Spec{Name: e.Name, ObservationSpec: spec}, taken, stored, removed)
}

// exists reports whether an Observation exists: in the tree, or, captured since the tree was loaded, on disk.
func (s *settling) exists(name string) bool {
	if e := s.tree.Entry(schemas.Ref{Kind: schemas.ObservationKind.Name, Name: name}); e != nil && !e.Gone() {
		return true
	}
	is, ok := s.missing[name]
	if !ok {
		_, err := s.files.store.Lstat(s.files.specPath(name))
		is = !errors.Is(err, fs.ErrNotExist)
		if s.missing == nil {
			s.missing = map[string]bool{}
		}
		s.missing[name] = is
	}
	return is
}

// fold folds the issues.
func (s *settling) fold(ctx context.Context, dirty map[int]bool) error {
	if len(dirty) == 0 {
		return nil
	}
	facts := memory.NewFacts(memory.Truth{
		Specs: s.specs(dirty), Records: s.files.records(s.names), Taken: s.taken, Exists: s.exists,
	})
	for i, issue := range slices.Sorted(maps.Keys(dirty)) {
		s.files.doing("settle the memory", i, len(dirty))
		if err := s.foldIssue(ctx, facts, issue); err != nil {
			return err
		}
	}
	if s.out.Wrote {
		if err := s.files.store.Announce(); err != nil {
			return err
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.stored), func(a, b storedKey) int {
		return cmp.Or(cmp.Compare(a.issue, b.issue), strings.Compare(a.agent, b.agent))
	}) {
		s.out.Stored = append(s.out.Stored, *s.stored[key])
	}
	return nil
}

// specs returns the captures that affect the issues.
func (s *settling) specs(dirty map[int]bool) []memory.Spec {
	var out []memory.Spec
	for _, e := range s.entries {
		if e.Object == nil || !s.affects(e, dirty) {
			continue
		}
		if spec := schemas.SpecAs[*schemas.ObservationSpec](e.Object); spec != nil {
			out = append(out, memory.Spec{Name: e.Name, Digest: e.Object.Digest, ObservationSpec: spec})
		}
	}
	return out
}

// affects reports whether a capture refers to one of the issues. A capture that is not ingested yet does.
func (s *settling) affects(e *state.Entry, dirty map[int]bool) bool {
	taken, ok := s.taken[e.Name]
	if !ok || dirty[taken.Issue] {
		return true
	}
	marked := map[int]bool{}
	markLinks(marked, taken.Links)
	for issue := range marked {
		if dirty[issue] {
			return true
		}
	}
	return false
}

func (s *settling) foldIssue(ctx context.Context, facts *memory.Facts, issue int) error {
	fold := func(file, archive []byte) (memory.Folded, error) { return facts.Fold(issue, file, archive) }
	folded, settled, err := s.files.asItIs(issue, fold)
	if errors.Is(err, memory.ErrDamaged) { // the archive: issue files were checked
		if err = s.setAside(ctx, s.files.archivePath(issue), issue, err); err == nil {
			folded, settled, err = s.files.asItIs(issue, fold)
		}
	}
	wrote := false
	if err == nil && !settled {
		folded, wrote, err = s.files.change(ctx, issue, nil, fold)
	}
	if errors.Is(err, memory.ErrNewer) {
		s.warning(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	s.out.Wrote = s.out.Wrote || wrote
	if delete(s.hashes, issue); folded.File != nil {
		s.hashes[issue] = xxhash.Sum64(folded.File)
	}
	s.countStored(folded.Added)
	return nil
}

// asItIs folds an issue without a lock; settled is set if nothing changes.
func (f *Files) asItIs(issue int, fold folding) (out memory.Folded, settled bool, err error) {
	file, err := f.readOrNil(f.issuePath(issue))
	if err != nil {
		return out, false, err
	}
	archive, err := f.readOrNil(f.archivePath(issue))
	if err != nil {
		return out, false, err
	}
	if out, err = fold(file, archive); err != nil {
		return out, false, fmt.Errorf("fold %s: %w", f.issuePath(issue), err)
	}
	return out, same(file, out.File) && same(archive, out.Archive), nil
}

// countStored counts the stored observations, for reports.
func (s *settling) countStored(added []schemas.Observation) {
	for _, o := range added {
		key := storedKey{o.IssueNumber, o.Agent}
		if s.stored[key] == nil {
			if s.stored == nil {
				s.stored = map[storedKey]*Stored{}
			}
			s.stored[key] = &Stored{Agent: o.Agent, Issue: o.IssueNumber}
		}
		st := s.stored[key]
		st.IDs = append(st.IDs, o.ID)
		st.Tokens += o.Tokens
	}
}

// warnIfLarge warns of a store that is too large.
func (s *settling) warnIfLarge() {
	v, err := s.files.recent(false)
	if err != nil {
		return
	}
	if n := v.len(); n > manyObservations {
		s.warning(fmt.Sprintf("Memory store has %d observations. Consider compaction.", n))
	}
	if s.files.size(v) > largeStore {
		s.warning("Memory store exceeds 40MB. Run 'reconcile memory compact' to reduce.")
	}
}

// size returns the size of the store's files in bytes, without the records.
func (f *Files) size(v *view) int64 {
	var n int64
	for _, o := range v.owners {
		n += o.id.Size
	}
	for _, id := range f.archives() {
		n += id.Size
	}
	if id, err := f.store.Lstat(f.manifestPath()); err == nil {
		n += id.Size
	}
	return n
}

// taken returns the captures that the issue files hold.
func (v *view) taken() (map[string]memory.Taken, error) {
	out := map[string]memory.Taken{}
	for _, o := range v.owners {
		m, err := v.parts[o.part].table.taken(&o.source)
		if err != nil {
			return nil, err
		}
		memory.TakenIn(m, out)
	}
	return out, nil
}
