package memstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
)

// anchorLimit is the largest file that an anchor's digest is made of. A larger one is never stale.
const anchorLimit = 16 << 20

// anchors knows the digests of the files that observations are about. A file is read once for each change of it.
type anchors struct {
	store  *state.Store
	cached bool // in .reconcile/memory

	mu     sync.Mutex
	known  map[string]digested // by path; nil until loaded
	last   *moment
	change bool // known has something that the cache has not
}

type digested struct {
	id     state.Identity
	digest string
	tokens int // 0 if nobody counted them
	racy   bool
}

// StateFolder is the folder of observed state, by the settings.
func (f *Files) StateFolder() string { return f.settings().Folders.State }

// Exists reports whether there is a file or folder of the tree at path that an observation may be about: not one of
// git's, or of what this program keeps, and not behind a link.
func (f *Files) Exists(path string) bool {
	id, err := f.anchors.look(path, f.settings().Folders.State)
	return err == nil && (id.IsFile() || id.IsFolder())
}

// Digest is that of the content of a file of the tree, for anchors: "sha256:…", [schemas.AnchorAbsent] if there is none,
// or "" for folders and for what cannot or must not be read.
func (f *Files) Digest(path string) string {
	return f.anchors.digest(path, f.settings().Folders.State)
}

// Stale says why an observation may be stale, as its anchors are now; "" if it is not.
func (f *Files) Stale(o *schemas.Observation) string { return f.stale(o.Anchors, new(moment)) }

// moment holds the digests of files as they were found at one moment, by path.
type moment struct {
	at time.Time

	mu      sync.RWMutex
	digests map[string]string
}

func (m *moment) digest(path string) (digest string, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	digest, ok = m.digests[path]
	return digest, ok
}

func (m *moment) found(path, digest string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.digests == nil {
		m.digests = map[string]string{}
	}
	m.digests[path] = digest
}

// glance is how long searches of one process rely on a look at a file.
const glance = time.Second

// recently is a moment that lies back no longer than glance.
func (a *anchors) recently() *moment {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil || time.Since(a.last.at) > glance {
		a.last = &moment{at: time.Now()}
	}
	return a.last
}

func (f *Files) stale(all []schemas.Anchor, m *moment) string {
	var changed []string
	for _, a := range all {
		if a.Digest == "" {
			continue
		}
		now, ok := m.digest(a.Path)
		if !ok {
			now = f.Digest(a.Path)
			m.found(strings.Clone(a.Path), now) // the path may be a part of much more
		}
		switch {
		case now == "" || now == a.Digest:
		case now == schemas.AnchorAbsent:
			changed = append(changed, a.Path+" is gone since")
		case a.Digest == schemas.AnchorAbsent:
			changed = append(changed, a.Path+" exists since")
		default:
			changed = append(changed, a.Path+" changed since")
		}
	}
	const most = 3
	if more := len(changed) - most; more > 0 {
		changed = append(changed[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(changed, ", ")
}

var errNoAnchor = errors.New("no file that an observation can be about")

// vetAnchor refuses paths that lead out of the tree, into git's files, or into what this program keeps.
func vetAnchor(p, stateDir string) error {
	if treepath.Of(p) != treepath.User || p == "." || treepath.Within(p, stateDir) {
		return errNoAnchor
	}
	return nil
}

// look looks at a file without following links.
func (a *anchors) look(p, stateDir string) (state.Identity, error) {
	if err := vetAnchor(p, stateDir); err != nil {
		return state.Identity{}, err
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if id, err := a.store.LookAt(dir); err != nil || !id.IsFolder() {
			return state.Identity{}, errors.Join(err, errNoAnchor)
		}
	}
	return a.store.LookAt(p)
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

// load reads the digests that an earlier process made.
func (a *anchors) load() {
	a.known = map[string]digested{}
	data, _, err := a.store.ReadFile(anchorsPath, fileLimit)
	body, ok := unseal(data)
	if err != nil || !ok || !a.cached {
		return
	}
	for d := (reader{body, true}); len(d.b) > 0; {
		p, k := d.text(), digested{digest: d.text(), id: d.identity(), tokens: d.number()}
		if d.ok {
			a.known[p] = k
		}
	}
}

// mostAnchors bounds the cache: what an older process knew of files that nobody asks for goes with the rest.
const mostAnchors = 50_000

// save keeps the digests for the next process; those of files that were just changed are made again.
func (a *anchors) save() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.change || !a.cached {
		return
	}
	a.change = false
	var b []byte
	for i, p := range slices.Sorted(maps.Keys(a.known)) {
		if k := a.known[p]; !k.racy && i < mostAnchors {
			b = appendIdentity(appendText(appendText(b, p), k.digest), k.id)
			b = binary.AppendUvarint(b, uint64(k.tokens))
		}
	}
	_ = a.store.Replace(anchorsPath, seal(b)) // else the next process reads the files again
}
