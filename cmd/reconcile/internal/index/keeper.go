package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"runtime"
	"sync"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/embed"
)

// Where the index is.
const (
	SnapshotPath = "vectors/index.snapshot"
	DeltaPath    = "vectors/delta.snapshot"
)

// Keeper keeps the index of a tree.
type Keeper struct {
	Store *state.Store
	// Ignored says what of the work tree git leaves out.
	Ignored Ignored
	// Embedder makes the vectors; nil is the built-in one.
	Embedder embed.Embedder
	Now      func() time.Time
	// Progress is told how far a step is.
	Progress func(step string, done, total int)
	// Warn hears of what the index has to do without.
	Warn func(error)
	// Retry has vectors made that an index lacks because the embedder could not be had, unless it still cannot be.
	Retry bool
	// Long, unless nil, is called before what takes long, and more memory than to look at the files.
	Long func()
}

// Kept is an index that is in use.
type Kept struct {
	*vectors.Index
	// How says what was done to bring it up to date.
	How How
	// Finish, unless nil, makes what is still missing: the index that is there goes by words only, so that it answers at
	// once. It takes as long as building takes.
	Finish func(ctx context.Context) (*Kept, error)

	mapped *mapped // nil: it is in memory
}

// How an index was brought up to date.
type How struct {
	// Rebuilt says why it was built anew; "" if it was not.
	Rebuilt string
	// Changed and Gone are how many inputs came or changed, and went; Inputs is how many there are.
	Changed, Gone, Inputs int
	LeftOut               LeftOut
	Took                  time.Duration
}

// Close gives up the files that the index is read from: it must not be used any more.
func (k *Kept) Close() {
	if k.mapped != nil {
		k.mapped.close()
	}
}

func (k *Keeper) options(tree *state.Tree) vectors.Options {
	s := tree.Settings().Index
	return vectors.Options{
		Embedder: k.Embedder, Dims: s.Dimensions, M: s.M, EfConstruction: s.EfConstruction,
		EfSearch: s.EfSearch, EfThorough: s.EfThorough, Progress: k.Progress, Warn: k.Warn,
	}
}

// Open opens what is there, without looking whether it is up to date. The error is one of package fs if there is nothing,
// vectors.ErrDamaged, vectors.ErrOtherModel or vectors.ErrOtherLinks.
func (k *Keeper) Open(tree *state.Tree) (*Kept, error) {
	m, err := k.load(tree)
	if err != nil {
		return nil, err
	}
	x, err := m.Ready()
	if err != nil {
		m.close()
		return nil, err
	}
	return &Kept{Index: x, mapped: m}, nil
}

// mapped is what is stored, in files that are mapped.
type mapped struct {
	*vectors.Stored
	release []func()
}

func (m *mapped) close() {
	for _, f := range m.release {
		f()
	}
	m.release = nil
}

// load is Open as far as it is needed to compare the index with the tree.
func (k *Keeper) load(tree *state.Tree) (*mapped, error) {
	base, release, err := k.Store.Map(SnapshotPath)
	if err != nil {
		return nil, err
	}
	m := &mapped{release: []func(){release}}
	delta, release, err := k.Store.Map(DeltaPath)
	if err == nil {
		m.release = append(m.release, release)
	} else if !errors.Is(err, fs.ErrNotExist) {
		m.close()
		return nil, err
	}
	o := k.options(tree)
	sound, note := k.knownSound()
	o.Sound = sound
	m.Stored, err = vectors.Load(base, delta, o)
	if errors.Is(err, vectors.ErrDamaged) && delta != nil {
		m.Stored, err = vectors.Load(base, nil, o) // what is in the delta is read again
	}
	if err == nil && !sound {
		err = m.Confirm()
	}
	if err != nil {
		m.close()
		return nil, err
	}
	note()
	return m, nil
}

// soundCache has the stamp of the snapshot that was opened or written last.
const soundCache = ".reconcile/cache/index-sound"

// knownSound tells whether the snapshot is one that was opened or written before, and has not changed since. note is called
// when it was opened.
func (k *Keeper) knownSound() (sound bool, note func()) {
	id, err := k.Store.LookAt(SnapshotPath)
	if err != nil {
		return false, func() {}
	}
	now := binary.LittleEndian.AppendUint64(nil, stampOf(id))
	if was, _, err := k.Store.ReadFile(soundCache, int64(len(now))); err == nil && bytes.Equal(was, now) {
		return true, func() {}
	}
	return false, func() {
		if stampAt(k.Now().UnixNano(), id) != 0 { // else it may be another file with the same times
			k.noteSound(id)
		}
	}
}

// noteSound notes that a snapshot is sound. Where that fails it is compared with its sums again.
func (k *Keeper) noteSound(id state.Identity) {
	_ = k.Store.Replace(soundCache, binary.LittleEndian.AppendUint64(nil, stampOf(id)))
}

// long tells that what comes takes long.
func (k *Keeper) long() {
	if k.Long != nil {
		k.Long()
	}
}

