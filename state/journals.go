package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/regular"
)

// readJournals updates the model's journals and returns the objects that have new entries.
func (s *Store) readJournals(m *model) map[schemas.Ref]bool {
	touched := map[schemas.Ref]bool{}
	names := s.listJournals()
	for name, v := range m.journals {
		if !slices.Contains(names, name) {
			v.touchAll(touched)
			delete(m.journals, name)
		}
	}
	for _, name := range names {
		if s.own.Load() != nil && name == s.own.Load().name {
			m.journals[name] = s.own.Load().view
		} else {
			s.readJournal(m, name, touched)
		}
	}
	for _, v := range m.journals {
		for ref := range v.touched {
			touched[ref] = true
		}
		clear(v.touched)
	}
	return touched
}

// Journaled returns the refs of the objects that have results in a journal, or claims of a live process, as of the last
// load, sorted. Their status files may be out of date.
func (s *Store) Journaled() []schemas.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return nil
	}
	var out []schemas.Ref
	for _, v := range s.model.journals {
		for ref, own := range v.owners {
			if len(own.results) > 0 || v.alive && len(own.claims) > 0 {
				out = append(out, ref)
			}
		}
	}
	slices.SortFunc(out, schemas.Ref.Compare)
	return slices.Compact(out)
}

// journalNames returns the processes that have journals, sorted.
func (s *Store) journalNames() []string {
	var out []string
	for _, f := range s.folderNames(journalDir) {
		if name, ok := strings.CutSuffix(f, journalSuffix); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// listJournals is journalNames. It reads no names if the folder did not change since the last time.
func (s *Store) listJournals() []string {
	now := s.opts.FileNow()
	st, err := disk.Lstat(s.root, journalDir)
	if err != nil {
		return nil
	}
	if was, ok := s.listed[journalDir]; !ok || was.racy || was.stat != st {
		if s.listed == nil {
			s.listed = map[string]listedFolder{}
		}
		s.listed[journalDir], s.journals = listedFolder{st, st.RacyAt(now, s.tick)}, s.journalNames()
	}
	return s.journals
}

// folderNames returns the names in a local folder; nil if it cannot be read.
func (s *Store) folderNames(dir string) []string {
	d, err := regular.Folder(s.root, dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}

// otherJournals reads the journals of all other processes from the start, sorted by process.
func (s *Store) otherJournals() []*journalView {
	m := newModel(s.layout())
	var out []*journalView
	for _, name := range s.journalNames() {
		if s.own.Load() != nil && name == s.own.Load().name {
			continue
		}
		s.readJournal(m, name, map[schemas.Ref]bool{})
		if v := m.journals[name]; v != nil {
			out = append(out, v)
		}
	}
	return out
}

// readJournal reads the new entries in another process's journal. If the file was replaced, it drops the old view.
func (s *Store) readJournal(m *model, name string, touched map[schemas.Ref]bool) {
	f, fi, err := regular.Open(s.root, journalDir+"/"+name+journalSuffix)
	if err != nil {
		return // removed since it was listed; the next refresh drops the view
	}
	defer f.Close()
	st, v := disk.StatOf(fi), m.journals[name]
	if v != nil && (st.Ino != v.stat.Ino || st.Size < v.size) {
		v.touchAll(touched)
		v = nil
	}
	if v == nil {
		v = newJournalView(name, m.layout)
		m.journals[name] = v
	}
	if alive := filelock.Held(f); alive != v.alive {
		v.alive = alive
		v.touchAll(touched)
	}
	if st.Size > v.size {
		v.read(f)
	}
	v.stat = st
}

// Orphan is an effect that a process claimed before it died without a result. Its command may still run.
type Orphan struct {
	Claim
}

// Recover recovers the journals of dead processes: it writes their results as files, and returns the claims without a result
// as orphans, sorted by key. When no process of these runs any more, the caller calls ForgetOrphans; journals without such
// claims are removed at once.
func (s *Store) Recover(ctx context.Context) ([]Orphan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range []string{tmpDir, WorkDir} {
		if err := durable.Sweep(s.root, dir); err != nil {
			return nil, fmt.Errorf("remove what a killed process was writing: %w", err)
		}
	}
	s.sweepJournals()
	var orphans []Orphan
	for _, v := range s.otherJournals() {
		if v.alive {
			continue
		}
		if err := s.writeRuns(ctx, v.results(), nil); err != nil {
			return nil, fmt.Errorf("recover the journal of process %s: %w", v.name, err)
		}
		for _, c := range v.keys {
			orphans = append(orphans, s.orphan(*c))
		}
		if len(v.keys) == 0 {
			if err := s.removeJournal(v.name); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(orphans, func(a, b Orphan) int { return strings.Compare(a.Key+" "+a.Process, b.Key+" "+b.Process) })
	return orphans, nil
}

// orphan is the orphan of a claim. A process that is killed may have started an agent and not have written that yet: then the file with the
// token of the run says so.
func (s *Store) orphan(c Claim) Orphan {
	if c.StartedAt.IsZero() && c.Agent != "" {
		if fi, err := s.root.Lstat(TokenFile(c.Key)); err == nil {
			c.StartedAt = schemas.NewTime(fi.ModTime())
		}
	}
	return Orphan{c}
}

// TokenFile is the path of the file with the digest of the token of an agent's run, below the root. It exists from before the start of the
// agent until after its end.
func TokenFile(key string) string {
	return path.Join(WorkDir, strings.ReplaceAll(key, "/", "~")+".token")
}

// RecordElsewhere writes the results in the journals of other live processes as files. The journals keep them until their own
// checkpoints, which find the files.
func (s *Store) RecordElsewhere(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.otherJournals() {
		if err := s.writeRuns(ctx, v.results(), nil); err != nil {
			return fmt.Errorf("write the results of process %s: %w", v.name, err)
		}
	}
	return nil
}

// Orphaned reports whether any journal of another process, as of the last load, is not alive and has open claims. The
// commands of the orphans that Recover returns then may still run.
func (s *Store) Orphaned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return false
	}
	for _, v := range s.model.journals {
		if !v.alive && len(v.keys) > 0 && (s.own.Load() == nil || v != s.own.Load().view) {
			return true
		}
	}
	return false
}

// ClaimedElsewhere reports whether any journal of the last load, other than the own, is alive and has claims: those of
// another live process.
func (s *Store) ClaimedElsewhere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return false
	}
	for _, v := range s.model.journals {
		if v.alive && len(v.keys) > 0 && (s.own.Load() == nil || v != s.own.Load().view) {
			return true
		}
	}
	return false
}

// Attended reports whether another process has a live journal as of the last load: it has performed effects in this tree, and goes on.
func (s *Store) Attended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return false
	}
	for _, v := range s.model.journals {
		if v.alive && (s.own.Load() == nil || v != s.own.Load().view) {
			return true
		}
	}
	return false
}

