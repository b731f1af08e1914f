package memstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
)

// anchorLimit is the size in bytes up to which files are digested for anchors. A larger file is never stale.
const anchorLimit = 16 << 20

// anchors caches the digests of the files that observations refer to. A file is read once for each change.
type anchors struct {
	store  *state.Store
	cached bool // in .reconcile/memory

	mu     sync.Mutex
	known  map[string]digested // by path; nil until loaded
	last   *digestSnapshot
	change bool // known has entries that the cache file lacks
}

type digested struct {
	id     state.Identity
	digest string
	tokens int // 0 if not counted
	racy   bool
}

// Exists reports whether a path of the tree exists for anchors, as a file or folder: not one of git's or of this
// program's, and not behind a link.
func (f *Files) Exists(path string) bool {
	id, err := f.anchors.look(path, f.settings().Folders.State)
	return err == nil && (id.IsFile() || id.IsFolder())
}

// Digest returns the anchor digest of a file of the tree: "sha256:…", [schemas.AnchorAbsent] if it does not exist, or
// "" for folders and for files that cannot or must not be read.
func (f *Files) Digest(path string) string {
	return f.anchors.digest(path, f.settings().Folders.State)
}

// Stale returns why an observation may be stale, given the present state of its anchors; "" if it is not.
func (f *Files) Stale(o *schemas.Observation) string { return f.stale(o.Anchors, new(digestSnapshot)) }

// digestSnapshot holds the digests of files as read at one time, by path.
type digestSnapshot struct {
	at time.Time

	mu      sync.RWMutex
	digests map[string]string
}

func (m *digestSnapshot) digest(path string) (digest string, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	digest, ok = m.digests[path]
	return digest, ok
}

func (m *digestSnapshot) found(path, digest string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.digests == nil {
		m.digests = map[string]string{}
	}
	m.digests[path] = digest
}

// digestTTL is how long searches of one process reuse the digests.
const digestTTL = time.Second

// recentDigests returns a snapshot that is not older than digestTTL.
func (a *anchors) recentDigests() *digestSnapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil || time.Since(a.last.at) > digestTTL {
		a.last = &digestSnapshot{at: time.Now()}
	}
	return a.last
}

var errNoAnchor = errors.New("no file that an observation can be about")

// look returns a file's identity without following links.
func (a *anchors) look(p, stateDir string) (state.Identity, error) {
	if err := vetAnchor(p, stateDir); err != nil {
		return state.Identity{}, err
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if id, err := a.store.Lstat(dir); err != nil || !id.IsFolder() {
			return state.Identity{}, errors.Join(err, errNoAnchor)
		}
	}
	return a.store.Lstat(p)
}

// vetAnchor refuses paths that lead out of the tree, or to git's or this program's files.
func vetAnchor(p, stateDir string) error {
	if treepath.Of(p) != treepath.User || p == "." || treepath.Within(p, stateDir) {
		return errNoAnchor
	}
	return nil
}

func (a *anchors) digest(p, stateDir string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.load()
	}
	id, err := a.look(p, stateDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return schemas.AnchorAbsent
	case err != nil || !id.IsFile() || id.Size > anchorLimit:
		return ""
	}
	if k, ok := a.known[p]; ok && k.id == id && !k.racy {
		return k.digest
	}
	now := time.Now()
	data, id, err := a.store.ReadFile(p, anchorLimit)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	d := digested{id: id, digest: "sha256:" + hex.EncodeToString(sum[:]), racy: id.Ctime > now.Add(-tick).UnixNano()}
	if was := a.known[p]; was.digest == d.digest {
		d.tokens = was.tokens
	}
	a.known[p], a.change = d, true
	return d.digest
}

// load reads the digests cached by an earlier process.
func (a *anchors) load() {
	a.known = map[string]digested{}
	data, _, err := a.store.ReadFile(anchorsPath, fileLimit)
	if err != nil || !a.cached {
		return
	}
	for d := decodeValues(data); len(d.B) > 0; {
		p, k := d.String(), digested{digest: d.String(), id: decodeIdentity(&d), tokens: int(d.UintTo(1 << 40))}
		if !d.Bad {
			a.known[p] = k
		}
	}
}

// mostAnchors is the maximum size of the cache: entries of older processes that are not used any more are dropped first.
const mostAnchors = 50_000

// save writes the digests for the next process; those of files that were just changed are computed again.
func (a *anchors) save() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.change || !a.cached {
		return
	}
	a.change = false
	var e sections.Encoder
	for i, p := range slices.Sorted(maps.Keys(a.known)) {
		if k := a.known[p]; !k.racy && i < mostAnchors {
			e.String(p)
			e.String(k.digest)
			encodeIdentity(&e, k.id)
			e.Uint(uint64(k.tokens))
		}
	}
	_ = a.store.Replace(anchorsPath, valuesFormat.Encode(e.B).Bytes()) // otherwise the next process reads the files again
}

// Save saves the cache of the anchors' digests for the next process; Close does, too.
func (f *Files) Save() { f.anchors.save() }

// sizer returns a function that returns the number of tokens of a file, 0 if it is unreadable.
func (a *anchors) sizer(stateDir string) func(path string) int {
	left := countAtOnce
	return func(p string) int {
		if d := a.digest(p, stateDir); d == "" || d == schemas.AnchorAbsent {
			return 0
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		k := a.known[p]
		if k.tokens == 0 {
			if k.tokens = a.count(p, int(k.id.Size), &left); k.tokens > 0 {
				a.known[p], a.change = k, true
			}
		}
		if k.tokens == 0 {
			return int(k.id.Size) / bytesEach
		}
		return k.tokens
	}
}

// count counts the tokens of a file; 0 if that would take too long.
func (a *anchors) count(p string, size int, left *int) int {
	if size > countWhole || size > *left {
		return 0
	}
	*left -= size
	data, _, err := a.store.ReadFile(p, countWhole)
	if err != nil {
		return 0
	}
	return tokens.Count(string(data))
}
