package memstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/proc"
)

// step is what is remembered of the manifest: which file it was, and of which contents of the issue files it was made. It
// is written under the manifest's lock.
type step struct {
	id     state.Identity
	hash   uint64         // of the manifest
	racy   bool           // it may have been changed since without a sign
	dated  int64          // the modification time that this process gave it; see draft.place
	issues map[int]uint64 // hash of each issue file
}

// trusts reports whether a manifest is the one that is remembered. After a new start of the machine its content is
// compared: it is written without a sync.
func (s *step) trusts(id state.Identity, data []byte) bool {
	return s != nil && s.id == id && (!s.racy || xxhash.Sum64(data) == s.hash)
}

// loadStep reads what is remembered, nil if that is nothing.
func (f *Files) loadStep() *step {
	d := f.unsealed(stepPath)
	same := d.text() == proc.Self().Tag
	s := &step{id: d.identity(), hash: d.fixed(), issues: map[int]uint64{}}
	s.racy = d.fixed() != 0 || !same
	for n := d.number(); n > 0 && d.ok; n-- {
		issue := d.number()
		s.issues[issue] = d.fixed()
	}
	if !d.ok {
		return nil
	}
	return s
}

// saveStep remembers; what cannot be is found out again.
func (f *Files) saveStep(s *step) {
	if f.o.NoCache {
		return
	}
	racy := uint64(0)
	if s.id.Ctime > time.Now().Add(-tick).UnixNano() && s.id.Mtime != s.dated {
		racy = 1
	}
	b := appendIdentity(appendText(nil, proc.Self().Tag), s.id)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, s.hash), racy)
	b = binary.AppendUvarint(b, uint64(len(s.issues)))
	for _, issue := range slices.Sorted(maps.Keys(s.issues)) {
		b = binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(issue)), s.issues[issue])
	}
	_ = f.store.Replace(stepPath, seal(b))
}

func (d *reader) fixed() uint64 {
	if len(d.b) < 8 {
		d.b, d.ok = nil, false
		return 0
	}
	n := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return n
}

// sealMagic begins small files of the cache, behind their checksum; it ends with the version.
const sealMagic = "rcnmem\x01\x01"

// seal and unseal put a checksum and a version before the content of a small file of the cache, and check them.
func seal(body []byte) []byte {
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, len(body)+16), xxhash.Sum64(body))
	return append(append(out, sealMagic...), body...)
}

func unseal(data []byte) ([]byte, bool) {
	if len(data) < 16 || string(data[8:16]) != sealMagic || xxhash.Sum64(data[16:]) != binary.LittleEndian.Uint64(data) {
		return nil, false
	}
	return data[16:], true
}

// inStep reports whether the manifest is remembered as that of the issue files of the view.
func (f *Files) inStep(v *view) bool {
	s := f.loadStep()
	if s == nil || len(s.behind(v)) > 0 {
		return false
	}
	id, err := f.store.LookAt(f.manifestPath())
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
	f.saveStep(s) // it is as it was, and is not racy any more
	return true
}

// behind are the issues whose files are not those that the manifest was made of.
func (s *step) behind(v *view) []int {
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

// splices is up to how many issues are replaced in the manifest one by one.
const splices = 16

// keepInStep brings the manifest in step with the issue files. ours are the issues whose files this process has just
// written: if there is more to do, or the manifest is not as this program left it, that is told.
func (f *Files) keepInStep(ctx context.Context, ours map[int]bool) error {
	return f.again(func() error { return f.stepUp(ctx, ours) })
}

func (f *Files) stepUp(ctx context.Context, ours map[int]bool) error {
	v, err := f.latest()
	if err != nil || f.inStep(v) {
		return err
	}
	_, err = f.store.LookAt(f.manifestPath())
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && len(v.owners) == 0 {
		return nil
	}
	start := time.Now()
	rebuilt, err := f.underManifestLock(ctx, func(was []byte, s *step) ([][]byte, error) {
		if v, err = f.latest(); err != nil {
			return nil, err
		}
		return f.follow(v, was, s)
	}, ours)
	if rebuilt && err == nil {
		f.warn(fmt.Sprintf("Memory manifest rebuilt from issue files (took %dms)", time.Since(start).Milliseconds()))
	}
	return err
}

// follow makes the manifest of a view, and notes in s what it was made of. Where was can be trusted (s has issues), only
// what changed is replaced in it.
func (f *Files) follow(v *view, was []byte, s *step) ([][]byte, error) {
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

// spliced replaces some issues in the manifest by the lines that they have now.
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

// manifest is the manifest of all rows.
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
		_, _ = h.Write(p) // it has no errors
	}
	return h.Sum64()
}

// takeRoom is memory for reading the manifest, and giveRoom gives it back with what was read: megabytes that need not be
// found anew each time.
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

// errUnknown is the error of a next in underManifestLock that cannot do without what is remembered.
var errUnknown = errors.New("the manifest is not the one that is remembered")

// underManifestLock changes the manifest. next gets it and what is remembered of it: nothing if it is not the one that is
// remembered; after an error of next it is left alone. changed says whether it is another one now for other reasons than
// changes of ours.
func (f *Files) underManifestLock(ctx context.Context, next func(was []byte, s *step) ([][]byte, error),
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
		was, id = nil, state.Identity{} // none, or too large, or no file: there will be one
	}
	defer f.giveRoom(was)
	s := f.loadStep()
	trusted := s.trusts(id, was)
	if !trusted {
		s = &step{hash: xxhash.Sum64(was)}
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
	if s.id, err = f.store.LookAt(f.manifestPath()); err == nil {
		f.saveStep(s)
	}
	return changed, nil
}

// lostIsBusy has a lock that was lost, to somebody else or because the clock jumped, be one that somebody else holds: what
// was wanted can be tried again later.
func lostIsBusy(err error) error {
	if errors.Is(err, state.ErrStolen) && !errors.Is(err, state.ErrBusy) {
		return fmt.Errorf("%w: %w; run the command again", state.ErrBusy, err)
	}
	return err
}

// differBeside reports whether two manifests differ in more than the issues of ours; one that is damaged, or of another
// form, does.
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