// Refresh opens the index and brings it up to date with the tree: what changed is taken in, and where there is no index,
// or one that cannot be used or has changed too much, a new one is built, see [Kept.Finish].
func (k *Keeper) Refresh(ctx context.Context, tree *state.Tree) (*Kept, error) {
	return k.refresh(ctx, tree, k.anew)
}

// Complete is Refresh for those who wait until the index is whole: nothing is left to Finish.
func (k *Keeper) Complete(ctx context.Context, tree *state.Tree) (*Kept, error) {
	return k.refresh(ctx, tree, k.whole)
}

// builder makes a new index; why says what for.
type builder func(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error)

func (k *Keeper) refresh(ctx context.Context, tree *state.Tree, anew builder) (*Kept, error) {
	start := k.Now()
	var m *mapped
	var damage error
	var opened sync.WaitGroup
	opened.Go(func() { m, damage = k.load(tree) }) // while the files are looked at
	s, err := k.survey(ctx, tree)
	opened.Wait()
	if damage == nil && err == nil {
		err = s.settle(ctx)
	}
	switch {
	case err != nil && damage == nil:
		m.close()
		return nil, err
	case err != nil:
		return nil, err
	case damage != nil:
		return anew(ctx, tree, s, reason(damage))
	}
	how, changed, gone := compare(m.Stored, s)
	x, why, err := k.update(ctx, m.Stored, s, changed, gone)
	if err != nil || why != "" {
		m.close()
	}
	if err != nil {
		return nil, err
	}
	if why != "" {
		return anew(ctx, tree, s, why)
	}
	how.Took = k.Now().Sub(start)
	return &Kept{Index: x, How: how, mapped: m}, nil
}

// Repair makes the index anew of which somebody found out, while using it, that it is damaged, see [Kept.Finish].
func (k *Keeper) Repair(ctx context.Context, tree *state.Tree, damage error) (*Kept, error) {
	s, err := k.survey(ctx, tree)
	if err != nil {
		return nil, err
	}
	return k.anew(ctx, tree, s, reason(damage))
}

// reason says why an index is built anew.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there was none"
	case errors.Is(err, vectors.ErrOtherModel):
		return "another embedder is to make the vectors"
	}
	return err.Error()
}

// compare tells what is not as the index has it. Both are in the order of names.
func compare(have *vectors.Stored, s *survey) (how How, changed []input, gone []string) {
	rest := s.inputs
	for name, digest := range have.Known() {
		for len(rest) > 0 && rest[0].name < name {
			changed, rest = append(changed, rest[0]), rest[1:]
		}
		switch {
		case len(rest) == 0 || rest[0].name != name:
			gone = append(gone, name)
			continue
		case rest[0].digest != digest:
			changed = append(changed, rest[0])
		}
		rest = rest[1:]
	}
	changed = append(changed, rest...)
	return How{Changed: len(changed), Gone: len(gone), Inputs: len(s.inputs), LeftOut: s.left}, changed, gone
}

// embeds reports whether the embedder can be had.
func (k *Keeper) embeds(ctx context.Context) bool {
	if k.Embedder == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, embedderPatience)
	defer cancel()
	// What was asked before may be known without anybody who answers.
	_, err := k.Embedder.Embed(ctx, []string{"Is anybody there at " + k.Now().Format(time.RFC3339Nano)})
	if err != nil {
		k.warn(fmt.Errorf("the index still lacks vectors: %w", err))
	}
	return err == nil
}

// embedderPatience is how long an embedder is asked whether it is there.
const embedderPatience = 10 * time.Second

// update takes changes in, and what the index lacks if that can be had, and keeps them in the delta; or says why the index
// has to be built anew.
func (k *Keeper) update(ctx context.Context, have *vectors.Stored, s *survey, changed []input, gone []string) (x *vectors.Index, why string, err error) {
	switch {
	case k.Retry && have.Meta().Model == "" && k.embeds(ctx):
		return nil, "it had no vectors", nil
	case have.Meta().Tools != s.tagger.version:
		return nil, "symbols are found by another program", nil
	case len(changed) > len(s.inputs)/4+64:
		return nil, "much has changed", nil
	case len(changed)+len(gone) == 0:
		if x, err = have.Ready(); err != nil {
			return nil, err.Error(), nil
		}
		if lacks := k.Retry && x.Meta().Model != "" && x.Lacks(); !lacks || !k.embeds(ctx) {
			s.save()
			return x, "", nil
		}
	}
	parts, err := s.parts(ctx, changed, k.progress)
	if err != nil {
		return nil, "", err
	}
	var saved sync.WaitGroup
	saved.Go(s.save)
	defer saved.Wait()
	x, err = have.Update(ctx, parts, gone)
	switch {
	case errors.Is(err, vectors.ErrRebuild) || errors.Is(err, vectors.ErrDamaged):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case x.Changed() > x.Graph().Nodes()/8+4096:
		return nil, "the delta has become large", nil
	}
	if err := k.keep(x); err != nil {
		k.warn(fmt.Errorf("what changed could not be kept, and is read again next time: %w", err))
	}
	return x, "", nil
}

