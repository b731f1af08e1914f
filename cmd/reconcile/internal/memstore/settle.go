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
	s := &memorySettling{files: f, entries: entries, tree: t, all: all}
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

// memorySettling is one call of Settle.
type memorySettling struct {
	files   *Files
	tree    *state.Tree
	entries []*state.Entry
	all     bool

	view    *memoryView
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
func (s *memorySettling) scan(ctx context.Context) (err error) {
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
	s.findDirtyCaptures()
	return nil
}

// moveAside moves unreadable issue files and archives aside, and keeps their intact parts.
func (s *memorySettling) moveAside(ctx context.Context) error {
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

func (s *memorySettling) setAside(ctx context.Context, p string, issue int, cause error) error {
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

func (s *memorySettling) warning(text string) { s.out.Warnings = append(s.out.Warnings, text) }

// exists reports whether an Observation exists: in the tree, or, captured since the tree was loaded, on disk.
func (s *memorySettling) exists(name string) bool {
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
func (s *memorySettling) fold(ctx context.Context, dirty map[int]bool) error {
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

func (s *memorySettling) foldIssue(ctx context.Context, facts *memory.Facts, issue int) error {
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

// countStored counts the stored observations, for reports.
func (s *memorySettling) countStored(added []schemas.Observation) {
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
func (s *memorySettling) warnIfLarge() {
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
