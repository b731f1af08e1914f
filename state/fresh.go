package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	quick "github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/regular"
)

// Summary is what a run that reached its fixed point leaves for the next one, which, when nothing changed since, has
// only to repeat it.
type Summary struct {
	Counts []Count   `json:"counts,omitempty"`
	Exit   int       `json:"exit"`
	Wake   time.Time `json:"wake,omitzero"` // when something becomes due; zero: never
	Commit bool      `json:"commit,omitempty"`
	Push   bool      `json:"push,omitempty"`   // the settings say so: what is new elsewhere is to be asked first
	Mirror bool      `json:"mirror,omitempty"` // the settings say so: GitHub may be behind
	Lines  []string  `json:"lines,omitempty"`  // what else the run had to say
	// Clocks are the objects that are decided again at some time although nothing changes.
	Clocks []schemas.Ref `json:"-"`
	// Dormant are objects that want nothing until something of them, or of what they refer to, changes.
	Dormant []schemas.Ref `json:"-"`
}

// Count counts the objects of a kind.
type Count struct {
	Kind  string `json:"kind"`
	Ready int    `json:"ready"`
	Total int    `json:"total"`
}

// settled is the file that Settle writes, behind a line with the hash of the rest.
type settled struct {
	Build   string          `json:"build"`
	Folders schemas.Folders `json:"folders"`
	Globs   []string        `json:"globs,omitempty"`
	Outputs []string        `json:"outputs,omitempty"` // declared and present
	Missing []string        `json:"missing,omitempty"` // declared and not present
	Sum     sum             `json:"sum"`
	Base    uint64          `json:"base"` // the hash of the file that says what each file held
	At      time.Time       `json:"at"`
	Summary Summary         `json:"summary"`
}

