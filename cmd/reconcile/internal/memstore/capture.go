package memstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/lock"
)

// Capture implements [Store]. The Observation is on the disk before anything else changes: from then on the capture is not
// lost, whatever is killed when, since the next run takes in what is not yet in the memory. Then come the issue file, those
// of other issues of which it says something, in ascending order, and the manifest; each under its own lock, never two at
// once. What takes time is done beside each other: the issue file is folded and written under another name while the
// Observation reaches the disk, and so is the manifest; see draft.
//
// The error is ErrDisabled, ErrInvalid for a capture that no Observation can be made of, or one of the file system. A lock
// that cannot be had is none: see [Captured.Held].
func (f *Files) Capture(ctx context.Context, spec *schemas.ObservationSpec) (Captured, error) {
	if !*f.settings().Memory.Enabled {
		return Captured{}, ErrDisabled
	}
	if err := errors.Join(checkAgent(spec.Agent), checkIssue(spec.Issue)); err != nil {
		return Captured{}, err
	}
	a := f.openAhead(spec.Issue)
	clean, name, err := named(spec)
	if err != nil {
		a.wait()
		return Captured{}, err
	}
	d := f.draftOf(spec.Issue)
	a.look(memory.Spec{Name: name, ObservationSpec: clean}, d)
	defer d.close()
	defer a.wait()
	src, err := f.encode(schemas.Ref{Kind: schemas.ObservationKind.Name, Name: name}, clean)
	if err != nil {
		return Captured{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	c := Captured{Name: name, Path: f.keptAt(name, clean.Timestamp.Time)}
	reread := sync.OnceValues(func() (memory.Spec, error) { return f.reread(name, src) })
	k := f.keep(c.Path, src, func() error {
		_, err := reread()
		return err
	})
	s, err := reread()
	if err != nil {
		_ = k.wait() // it leaves nothing
		return Captured{}, err
	}
	for _, e := range s.Entries {
		if e.Repeats != "" {
			c.Repeats = append(c.Repeats, e.Repeats)
		}
	}
	return f.takeIn(ctx, c, s, k, a, d)
}

// keeping is the writing of an Observation's file.
type keeping struct {
	done  chan struct{}
	known bool // the file was there before
	err   error
}

// keep writes the file of an Observation durably, beside what the caller does meanwhile. There is none after an error of
// ready.
func (f *Files) keep(path string, src []byte, ready func() error) *keeping {
	k := &keeping{done: make(chan struct{})}
	go func() {
		defer close(k.done)
		var was []byte
		was, k.err = f.store.PutNewOnce(path, src, ready)
		switch k.known = was != nil; {
		case k.err != nil:
		case k.known && !same(was, src):
			k.err = fmt.Errorf("%w: %s exists and says something else; remove it or capture something else", ErrInvalid, path)
		default:
			k.err = f.store.Announce()
		}
	}()
	return k
}

// wait returns when the file is on the disk, or cannot be.
func (k *keeping) wait() error {
	<-k.done
	return k.err
}

// takeIn puts a capture into the memory, once it is kept.
func (f *Files) takeIn(ctx context.Context, c Captured, s memory.Spec, k *keeping, a *ahead, d *draft) (Captured, error) {
	changed := map[int][]byte{}
	var added []schemas.Observation
	var effects memory.Effects
	grown, wrote, err := f.change(ctx, s.Issue, k.wait, func(file, archive []byte) (memory.Folded, error) {
		opened := a.wait()
		s.Tokens = a.tokens
		out, more, err := opened.Grow(file, s)
		if len(out.Added)+len(more.IDs()) > 0 { // else it is there already, perhaps since a try before
			added, effects = out.Added, more
		}
		if len(out.Added) > 0 && len(more.IDs()) == 0 {
			d.agree(out.Index())
		}
		out.Archive = archive
		return out, err
	})
	if lost := k.wait(); lost != nil {
		return c, lost
	}
	c.Known = k.known
	if wrote {
		changed[s.Issue] = grown.File
	}
	c.Observations = added
	for _, o := range c.Observations {
		c.Tokens += o.Tokens
	}
	if err == nil {
		err = f.applyEffects(ctx, s, effects, changed)
	}
	if err == nil && len(changed) > 0 {
		err = f.putIntoManifest(ctx, changed, d)
	}
	if len(changed) > 0 {
		err = errors.Join(err, f.store.Announce())
	}
	switch {
	case errors.Is(err, state.ErrBusy), errors.Is(err, memory.ErrDamaged), errors.Is(err, memory.ErrNewer):
		c.Held = true
		c.Why = f.warnOfHeld(err)
		return c, nil
	case errors.Is(err, memory.ErrEdited):
		return c, fmt.Errorf("%w: %s: %w", ErrInvalid, c.Path, err)
	}
	return c, err
}

// applyEffects changes the observations of other issues that a capture repeats or replaces.
func (f *Files) applyEffects(ctx context.Context, s memory.Spec, e memory.Effects, changed map[int][]byte) error {
	for _, issue := range e.Issues() {
		if issue == s.Issue {
			continue // they are in the archive, or nowhere
		}
		out, wrote, err := f.change(ctx, issue, nil, func(file, archive []byte) (memory.Folded, error) {
			if file == nil {
				return memory.Folded{Archive: archive}, nil
			}
			out, err := memory.Apply(file, issue, e)
			out.Archive = archive
			return out, err
		})
		if err != nil {
			return err
		}
		if wrote {
			changed[issue] = out.File
		}
	}
	return nil
}

// warnOfHeld tells what is to be known of a capture that waits for the next run, and returns the gist of it.
func (f *Files) warnOfHeld(err error) string {
	const kept = "the Observation is kept, and the next run of reconcile takes it into the memory"
	var busy *lock.BusyError
	why := "Memory capture skipped: " + err.Error()
	if errors.As(err, &busy) {
		why = "Memory capture skipped: lock timeout on " + busy.Path
		f.warn(why)
	}
	f.warn(fmt.Sprintf("%v; %s", err, kept))
	return why
}

// putIntoManifest puts issue files that were just written into the manifest. Another process may have written into them
// since: what they hold now counts. d may be what the manifest should become.
func (f *Files) putIntoManifest(ctx context.Context, changed map[int][]byte, d *draft) error {
	if ok, err := d.place(ctx, changed); ok || err != nil {
		return lostIsBusy(err)
	}
	ours := map[int]bool{}
	for issue := range changed {
		ours[issue] = true
	}
	_, err := f.underManifestLock(ctx, func(was []byte, s *step) ([][]byte, error) {
		if len(s.issues) == 0 {
			return nil, errUnknown
		}
		return spliced(was, slices.Sorted(maps.Keys(changed)), func(issue int) ([]schemas.ObservationIndex, error) {
			return f.linesNow(issue, s)
		})
	}, ours)
	if errors.Is(err, errUnknown) || errors.Is(err, memory.ErrDamaged) { // all issue files have to be looked at
		return f.keepInStep(ctx, ours)
	}
	return err
}

// linesNow are the lines of an issue as its file is now, which is noted in s.
func (f *Files) linesNow(issue int, s *step) ([]schemas.ObservationIndex, error) {
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

// named is a capture as it is kept, and its name. Secrets and private text are taken out, should they have come as far as
// here.
func named(spec *schemas.ObservationSpec) (*schemas.ObservationSpec, string, error) {
	clean := *spec
	clean.Entries = slices.Clone(spec.Entries)
	for i := range clean.Entries {
		e := &clean.Entries[i]
		e.Content, e.Summary = secrets.Redact(e.Content), secrets.Redact(e.Summary)
	}
	name, err := captureName(&clean)
	return &clean, name, err
}

// reread makes the Observation of its file, by the code that reads it in the next run.
func (f *Files) reread(name string, src []byte) (memory.Spec, error) {
	o, err := f.decode(f.specPath(name), src)
	if err != nil {
		return memory.Spec{}, err
	}
	return memory.Spec{Name: name, Digest: o.Digest, ObservationSpec: schemas.SpecAs[*schemas.ObservationSpec](o)}, nil
}

// ahead is the issue file that a capture goes into, read before its lock is there: should it be another one by then, it is
// read again. What takes processors only is done beside what waits for the disk.
type ahead struct {
	read   chan struct{} // closed when opened is known
	opened *memory.Opened
	looked chan struct{}  // closed when tokens is known, too; nil before look
	tokens map[string]int // of the contents of the capture
}

// openAhead reads the issue file of a capture.
func (f *Files) openAhead(issue int) *ahead {
	a := &ahead{read: make(chan struct{})}
	go func() {
		defer close(a.read)
		data, err := f.readOrNil(f.issuePath(issue))
		if err != nil {
			data = nil // whoever has the lock is told again
		}
		a.opened = memory.Open(data, issue)
	}()
	return a
}

// look counts the tokens of a capture's contents, and has the draft written of the lines that the issue will have.
func (a *ahead) look(s memory.Spec, d *draft) {
	a.looked = make(chan struct{})
	count := counting(s.Entries)
	go func() {
		defer close(a.looked)
		a.tokens = count()
		s.Tokens = a.tokens
		<-a.read
		if lines := a.opened.Lines(s); len(lines) > 0 {
			d.write(lines)
		}
	}()
}

// wait returns the issue file as it was read, once nobody else uses it.
func (a *ahead) wait() *memory.Opened {
	if <-a.read; a.looked != nil {
		<-a.looked
	}
	return a.opened
}

// counting counts the tokens of contents, by content, on two processors. The result waits for them.
func counting(entries []schemas.ObservationEntry) (wait func() map[string]int) {
	var counts [2][]int
	var all sync.WaitGroup
	for part := range counts {
		all.Go(func() {
			for i := part; i < len(entries); i += len(counts) {
				counts[part] = append(counts[part], tokens.Count(entries[i].Content))
			}
		})
	}
	return func() map[string]int {
		all.Wait()
		out := make(map[string]int, len(entries))
		for i := range entries {
			out[entries[i].Content] = counts[i%len(counts)][i/len(counts)]
		}
		return out
	}
}

// decode reads the file of an Observation. All that is wrong with it is in the error, ErrInvalid.
func (f *Files) decode(path string, src []byte) (*schemas.Object, error) {
	f.decodeMu.Lock()
	defer f.decodeMu.Unlock()
	if f.decoder == nil {
		f.decoder = schemas.DecoderFor(f.o.Kinds, f.settings())
	}
	d := f.decoder.Decode(path, src)
	var wrong []string
	for _, p := range d.Problems {
		if p.Severity == schemas.Error {
			wrong = append(wrong, strings.TrimPrefix(p.Field, "spec.")+": "+p.Message)
		}
	}
	if len(wrong) > 0 || d.Object == nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, strings.Join(wrong, "; "))
	}
	return d.Object, nil
}

// captureName is <agent>-<issue>-<ms>-<6 digits of a digest of the content>, the agent cut where names end: so a capture
// that is made again has the same name, and two processes never write one file.
func captureName(spec *schemas.ObservationSpec) (string, error) {
	canonical, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	sum := sha256.Sum256(canonical)
	suffix := fmt.Sprintf("-%d-%d-%s", spec.Issue, max(spec.Timestamp.UnixMilli(), 0), hex.EncodeToString(sum[:3]))
	const longest = 63
	agent := spec.Agent[:min(len(spec.Agent), longest-len(suffix))]
	return strings.TrimRight(agent, "-._") + suffix, nil
}
