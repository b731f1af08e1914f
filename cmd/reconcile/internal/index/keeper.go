package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
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