// Fresh reports whether a run would find nothing to do: no file of the tree, the settings or any node's inputs changed
// since Settle as far as the file system tells, no process has anything in its journal, the program is the same one,
// and nothing is due yet. It reads no file of the tree.
func (s *Store) Fresh() (Summary, bool) {
	was, ok := s.readSettled()
	if !ok || s.opts.NoCache || was.Build != s.opts.Build || s.journalsHold() || s.lockLeft() {
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
	first := &glance{gen: s.generation(), layout: l}
	is, err := s.sumTree(context.Background(), first, was.Globs)
	if err != nil {
		return Summary{}, false
	}
	if is != was.Sum || !s.outputsStand(was.Outputs, was.Missing) {
		s.mu.Lock()
		defer s.mu.Unlock()
		first.at = s.opts.FileNow()
		s.first = first
		return Summary{}, false
	}
	return was.Summary, true
}

// glance is what Fresh saw, for the Load that follows: files are looked at once.
type glance struct {
	gen    int64     // before it
	at     time.Time // after it
	layout *layout
	parts  []noting
}

// noting is the visitor that sums and keeps what it saw, in as little room as that takes: most often nobody asks for it.
type noting struct {
	summer
	troubles []trouble
	full     [][]noted // lists that have no more room
	files    []noted
	names    []byte   // of files, one behind the other
	folders  []string // that are worth watching
}

type noted struct {
	dir  string
	name []byte
	area area
	look [2]uint64
	stat stat
}

func (n *noting) file(a area, dir string, name []byte, st *stat) {
	look := n.addFile(dir, name, st)
	if len(n.files) == cap(n.files) {
		n.full = append(n.full, n.files)
		n.files = make([]noted, 0, 1024)
	}
	if cap(n.names)-len(n.names) < len(name) {
		n.names = make([]byte, 0, 32<<10)
	}
	at := len(n.names)
	n.names = append(n.names, name...)
	n.files = append(n.files, noted{dir, n.names[at:len(n.names):len(n.names)], a, look, *st})
}

func (n *noting) folder(_ *folder, dir string) { n.folders = append(n.folders, dir) }

func (n *noting) trouble(t trouble) {
	n.addTrouble(t)
	n.troubles = append(n.troubles, t)
}

// each yields the files.
func (g *glance) each() iter.Seq[*noted] {
	return func(yield func(*noted) bool) {
		for i := range g.parts {
			n := &g.parts[i]
			for _, list := range append(n.full, n.files) {
				for j := range list {
					if !yield(&list[j]) {
						return
					}
				}
			}
		}
	}
}

// troubled reports whether something could not be looked at.
func (g *glance) troubled() bool {
	return slices.ContainsFunc(g.parts, func(n noting) bool { return len(n.troubles) > 0 })
}

// seen is what a scan would return.
func (g *glance) seen() (found []seen, troubles []trouble) {
	for f := range g.each() {
		found = append(found, seen{f.dir + "/" + string(f.name), f.area, f.stat})
	}
	for i := range g.parts {
		troubles = append(troubles, g.parts[i].troubles...)
	}
	return found, troubles
}

// sumTree is the fingerprint of all files that a run depends on.
func (s *Store) sumTree(ctx context.Context, look *glance, globs []string) (sum, error) {
	l := look.layout
	look.parts = make([]noting, workers())
	visitors := make([]visitor, len(look.parts))
	for i := range look.parts {
		visitors[i] = &look.parts[i]
	}
	if err := scan(ctx, s.root, l, visitors...); err != nil {
		return sum{}, err
	}
	var all summer
	for i := range look.parts {
		all.merge(look.parts[i].sum)
	}
	if st, err := lstat(s.root, schemas.SettingsPath); err == nil {
		all.addFile("", []byte(schemas.SettingsPath), &st)
	}
	s.addRules(&all, globs, s.storedBy(globs))
	err := walkInputs(ctx, s.root, l, globs, func(p string, st stat) { addInput(&all, p, &st) }, all.addRule)
	return all.sum, err
}

// sum is the fingerprint of what the model knows, of which is is the base; it equals that of Fresh exactly when nothing else
// has changed.
func (m *model) sum(is *base) sum {
	all := summer{sum: is.sum()}
	for _, t := range m.troubles {
		all.addTrouble(t)
	}
	if m.settings.stat != (stat{}) {
		all.addFile("", []byte(schemas.SettingsPath), &m.settings.stat)
	}
	m.inputs.addTo(&all)
	return all.sum
}

func splitPath(p string) (dir, name string) {
	i := strings.LastIndexByte(p, '/')
	return p[:max(i, 0)], p[i+1:]
}

// ErrChanged says that a file was changed behind the store's back: look at the tree again.
var ErrChanged = errors.New("the tree changed meanwhile")

// Settle records that the tree, as this store knows it, is at its fixed point: Fresh compares that with the files. With
// ErrChanged another process of ours wrote or recorded something since the last look; nothing is recorded then. Where a
// journal is still in use the next run looks for itself. Settle waits, for some milliseconds, until no file is so young
// that a further change of it could look the same.
func (s *Store) Settle(sum Summary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || s.model.later != nil || s.opts.NoCache {
		return nil
	}
	if !s.waitOutTick() || s.journalsHold() {
		return s.unsettle()
	}
	present, missing := s.model.declared.split()
	if s.roused.Load() || s.generation() != s.seenGen || !s.outputsStand(present, missing) {
		return ErrChanged
	}
	if err := errors.Join(s.ensureLocal(localDir), s.bump()); err != nil {
		return err
	}
	if err := s.ripen(context.Background()); err != nil {
		return fmt.Errorf("read again what was written: %w", err)
	}
	is := s.model.base(sum.Clocks, sum.Dormant)
	base, err := s.writeBase(is)
	if err != nil {
		return err
	}
	l := s.layout()
	b, err := json.Marshal(settled{s.opts.Build, schemas.Folders{Specs: l.specs, State: l.state}, s.model.inputs.globs,
		present, missing, s.model.sum(is), base, s.opts.Now(), sum})
	if err != nil {
		return fmt.Errorf("record that the tree is settled: %w", err)
	}
	return s.replaceLocal(settledPath, append(fmt.Appendf(nil, "%016x\n", xxhash.Sum64(b)), b...))
}

// ripen reads the files again that were so young when they were read or written that a further change could look the same.
// They are old enough now, so that the next process finds all of them in the cache, also after a first run. One that holds
// something else by now stays as it is known here: then the tree is not settled.
func (s *Store) ripen(ctx context.Context) error {
	var young []seen
	for p, f := range s.model.files {
		if f.racy && f.area != areaOther {
			young = append(young, seen{p, f.area, f.stat})
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
	s.cache.finish(s.model)
	return nil
}

// outputsStand reports whether exactly the first of the declared outputs exist.
func (s *Store) outputsStand(present, missing []string) bool {
	if len(present)+len(missing) == 0 {
		return true
	}
	is := missingOf(s.root, slices.Concat(present, missing))
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
	newest := s.model.settings.stat.changed()
	for _, f := range s.model.files {
		newest = max(newest, f.stat.changed())
	}
	for _, f := range s.model.inputs.files {
		newest = max(newest, f.stat.changed())
	}
	wait := time.Duration(newest-s.opts.FileNow().UnixNano()) + tick
	if wait > tick {
		return false // from the future: the clocks differ
	}
	if wait > 0 {
		<-time.After(wait)
	}
	return true
}

// replaceLocal replaces a local file that may be lost but is not half written by a process that was killed. There is
// one name for what is being written, so that such a process leaves nothing that stays.
func (s *Store) replaceLocal(p string, data []byte) error {
	if err := s.ensureLocal(cacheDir); err != nil {
		return err
	}
	temp := p + ".new"
	if err := regular.Write(s.root, temp, data, 0o644); err != nil {
		_ = s.root.Remove(temp)
		return fmt.Errorf("write %s: %w", p, err)
	}
	if err := s.root.Rename(temp, p); err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

func (s *Store) readSettled() (settled, bool) {
	b, err := regular.Read(s.root, settledPath)
	if err != nil || len(b) < checksumSize {
		return settled{}, false
	}
	var was settled
	want, err := strconv.ParseUint(string(b[:checksumSize-1]), 16, 64)
	rest := b[checksumSize:]
	if err != nil || want != xxhash.Sum64(rest) || quick.Unmarshal(rest, &was) != nil {
		return settled{}, false
	}
	return was, was.Folders.Specs != "" && was.Folders.State != ""
}

// journalsHold reports whether some journal says anything, or was left behind by a process that died.
func (s *Store) journalsHold() bool {
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

// lockLeft reports whether somebody holds the lock of the tree, or died with it.
func (s *Store) lockLeft() bool {
	return slices.ContainsFunc(s.folderNames(localDir), func(name string) bool {
		return strings.HasPrefix(localDir+"/"+name, treeLockPath+".")
	})
}
