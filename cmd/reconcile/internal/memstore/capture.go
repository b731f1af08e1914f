package memstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/lock"
)

// Capture implements [Store]. The Observation is on disk before anything else changes: from then on the capture is not
// lost, even if the process is killed, since the next run ingests pending captures. Then it writes the issue file, those of
// other issues that the capture refers to, in ascending order, and the manifest; each under its own lock, never two at
// once. Slow work runs concurrently: the issue file and the manifest are computed and written under temporary names while
// the Observation is synced; see speculativeManifest.
//
// The error is ErrDisabled, ErrInvalid for a capture that gives no valid Observation, or one of the file system. A lock
// that is not available is not an error: see [Captured.Held].
func (f *Files) Capture(ctx context.Context, spec *schemas.ObservationSpec) (Captured, error) {
	if !*f.settings().Memory.Enabled {
		return Captured{}, ErrDisabled
	}
	if err := errors.Join(checkAgent(spec.Agent), checkIssue(spec.Issue)); err != nil {
		return Captured{}, err
	}
	a := f.startPrefetch(spec.Issue)
	clean, name, err := prepareCapture(spec)
	if err != nil {
		a.wait()
		return Captured{}, err
	}
	d := f.speculate(spec.Issue)
	a.look(memory.Spec{Name: name, ObservationSpec: clean}, d)
	defer d.close()
	defer a.wait()
	src, err := f.encode(schemas.Ref{Kind: schemas.ObservationKind.Name, Name: name}, clean)
	if err != nil {
		return Captured{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	c := Captured{Name: name, Path: f.keptAt(name, clean.Timestamp.Time)}
	reread := sync.OnceValues(func() (memory.Spec, error) { return f.reread(name, src) })
	k := f.startWrite(c.Path, src, func() error {
		_, err := reread()
		return err
	})
	s, err := reread()
	if err != nil {
		_ = k.wait() // no file is left
		return Captured{}, err
	}
	for _, e := range s.Entries {
		if e.Repeats != "" {
			c.Repeats = append(c.Repeats, e.Repeats)
		}
	}
	return f.ingest(ctx, c, s, k, a, d)
}

// pendingWrite is a concurrent write of an Observation's file.
type pendingWrite struct {
	done  chan struct{}
	known bool // the file existed before
	err   error
}

// startWrite writes the file of an Observation durably, in the background. If ready fails, it writes no file.
func (f *Files) startWrite(path string, src []byte, ready func() error) *pendingWrite {
	k := &pendingWrite{done: make(chan struct{})}
	go func() {
		defer close(k.done)
		var was []byte
		was, k.err = f.store.PutNewOnce(path, src, ready)
		switch k.known = was != nil; {
		case k.err != nil:
		case k.known && !sameManifest(was, src):
			k.err = fmt.Errorf("%w: %s exists and says something else; remove it or capture something else", ErrInvalid, path)
		default:
			k.err = f.store.Announce()
		}
	}()
	return k
}

// wait returns when the spec file of a new capture is on disk, or its write failed.
func (k *pendingWrite) wait() error {
	<-k.done
	return k.err
}

// ingest adds a capture to the memory, once it is written.
func (f *Files) ingest(ctx context.Context, c Captured, s memory.Spec, k *pendingWrite, a *prefetch, d *speculativeManifest) (Captured, error) {
	changed := map[int][]byte{}
	var added []schemas.Observation
	var effects memory.Effects
	grown, wrote, err := f.change(ctx, s.Issue, k.wait, func(file, archive []byte) (memory.Folded, error) {
		opened := a.wait()
		s.Tokens = a.tokens
		out, more, err := opened.Grow(file, s)
		if len(out.Added)+len(more.IDs()) > 0 { // otherwise it is there already, perhaps from an earlier try
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
			continue // they are archived, or do not exist
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

// warnOfHeld warns of a capture that waits for the next run, and returns the reason.
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

// prepareCapture returns a capture without secrets and private text, which callers should have removed, and its name.
func prepareCapture(spec *schemas.ObservationSpec) (*schemas.ObservationSpec, string, error) {
	clean := *spec
	clean.Entries = slices.Clone(spec.Entries)
	for i := range clean.Entries {
		e := &clean.Entries[i]
		e.Content, e.Summary = secrets.Redact(e.Content), secrets.Redact(e.Summary)
	}
	name, err := captureName(&clean)
	return &clean, name, err
}

// reread parses the Observation's file with the code that the next run uses.
func (f *Files) reread(name string, src []byte) (memory.Spec, error) {
	o, err := f.decode(f.specPath(name), src)
	if err != nil {
		return memory.Spec{}, err
	}
	return memory.Spec{Name: name, Digest: o.Digest, ObservationSpec: schemas.SpecAs[*schemas.ObservationSpec](o)}, nil
}

// prefetch reads the issue file of a capture before its lock is held: if the file changed by then, it is read again.
// Computation runs while other work waits for the disk.
type prefetch struct {
	read   chan struct{} // closed when opened is set
	opened *memory.Opened
	looked chan struct{}  // closed when tokens is set, too; nil before look
	tokens map[string]int // of the capture's contents
}

// startPrefetch reads the issue file of a capture.
func (f *Files) startPrefetch(issue int) *prefetch {
	a := &prefetch{read: make(chan struct{})}
	go func() {
		defer close(a.read)
		data, err := f.readOrNil(f.issuePath(issue))
		if err != nil {
			data = nil // the read under the lock reports the error
		}
		a.opened = memory.Open(data, issue)
	}()
	return a
}

// look counts the tokens of a new capture while its file is written, and starts the speculative manifest with the lines that the issue
// will have.
func (a *prefetch) look(s memory.Spec, d *speculativeManifest) {
	a.looked = make(chan struct{})
	count := countingTokens(s.Entries)
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

// wait returns the issue file as read, once no goroutine uses it.
func (a *prefetch) wait() *memory.Opened {
	if <-a.read; a.looked != nil {
		<-a.looked
	}
	return a.opened
}

// countingTokens counts the tokens of contents, by content, on two processors. The returned function waits for them.
func countingTokens(entries []schemas.ObservationEntry) (wait func() map[string]int) {
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

// captureName returns <agent>-<issue>-<ms>-<6 digits of a digest of the content>, with the agent cut to the maximum length
// of names: a repeated capture has the same name, and two processes never write the same file.
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

func checkAgent(agent string) error {
	if err := schemas.CheckName(agent); err != nil {
		return fmt.Errorf("%w: the agent: %w", ErrInvalid, err)
	}
	return nil
}

// Known searches the store for an observation that already has this content, and returns its id, or "". It is for
// memory.Source.
func (f *Files) Known(content string) string {
	v, err := f.current()
	if err != nil {
		return ""
	}
	const candidates = 3
	a := f.newRowFilter(v, Filter{}, nil)
	hits, err := v.set.Search(content, candidates, a.accepts())
	if err != nil {
		return ""
	}
	for _, h := range hits {
		at := v.find(h.Doc)
		r := v.row(at)
		id, err := v.parts[at.part].table.id(&r)
		if err != nil {
			return ""
		}
		data, err := f.readOrNil(f.issuePath(r.issue))
		if err != nil {
			return ""
		}
		if o := inFull(data, id); o != nil && memory.Same(o.Content, content) {
			return id
		}
	}
	return ""
}
