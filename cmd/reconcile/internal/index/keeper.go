package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
)

// The paths of the index.
const (
	SnapshotPath = "vectors/index.snapshot"
	DeltaPath    = "vectors/delta.snapshot"
)

// Keeper maintains the index of a tree.
type Keeper struct {
	Store *state.Store
	// Ignored reports the files of the work tree that git ignores.
	Ignored Ignored
	// Embedder computes the vectors; nil is the built-in one.
	Embedder embed.Embedder
	Now      func() time.Time
	// Progress is called with the progress of a step.
	Progress func(step string, done, total int)
	// Warn is called for missing data.
	Warn func(error)
	// Retry computes the vectors that an index lacks because the embedder was not available, if it is available now.
	Retry bool
	// Long, unless nil, is called before operations that take more time and memory than scanning the files.
	Long func()
}

// Kept is an index in use.
type Kept struct {
	*vectors.Index
	// How describes how it was brought up to date.
	How How
	// Finish, unless nil, completes the index, which until then is lexical only, so that it answers at once. It takes as long
	// as a full build.
	Finish func(ctx context.Context) (*Kept, error)

	mapped *mapped // nil: in memory
}

// How describes how an index was brought up to date.
type How struct {
	// Rebuilt is the reason of a full rebuild; "" if there was none.
	Rebuilt string
	// Changed is the number of new or changed inputs, Gone that of removed ones, Inputs that of all.
	Changed, Gone, Inputs int
	LeftOut               LeftOut
	Took                  time.Duration
}

// Close closes the mapped files of the kept index: it must not be used any more.
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

// Open loads the stored index of a tree, and opens it if it is ready, without checking that it is up to date. The error
// is one of package fs if it does not exist, vectors.ErrDamaged, vectors.ErrOtherVersion, vectors.ErrOtherModel or
// vectors.ErrOtherLinks.
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

// mapped is the stored index, in mapped files.
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

// load is Open to the extent that the index can be compared with the tree.
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
		m.Stored, err = vectors.Load(base, nil, o) // the inputs in the delta are read again
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

// soundCache holds the stamp of the snapshot that was opened or written last.
const soundCache = ".reconcile/cache/index-sound"

// knownSound reports whether the snapshot was opened or written before and did not change since. Call note after opening
// it.
func (k *Keeper) knownSound() (sound bool, note func()) {
	id, err := k.Store.Lstat(SnapshotPath)
	if err != nil {
		return false, func() {}
	}
	now := binary.LittleEndian.AppendUint64(nil, stampOf(id))
	if was, _, err := k.Store.ReadFile(soundCache, int64(len(now))); err == nil && bytes.Equal(was, now) {
		return true, func() {}
	}
	return false, func() {
		if stampAt(k.Now().UnixNano(), id) != 0 { // otherwise it may be another file with the same times
			k.noteSound(id)
		}
	}
}

// noteSound records that a snapshot is sound. If that fails, its checksums are verified again.
func (k *Keeper) noteSound(id state.Identity) {
	_ = k.Store.Replace(soundCache, binary.LittleEndian.AppendUint64(nil, stampOf(id)))
}

// long calls Long before a long operation.
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

func (k *Keeper) since(s *survey) time.Duration { return k.Now().Sub(s.began) }

// Skips returns a function that reports whether the index skips a dir, by its excludes and git's ignore rules: no file
// below it is indexed, so that it need not be watched.
func (k *Keeper) Skips(tree *state.Tree) func(dir string) bool {
	f := &files{exclude: tree.Settings().Index.Exclude}
	return func(dir string) bool {
		parent, name := path.Split(dir)
		return f.skipped(dir, name) || k.Ignored(strings.TrimSuffix(parent, "/"), true)(name, true)
	}
}

// Exists reports whether the snapshot of the index exists in the store, sound or not.
func (k *Keeper) Exists() bool {
	_, err := k.Store.Lstat(SnapshotPath)
	return err == nil
}

// embeds reports whether the embedder is available.
func (k *Keeper) embeds(ctx context.Context) bool {
	if k.Embedder == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, embedderTimeout)
	defer cancel()
	// A query that was asked before may be answered from a cache.
	_, err := k.Embedder.Embed(ctx, []string{"Is anybody there at " + k.Now().Format(time.RFC3339Nano)})
	if err != nil {
		k.warn(fmt.Errorf("the index still lacks vectors: %w", err))
	}
	return err == nil
}

func (k *Keeper) dropDelta() error {
	if err := k.Store.Root().Remove(DeltaPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func vouch(in *vectors.Input, p string, v graph.Provenance) error {
	v.Source = p
	in.Provenances = append(in.Provenances, v)
	return nil
}

// seconds returns Unix seconds; 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// keep writes the delta; an empty delta has no file.
func (k *Keeper) keep(x *vectors.Index) error {
	if delta := x.Delta(); delta != nil {
		return k.Store.Replace(DeltaPath, delta...)
	}
	return k.dropDelta()
}