// keep writes the delta; without one there is no file.
func (k *Keeper) keep(x *vectors.Index) error {
	if delta := x.Delta(); delta != nil {
		return k.Store.Replace(DeltaPath, delta...)
	}
	return k.dropDelta()
}

func (k *Keeper) dropDelta() error {
	if err := k.Store.Root().Remove(DeltaPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (k *Keeper) progress(step string, done, total int) {
	if k.Progress != nil {
		k.Progress(step, done, total)
	}
}

func (k *Keeper) warn(err error) {
	if k.Warn != nil {
		k.Warn(err)
	}
}

// anew builds an index by words, which answers, and leaves the vectors to Finish.
func (k *Keeper) anew(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error) {
	k.long()
	inputs, err := s.everything(ctx, k.progress)
	if err != nil {
		return nil, err
	}
	o := k.options(tree)
	o.Tools, o.Forget, o.WordsOnly = s.tagger.version, s.aside.forget, true
	made, err := vectors.Build(ctx, inputs, o)
	if err != nil {
		return nil, err
	}
	x, err := made.Open(o)
	if err != nil {
		return nil, err
	}
	how := How{Rebuilt: why, Changed: len(inputs), Inputs: len(inputs), LeftOut: s.left, Took: k.since(s)}
	finish := func(ctx context.Context) (*Kept, error) { return k.finish(ctx, tree, s, inputs, how) }
	return &Kept{Index: x, How: how, Finish: finish}, nil
}

// since is how long ago a survey began.
func (k *Keeper) since(s *survey) time.Duration { return k.Now().Sub(s.began) }

// finish builds the whole index of inputs, keeps and opens it.
func (k *Keeper) finish(ctx context.Context, tree *state.Tree, s *survey, inputs []vectors.Input, how How) (*Kept, error) {
	defer runtime.KeepAlive(s) // the inputs' texts
	o := k.options(tree)
	o.Tools, o.Forget = s.tagger.version, s.aside.forget
	if err := k.write(ctx, inputs, o); err != nil {
		return nil, err
	}
	if err := k.dropDelta(); err != nil {
		return nil, err // it is of another snapshot now, and would be passed over
	}
	kept, err := k.Open(tree)
	if err != nil {
		return nil, err
	}
	how.Took = k.since(s)
	kept.How = how
	return kept, nil
}

// write builds the index of inputs and puts it in place. Vectors are not held in memory meanwhile: they would take most of
// it.
func (k *Keeper) write(ctx context.Context, inputs []vectors.Input, o vectors.Options) error {
	scratch, err := k.Store.Scratch()
	if err != nil {
		return err
	}
	defer scratch.Close()
	o.Scratch = scratch
	made, err := vectors.Build(ctx, inputs, o)
	if err != nil {
		return err
	}
	var wrong error
	draft, err := k.Store.Sketch(SnapshotPath, inPieces(func(yield func([]byte) bool) {
		wrong = made.Write(func(b []byte) error {
			if !yield(b) {
				return errStopped
			}
			return nil
		})
	}))
	if err = cmp.Or(err, wrong); err != nil {
		if draft != nil {
			draft.Discard()
		}
		return err
	}
	defer draft.Discard()
	if err := draft.Place(); err != nil {
		return err
	}
	if id, err := k.Store.LookAt(SnapshotPath); err == nil {
		k.noteSound(id) // it is what was just written, by us or by who was faster
	}
	return nil
}

// pieceSize is that of a large page.
const pieceSize = 2 << 20

// inPieces hands out the same bytes in pieces of one size, but for the last. A system that is told to write a large page at
// once keeps it as one, and maps it as one: a walk through the vectors then takes a tenth less, and the first look at them
// a hundredth.
func inPieces(parts iter.Seq[[]byte]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		piece := make([]byte, 0, pieceSize)
		for part := range parts {
			for len(part) > 0 {
				n := min(len(part), pieceSize-len(piece))
				piece, part = append(piece, part[:n]...), part[n:]
				if len(piece) < pieceSize {
					continue
				}
				if !yield(piece) {
					return
				}
				piece = piece[:0]
			}
		}
		if len(piece) > 0 {
			yield(piece)
		}
	}
}

// errStopped ends a write that somebody else has an error for.
var errStopped = errors.New("the file cannot be written")

// Rebuild builds the index anew, all of it.
func (k *Keeper) Rebuild(ctx context.Context, tree *state.Tree) (*Kept, error) {
	s, err := k.survey(ctx, tree)
	if err != nil {
		return nil, err
	}
	return k.whole(ctx, tree, s, "it was asked for")
}

// whole builds an index with all that belongs to it.
func (k *Keeper) whole(ctx context.Context, tree *state.Tree, s *survey, why string) (*Kept, error) {
	k.long()
	inputs, err := s.everything(ctx, k.progress)
	if err != nil {
		return nil, err
	}
	how := How{Rebuilt: why, Changed: len(inputs), Inputs: len(inputs), LeftOut: s.left}
	return k.finish(ctx, tree, s, inputs, how)
}
