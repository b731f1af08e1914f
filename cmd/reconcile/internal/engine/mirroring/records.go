package mirroring

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// recordLimit is the maximum size of a record, in bytes.
const recordLimit = 16 << 20

// GitHubRecords are the files below state/github about the objects that were created on GitHub and read there. Each change is
// durable when its method returns. Records are not safe for concurrent use.
type GitHubRecords struct {
	store *state.Store
	repo  string // owner/name
	warn  func(string)
	dry   bool // changes stay in memory and are not written

	issues  map[int]*schemas.MirrorFile
	objects map[schemas.Ref]*schemas.MirrorObject
	changed bool
	newKey  bool
}

// NewRecords returns the mirror Records of a repository in a store. warn is called for damaged files, which are moved
// to .reconcile/damaged: their content is looked up on GitHub again. Dry records are never written.
func NewRecords(store *state.Store, repo string, dry bool, warn func(string)) *GitHubRecords {
	return &GitHubRecords{store: store, repo: repo, dry: dry, warn: warn, issues: map[int]*schemas.MirrorFile{},
		objects: map[schemas.Ref]*schemas.MirrorObject{}}
}

// Changed reports whether records were changed: a file was written.
func (r *GitHubRecords) Changed() bool { return r.changed }

// mirrorRecord is the file of one kind of records about one thing: an issue, or an object.
type mirrorRecord[K comparable, F any] struct {
	of     *GitHubRecords
	cached map[K]*F
	key    K
	path   string
	empty  F
	check  func(*F) error
	encode func(*F) ([]byte, error)
}

func (r *GitHubRecords) ofIssue(issue int) mirrorRecord[int, schemas.MirrorFile] {
	return mirrorRecord[int, schemas.MirrorFile]{
		of: r, cached: r.issues, key: issue, path: r.store.MirrorPath(issue),
		empty: schemas.MirrorFile{Version: schemas.MirrorVersion, Repo: r.repo, Issue: issue},
		check: func(f *schemas.MirrorFile) error { return errors.Join(f.Check(issue), r.sameRepo(f.Repo)) },
		encode: func(f *schemas.MirrorFile) ([]byte, error) {
			sortIssue(f)
			return state.EncodeMirror(f)
		},
	}
}

func (r *GitHubRecords) ofObject(ref schemas.Ref) mirrorRecord[schemas.Ref, schemas.MirrorObject] {
	return mirrorRecord[schemas.Ref, schemas.MirrorObject]{
		of: r, cached: r.objects, key: ref, path: r.store.MirrorObjectPath(ref),
		empty:  schemas.MirrorObject{Version: schemas.MirrorVersion, Repo: r.repo, Object: ref.String()},
		check:  func(f *schemas.MirrorObject) error { return errors.Join(f.Check(ref), r.sameRepo(f.Repo)) },
		encode: func(f *schemas.MirrorObject) ([]byte, error) { return state.Encode(f) },
	}
}

// decode decodes the record; nil data is an empty one.
func (x mirrorRecord[K, F]) decode(data []byte, into *F) error {
	*into = x.empty
	if data == nil {
		return nil
	}
	if err := state.DecodeMirror(data, into); err != nil {
		return err
	}
	return x.check(into)
}

// read returns the record, which is empty if it is missing. Callers must not change it.
func (x mirrorRecord[K, F]) read(ctx context.Context) (*F, error) {
	if f := x.cached[x.key]; f != nil {
		return f, nil
	}
	f := new(F)
	if err := x.of.read(ctx, x.path, func(data []byte) error { return x.decode(data, f) }); err != nil {
		return nil, err
	}
	x.cached[x.key] = f
	return f, nil
}

// change changes the record. change may be called several times, with concurrent changes of other processes.
func (x mirrorRecord[K, F]) change(ctx context.Context, change func(*F)) error {
	f, err := x.read(ctx) // moves a damaged file away
	if err != nil {
		return err
	}
	if x.of.dry {
		change(f)
		return nil
	}
	var now *F
	err = x.of.fold(ctx, x.path, func(old []byte) ([]byte, error) {
		now = new(F)
		if err := x.decode(old, now); err != nil {
			return nil, err
		}
		change(now)
		return x.encode(now)
	})
	if err == nil {
		x.cached[x.key] = now
	}
	return err
}

// Issue reads the mirror record of an issue, its MirrorFile; it is empty if missing. Callers must not change it.
func (r *GitHubRecords) Issue(ctx context.Context, issue int) (*schemas.MirrorFile, error) {
	return r.ofIssue(issue).read(ctx)
}

// changeIssue changes the record of an issue, as [mirrorRecord.change] does.
func (r *GitHubRecords) changeIssue(ctx context.Context, issue int, change func(*schemas.MirrorFile)) error {
	return r.ofIssue(issue).change(ctx, change)
}