// sweepJournals removes unfinished journals of killed processes. The lock of the tree keeps other processes from creating
// one.
func (s *Store) sweepJournals() {
	for _, name := range s.folderNames(journalDir) {
		if !strings.HasSuffix(name, journalNew) {
			continue
		}
		f, _, err := regular.Open(s.root, journalDir+"/"+name)
		if err != nil {
			continue
		}
		if !filelock.Held(f) {
			_ = s.root.Remove(journalDir + "/" + name) // the next run tries again
		}
		f.Close()
	}
}

// ForgetOrphans says that no process of the given orphans runs any more: it removes the journals that Recover took them
// from, if all their claims are among the orphans. Before that it writes records of their usage, and then removes the files that say
// that they had started.
func (s *Store) ForgetOrphans(ctx context.Context, orphans []Orphan, used []*schemas.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeRuns(ctx, used, nil); err != nil {
		return fmt.Errorf("record what killed runs used: %w", err)
	}
	for _, o := range orphans {
		if err := s.root.Remove(TokenFile(o.Key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the token of a killed run: %w", err)
		}
	}
	for _, v := range s.otherJournals() {
		open := len(v.keys)
		for _, o := range orphans {
			if o.Process == v.name && v.keys[o.Key] != nil {
				open--
			}
		}
		if v.alive || open > 0 {
			continue
		}
		if err := s.writeRuns(ctx, v.results(), nil); err != nil {
			return fmt.Errorf("recover the journal of process %s: %w", v.name, err)
		}
		if err := s.removeJournal(v.name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) removeJournal(name string) error {
	err := s.root.Remove(journalDir + "/" + name + journalSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the journal of process %s: %w", name, err)
	}
	return nil
}

// journals reads the new entries of the journals, and the list of files that were moved aside.
func (u *update) journals() {
	for _, ref := range u.store.moved {
		u.moved[ref] = true
		u.touch(ref)
		u.faulty = true
	}
	u.store.moved = nil
	for ref := range u.store.readJournals(u.model) {
		u.touch(ref)
	}
}

// JournalInfo describes one process's journal.
type JournalInfo struct {
	Process string
	Alive   bool // the process holds it
	Results int  // not yet in files
	Claims  int  // effects without a result
	Damaged bool // a part cannot be used
}

// Journals describes the journals of all other processes and changes nothing. They are sorted by process.
func (s *Store) Journals() []JournalInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []JournalInfo
	for _, v := range s.otherJournals() {
		out = append(out, JournalInfo{
			Process: v.name, Alive: v.alive, Results: len(v.results()), Claims: len(v.keys), Damaged: len(v.problems) > 0,
		})
	}
	return out
}

func newJournalView(name string, l *layout) *journalView {
	return &journalView{
		name: name, layout: l, keys: map[string]*Claim{}, owners: map[schemas.Ref]*journalOwner{},
		touched: map[schemas.Ref]bool{},
	}
}

func (v *journalView) apply(l line) {
	ref := v.layout.ownerOf(l.Key)
	v.lines++
	v.applyWait(l)
	if ref == (schemas.Ref{}) {
		return
	}
	v.touched[ref] = true
	own := v.owners[ref]
	if own == nil {
		own = &journalOwner{results: map[string]*schemas.Run{}, claims: map[string]*Claim{}}
		v.owners[ref] = own
	}
	switch {
	case l.Op == opClaim && l.Run != nil:
		c := &Claim{Run: *l.Run, Process: v.name}
		c.Outcome = ""
		v.keys[l.Key], own.claims[l.Key] = c, c
	case l.Op == opStart && v.keys[l.Key] != nil:
		c := *v.keys[l.Key] // trees share the old one
		c.PID, c.Start = l.PID, l.Start
		if l.At != nil {
			c.StartedAt = *l.At
		}
		v.keys[l.Key], own.claims[l.Key] = &c, &c
	case l.Op == opTurn && v.keys[l.Key] != nil:
		c := *v.keys[l.Key]
		c.Turn = l.Turn
		if l.At != nil {
			c.Heard = *l.At
		}
		v.keys[l.Key], own.claims[l.Key] = &c, &c
	case l.Op == opFinish && l.Run != nil && l.Run.Done():
		own.addResult(l.Key, l.Run)
		fallthrough
	case l.Op == opRelease:
		delete(v.keys, l.Key)
		delete(own.claims, l.Key)
	}
}

// addResult adds a result; it replaces an earlier one of the same effect.
func (o *journalOwner) addResult(key string, r *schemas.Run) {
	if was := o.results[key]; was != nil {
		i := slices.Index(o.sorted, was)
		o.sorted = slices.Delete(o.sorted, i, i+1)
	}
	o.results[key] = r
	i, _ := slices.BinarySearchFunc(o.sorted, r, compareRuns)
	o.sorted = slices.Insert(o.sorted, i, r)
}

// results returns all results, sorted by key.
func (v *journalView) results() []*schemas.Run {
	var out []*schemas.Run
	for _, own := range v.owners {
		for _, r := range own.results {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *schemas.Run) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// open returns the lines of claims without a result, sorted by key, and of the effects that the process waits for.
func (v *journalView) open() []line {
	var out []line
	for _, k := range slices.Sorted(maps.Keys(v.keys)) {
		c := *v.keys[k]
		out = append(out, line{Op: opClaim, Key: k, Run: &c.Run})
		if c.PID != 0 {
			out = append(out, line{Op: opStart, Key: k, At: &c.StartedAt, PID: c.PID, Start: c.Start})
		}
		if c.Turn != nil {
			out = append(out, line{Op: opTurn, Key: k, At: &c.Heard, Turn: c.Turn})
		}
	}
	if len(v.waits) > 0 {
		at := schemas.NewTime(v.since.Add(tenure))
		out = append(out, line{Op: opWait, At: &at, Groups: v.waits})
	}
	return out
}

func (v *journalView) touchAll(touched map[schemas.Ref]bool) {
	for ref := range v.owners {
		touched[ref] = true
	}
}

// read reads the complete lines after those that were read before.
func (v *journalView) read(f *os.File) {
	data, err := io.ReadAll(io.NewSectionReader(f, v.size, 1<<40))
	if err != nil {
		return // the former content stays
	}
	n := parseLines(data, v.apply)
	v.size += int64(n)
	rest := data[n:]
	v.problems = nil
	if end := strings.IndexByte(string(rest), '\n'); end >= 0 && end < len(rest)-1 && !v.alive {
		v.problems = []schemas.Problem{{
			Place:    schemas.Place{Path: journalDir + "/" + v.name + journalSuffix, Line: v.lines + 1},
			Severity: schemas.Warning, Code: "damaged-journal",
			Message: fmt.Sprintf("this line is damaged; %d bytes from here on are not used", len(rest)),
		}}
	}
}
