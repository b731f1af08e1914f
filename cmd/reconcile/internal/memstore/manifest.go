package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/vectors/lexical"
)

// manifestState records the last written manifest: its file, and the hashes of the issue files that it was made from. It is
// written under the manifest's lock.
type manifestState struct {
	id     state.Identity
	hash   uint64         // of the manifest
	racy   bool           // it may have changed since undetected
	dated  int64          // the modification time that this process set; see speculativeManifest.place
	issues map[int]uint64 // hash of each issue file
}

// trusts reports whether a manifest is the recorded one. After a reboot its content is compared, because it is written
// without a sync.
func (s *manifestState) trusts(id state.Identity, data []byte) bool {
	return s != nil && s.id == id && (!s.racy || xxhash.Sum64(data) == s.hash)
}

// loadManifestState reads the recorded state, or nil.
func (f *Files) loadManifestState() *manifestState {
	d := f.loadValues(manifestStatePath)
	same := d.String() == proc.Self().Tag
	s := &manifestState{id: decodeIdentity(&d), hash: d.Fixed()}
	s.racy = d.Bool() || !same
	if s.issues = decodeSettledHashes(&d); d.Bad {
		return nil
	}
	return s
}

// saveManifestState writes the state; if that fails, it is recomputed later.
func (f *Files) saveManifestState(s *manifestState) {
	if f.o.NoCache {
		return
	}
	var e sections.Encoder
	e.String(proc.Self().Tag)
	encodeIdentity(&e, s.id)
	e.Fixed(s.hash)
	e.Bool(s.id.Ctime > time.Now().Add(-tick).UnixNano() && s.id.Mtime != s.dated)
	encodeHashes(&e, s.issues)
	_ = f.saveValues(manifestStatePath, e.B)
}

// manifestCurrent reports whether the manifest was made from the issue files of the view.
func (f *Files) manifestCurrent(v *memoryView) bool {
	s := f.loadManifestState()
	if s == nil || len(s.behind(v)) > 0 {
		return false
	}
	id, err := f.store.Lstat(f.manifestPath())
	if err != nil || id != s.id {
		return false
	}
	if !s.racy {
		return true
	}
	data, id, err := f.store.ReadFile(f.manifestPath(), fileLimit)
	if err != nil || !s.trusts(id, data) {
		return false
	}
	f.saveManifestState(s) // unchanged, and not racy any more
	return true
}

// behind returns the issues whose files changed since the manifest was made.
func (s *manifestState) behind(v *memoryView) []int {
	var out []int
	for issue, o := range v.owners {
		if hash, ok := s.issues[issue]; !ok || hash != o.hash {
			out = append(out, issue)
		}
	}
	for issue := range s.issues {
		if _, ok := v.owners[issue]; !ok {
			out = append(out, issue)
		}
	}
	slices.Sort(out)
	return out
}

// splices is the maximum number of issues that are replaced individually in the manifest.
const splices = 16

// updateManifest updates the manifest to the issue files. ours are the issues whose files this process has just written: if
// more changes, or the manifest was modified by another program, it warns.
func (f *Files) updateManifest(ctx context.Context, ours map[int]bool) error {
	return f.again(func() error { return f.updateManifestOnce(ctx, ours) })
}

func (f *Files) updateManifestOnce(ctx context.Context, ours map[int]bool) error {
	v, err := f.latest()
	if err != nil || f.manifestCurrent(v) {
		return err
	}
	_, err = f.store.Lstat(f.manifestPath())
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && len(v.owners) == 0 {
		return nil
	}
	start := time.Now()
	rebuilt, err := f.underManifestLock(ctx, func(was []byte, s *manifestState) ([][]byte, error) {
		if v, err = f.latest(); err != nil {
			return nil, err
		}
		return f.nextManifest(v, was, s)
	}, ours)
	if rebuilt && err == nil {
		f.warn(fmt.Sprintf("Memory manifest rebuilt from issue files (took %dms)", time.Since(start).Milliseconds()))
	}
	return err
}