// sortIssue sorts the lists of an issue's record into the order of its file.
func sortIssue(f *schemas.MirrorFile) {
	slices.SortFunc(f.Comments, func(a, b schemas.MirrorComment) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(f.Handled, func(a, b schemas.MirrorHandled) int { return int(max(-1, min(1, a.Comment-b.Comment))) })
	slices.Sort(f.Labels)
	f.Labels = slices.Compact(f.Labels)
	slices.Sort(f.Adding)
	f.Adding = slices.Compact(f.Adding)
	slices.Sort(f.Others)
	f.Others = slices.Compact(f.Others)
}

// Made returns the number of the issue that the mirror made for an object, from its record, or 0.
func (r *GitHubRecords) Made(ctx context.Context, ref schemas.Ref) (int, error) {
	o, err := r.ofObject(ref).read(ctx)
	if err != nil {
		return 0, err
	}
	return o.Issue, nil
}

func (r *GitHubRecords) sameRepo(repo string) error {
	if !strings.EqualFold(repo, r.repo) {
		return fmt.Errorf("it is about the repository %.100q, and the settings name %s", repo, r.repo)
	}
	return nil
}

// Issues lists the numbers of the issues that have a mirror record, an issue-N.json file, sorted.
func (r *GitHubRecords) Issues() ([]int, error) {
	var out []int
	err := r.store.ListFolder(r.store.MirrorDir(), func(name []byte, id state.Identity) {
		var n int
		if _, err := fmt.Sscanf(string(name), "issue-%d.json", &n); err == nil && id.IsFile() &&
			path.Base(r.store.MirrorPath(n)) == string(name) {
			out = append(out, n)
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.Sort(out)
	return out, nil
}

// NewKey reports whether Keys created a new key, and the mirror has not completed a run since. Content on GitHub may
// then be signed with a lost key.
func (r *GitHubRecords) NewKey() bool { return r.newKey }

// signed records that all content was checked, and is signed with a known key.
func (r *GitHubRecords) signed(ctx context.Context) error {
	if !r.newKey {
		return nil
	}
	r.newKey = false
	if r.dry {
		return nil
	}
	return r.fold(ctx, r.store.MirrorKeysPath(), func(old []byte) ([]byte, error) {
		kept, err := readKeys(old)
		if err != nil || old == nil {
			return old, err
		}
		kept.Fresh = false
		return state.Encode(kept)
	})
}

// readKeys decodes the file of keys; nil data is an empty one.
func readKeys(data []byte) (*schemas.MirrorKeys, error) {
	kept := new(schemas.MirrorKeys)
	if data == nil {
		return kept, nil
	}
	if err := state.DecodeMirror(data, kept); err != nil {
		return kept, err
	}
	return kept, kept.Check()
}

// Keys reads the mirror keys on record, which sign markers, and creates a fresh key without one; the secret, if
// set, comes first. A secret comes from the environment, and is never written.
func (r *GitHubRecords) Keys(ctx context.Context, secret string) (mirror.Keys, error) {
	var kept *schemas.MirrorKeys
	decode := func(data []byte) (err error) {
		kept, err = readKeys(data)
		return err
	}
	if err := r.read(ctx, r.store.MirrorKeysPath(), decode); err != nil {
		return nil, err
	}
	if secret != "" {
		return append(mirror.Keys{secret}, kept.Keys...), nil
	}
	if len(kept.Keys) > 0 {
		r.newKey = kept.Fresh
		return kept.Keys, nil
	}
	var fresh [schemas.MirrorKeyLength / 2]byte
	_, _ = rand.Read(fresh[:]) // it never fails
	key := hex.EncodeToString(fresh[:])
	r.newKey = true
	if r.dry {
		return mirror.Keys{key}, nil
	}
	err := r.fold(ctx, r.store.MirrorKeysPath(), func(old []byte) ([]byte, error) {
		if old != nil { // another process was first
			err := decode(old)
			r.newKey = kept.Fresh
			return old, err
		}
		kept = &schemas.MirrorKeys{Version: schemas.MirrorVersion, Keys: []string{key}, Fresh: true}
		return state.Encode(kept)
	})
	return kept.Keys, err
}

// fold writes a record under its lock.
func (r *GitHubRecords) fold(ctx context.Context, p string, fold func(old []byte) ([]byte, error)) error {
	r.changed = true
	if err := r.store.Fold(ctx, p, fold); err != nil {
		return fmt.Errorf("record what stands on GitHub: %w", err)
	}
	return nil
}

// read reads a record, if it exists. A damaged one is moved away, unless a newer program wrote it.
func (r *GitHubRecords) read(ctx context.Context, p string, decode func([]byte) error) error {
	data, _, err := r.store.ReadFile(p, recordLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return decode(nil)
	}
	if err == nil {
		err = decode(data)
	}
	switch {
	case err == nil:
		return nil
	case schemas.IsNewerMirror(err):
		return fmt.Errorf("%s: %w", p, err)
	case r.dry:
		return decode(nil)
	}
	r.warn(fmt.Sprintf("%s: %v; it was moved to .reconcile/damaged, and what it said is looked up on GitHub", p, err))
	return errors.Join(r.moveDamaged(ctx, p, decode), decode(nil))
}

// moveDamaged moves a record away that is still damaged under its lock.
func (r *GitHubRecords) moveDamaged(ctx context.Context, p string, decode func([]byte) error) (err error) {
	l, err := r.store.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	return r.store.SetAside(ctx, p, func(data []byte) bool { return decode(data) != nil }, nil)
}

// recordTime rounds a time to the precision of records.
func recordTime(t time.Time) schemas.Time { return schemas.NewTime(t.Truncate(time.Second)) }

// KeysOf returns the mirror keys that sign markers: those of the records, and the secret of the environment variable.
func KeysOf(ctx context.Context, getenv func(string) string, records *GitHubRecords) (mirror.Keys, error) {
	secret := getenv(keyVariable)
	if secret != "" && len(secret) < mirrorKeyLength {
		return nil, fmt.Errorf("%s has %d characters; use at least %d, or leave it out", keyVariable, len(secret), mirrorKeyLength)
	}
	return records.Keys(ctx, secret)
}
