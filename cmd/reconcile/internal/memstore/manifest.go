package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/proc"
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
	if s.issues = decodeHashes(&d); d.Bad {
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
func (f *Files) manifestCurrent(v *view) bool {
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
func (s *manifestState) behind(v *view) []int {
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
func (f *Files) nextManifest(v *view, was []byte, s *manifestState) ([][]byte, error) {
	behind := s.behind(v)
	next, err := [][]byte{was}, memory.ErrDamaged
	if len(s.issues) > 0 && len(behind) <= splices {
		next, err = spliced(was, behind, v.indexOf)
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

// spliced replaces some issues in the manifest by their present lines.
func spliced(manifest []byte, issues []int, now func(int) ([]schemas.ObservationIndex, error)) ([][]byte, error) {
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

// manifest returns the manifest of all rows.
func (v *view) manifest() ([]byte, error) {
	lines := make([]schemas.ObservationIndex, 0, v.len())
	var err error
	v.each(func(at place, r row) bool {
		var line schemas.ObservationIndex
		line, _, err = v.index(at, r)
		lines = append(lines, line)
		return err == nil
	})
	return memory.Manifest(lines), err
}

func hashOf(parts [][]byte) uint64 {
	h := xxhash.New()
	for _, p := range parts {
		_, _ = h.Write(p) // never fails
	}
	return h.Sum64()
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

// lostIsBusy returns a lost lock, stolen by another process or expired because the clock jumped, as a busy lock: the
// operation can be retried later.
func lostIsBusy(err error) error {
	if errors.Is(err, state.ErrStolen) && !errors.Is(err, state.ErrBusy) {
		return fmt.Errorf("%w: %w; run the command again", state.ErrBusy, err)
	}
	return err
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