// nextManifest returns the manifest of a view, and records its sources in s. If was is trusted (s has issues), it replaces
// only the changed issues.
func (f *Files) nextManifest(v *memoryView, was []byte, s *manifestState) ([][]byte, error) {
	behind := s.behind(v)
	next, err := [][]byte{was}, memory.ErrDamaged
	if len(s.issues) > 0 && len(behind) <= splices {
		next, err = splicedManifest(was, behind, v.indexOf)
	}
	if errors.Is(err, memory.ErrDamaged) {
		next = make([][]byte, 1)
		next[0], err = v.manifest()
	}
	s.issues = make(map[int]uint64, len(v.owners))
	for issue, o := range v.owners {
		s.issues[issue] = o.hash
	}
	return next, err
}

// splicedManifest replaces some issues in the manifest by their present lines.
func splicedManifest(manifest []byte, issues []int, now func(int) ([]schemas.ObservationIndex, error)) ([][]byte, error) {
	next := [][]byte{manifest}
	for i, issue := range issues {
		lines, err := now(issue)
		if err == nil {
			if i > 0 {
				manifest = bytes.Join(next, nil)
			}
			next, err = memory.SpliceParts(manifest, issue, lines)
		}
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

// takeRoom returns a buffer to read the manifest, and giveRoom returns the buffer for reuse: allocating megabytes each time
// is slow.
func (f *Files) takeRoom() []byte {
	if room := f.room.Swap(nil); room != nil {
		return *room
	}
	return nil
}

func (f *Files) giveRoom(room []byte) {
	if room != nil {
		f.room.Store(&room)
	}
}

// errUnknown is returned by next in underManifestLock if it needs the recorded state.
var errUnknown = errors.New("the manifest is not the one that is remembered")

// underManifestLock changes the manifest. next gets it with its recorded state, which is empty if the manifest is not the
// recorded one; after an error of next the manifest does not change. changed reports whether it changed for other reasons
// than the issues in ours.
func (f *Files) underManifestLock(ctx context.Context, next func(was []byte, s *manifestState) ([][]byte, error),
	ours map[int]bool) (changed bool, err error) {
	f.manifestMu.Lock()
	defer f.manifestMu.Unlock()
	defer func() { err = lostIsBusy(err) }()
	l, err := f.store.LockFile(ctx, f.manifestPath())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	was, id, err := f.store.ReadFileInto(f.takeRoom(), f.manifestPath(), fileLimit)
	if err != nil {
		was, id = nil, state.Identity{} // missing, too large, or not a file: it is written
	}
	defer f.giveRoom(was)
	s := f.loadManifestState()
	trusted := s.trusts(id, was)
	if !trusted {
		s = &manifestState{hash: xxhash.Sum64(was)}
	}
	hash := s.hash
	before := maps.Clone(s.issues)
	parts, err := next(was, s)
	if err != nil {
		return false, err
	}
	s.hash = hashOf(parts)
	if was == nil || s.hash != hash {
		if err := l.Check(); err != nil {
			return false, err
		}
		if err := f.store.Replace(f.manifestPath(), parts...); err != nil {
			return false, err
		}
		f.writes.Add(1)
		if changed = !onlyOurs(before, s.issues, ours); changed && !trusted && was != nil && len(ours) > 0 {
			changed = differBeside(ours, was, bytes.Join(parts, nil))
		}
	}
	if s.id, err = f.store.Lstat(f.manifestPath()); err == nil {
		f.saveManifestState(s)
	}
	return changed, nil
}

// differBeside reports whether two manifests differ in other issues than ours; damaged and unknown ones do.
func differBeside(ours map[int]bool, was, is []byte) bool {
	a, err := memory.ParseManifest(was)
	b, err2 := memory.ParseManifest(is)
	if err != nil || err2 != nil || !bytes.Equal(memory.Manifest(a.Entries), was) {
		return true
	}
	own := func(e schemas.ObservationIndex) bool { return ours[e.IssueNumber] }
	return !slices.Equal(slices.DeleteFunc(a.Entries, own), slices.DeleteFunc(b.Entries, own))
}

// onlyOurs reports whether two lists of issue files differ only in issues of ours.
func onlyOurs(before, after map[int]uint64, ours map[int]bool) bool {
	for issue, hash := range after {
		if was, ok := before[issue]; (!ok || was != hash) && !ours[issue] {
			return false
		}
	}
	for issue := range before {
		if _, ok := after[issue]; !ok && !ours[issue] {
			return false
		}
	}
	return true
}

func sourcesOf(t *table) map[int]source {
	out := map[int]source{}
	for _, s := range t.sources() {
		out[s.issue] = s
	}
	return out
}

// putIntoManifest adds just written issue files to the manifest. Another process may have written them since: their present
// content counts. d may be the next manifest.
func (f *Files) putIntoManifest(ctx context.Context, changed map[int][]byte, d *speculativeManifest) error {
	if ok, err := d.place(ctx, changed); ok || err != nil {
		return lostIsBusy(err)
	}
	ours := map[int]bool{}
	for issue := range changed {
		ours[issue] = true
	}
	_, err := f.underManifestLock(ctx, func(was []byte, s *manifestState) ([][]byte, error) {
		if len(s.issues) == 0 {
			return nil, errUnknown
		}
		return splicedManifest(was, slices.Sorted(maps.Keys(changed)), func(issue int) ([]schemas.ObservationIndex, error) {
			return f.currentLines(issue, s)
		})
	}, ours)
	if errors.Is(err, errUnknown) || errors.Is(err, memory.ErrDamaged) { // all issue files must be read
		return f.updateManifest(ctx, ours)
	}
	return err
}

// currentLines returns the manifest lines of an issue from its present file, whose hash it records in s.
func (f *Files) currentLines(issue int, s *manifestState) ([]schemas.ObservationIndex, error) {
	data, err := f.readOrNil(f.issuePath(issue))
	if err != nil {
		return nil, err
	}
	if data == nil {
		delete(s.issues, issue)
		return nil, nil
	}
	m, err := memory.Parse(data)
	if err != nil {
		return nil, err
	}
	s.issues[issue] = xxhash.Sum64(data)
	out := make([]schemas.ObservationIndex, len(m.Observations))
	for i := range m.Observations {
		out[i] = m.Observations[i].Index()
	}
	return out, nil
}

// sameManifest reports whether two contents are equal; nil means no file.
func sameManifest(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// checkManifest updates the manifest if this program did not write its present form: nothing here reads it, but other
// programs do. It checks once.
func (f *Files) checkManifest(ctx context.Context, v *memoryView) {
	f.mu.Lock()
	done := f.checked
	f.checked = true
	f.mu.Unlock()
	if done || len(v.owners) == 0 {
		return
	}
	id, err := f.store.Lstat(f.manifestPath())
	if s := f.loadManifestState(); s != nil && err == nil && s.id == id {
		return
	}
	if err := f.updateManifest(ctx, nil); err != nil && !errors.Is(err, state.ErrBusy) && !errors.Is(err, fs.ErrPermission) {
		f.warn(fmt.Sprintf("%s cannot be brought in step: %v", f.manifestPath(), err))
	}
}

// hashedSegments returns the parts in pieces, each hashed just before it is yielded.
func hashedSegments(parts [][]byte, h *xxhash.Digest) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		at := 0
		for _, p := range parts {
			for len(p) > 0 {
				n := min(len(p), pieceSize-at%pieceSize)
				at += n
				_, _ = h.Write(p[:n]) // never fails
				if !yield(p[:n]) {
					return
				}
				p = p[n:]
			}
		}
	}
}

func wordSegments(parts []part) []lexical.Segment {
	out := make([]lexical.Segment, len(parts))
	for i, p := range parts {
		out[i] = lexical.Segment{Index: p.table.lex, Deleted: p.dead}
	}
	return out
}
