package gitrepo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Fetch fetches the refs of the remote with their objects in one exchange, records sightings, and returns the Tip. It
// moves no reference of this repository.
func (m *Remote) Fetch(ctx context.Context) (Tip, error) {
	refs, err := m.refs(ctx)
	if err != nil {
		return Tip{}, err
	}
	texts, err := m.texts(ctx, refs)
	if err != nil {
		return Tip{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recordSightings(refs, texts)
	return m.tip(refs), nil
}

// remoteRefs are the remote's references: the branch, and those that reconcilers use.
type remoteRefs struct {
	head   string
	shared map[string]string // by full reference
}

// refs reads all references that reconcilers share, except the outputs, which are large and requested individually.
func (m *Remote) refs(ctx context.Context) (refs remoteRefs, err error) {
	var specs []string
	for _, dir := range []string{claimRefs, waitingRefs, pendingRefs, reserveRefs} {
		specs = append(specs, "+"+dir+"*:refs/worktree/shared/"+strings.TrimPrefix(dir, sharedRefs)+"*")
	}
	err = m.fetchAside(ctx, func(fetch fetchFunc, dir string) error {
		said, err := fetch("", append(specs, "+"+m.ref+":refs/worktree/head")...)
		if err != nil && strings.Contains(said.stderr, "couldn't find remote ref "+m.ref) {
			said, err = fetch("", specs...)
		}
		if err != nil {
			return m.unreachable(ctx, said, err)
		}
		refs, err = readRefs(dir)
		return err
	})
	return refs, err
}

// fetchFunc is git fetch of refspecs into refs/worktree. It writes the objects into the folder objects as they
// arrive; "" is the repository's own.
type fetchFunc func(objects string, specs ...string) (answer, error)

// fetchAside fetches into references of a temporary git directory, which is removed at the end; dir holds the
// references as files meanwhile. It locks nothing, the user's FETCH_HEAD and remote-tracking branches do not
// change, and a killed process leaves files only outside of the repository.
func (m *Remote) fetchAside(ctx context.Context, do func(fetch fetchFunc, dir string) error) (err error) {
	dir, err := os.MkdirTemp("", fetchFolder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/none\n", "commondir": m.repo.common + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return do(func(objects string, specs ...string) (answer, error) {
		env, config := []string{"GIT_DIR=" + dir}, []string(nil)
		if objects != "" { // otherwise git unpacks few objects in memory
			env, config = append(env, objectsVar+objects), []string{"-c", "fetch.unpackLimit=1"}
		}
		args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap=", "--", m.name}
		return m.talk(ctx, false, env, slices.Concat(config, args, specs)...)
	}, filepath.Join(dir, "refs", "worktree"))
}

// fetchFolder is the name prefix of the temporary git directories, and abandonedFetch the age at which one is no
// longer in use.
const (
	fetchFolder    = "reconcile-fetch-"
	abandonedFetch = time.Hour
)

// sweepFetches removes the directories of killed processes. It ignores errors: what cannot be removed belongs to
// another user.
func sweepFetches(now time.Time) {
	left, _ := filepath.Glob(filepath.Join(escapeGlob(os.TempDir()), fetchFolder+"*"))
	for _, dir := range left {
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() && now.Sub(fi.ModTime()) > abandonedFetch {
			os.RemoveAll(dir)
		}
	}
}

// textLimit is the maximum size of a claim or ticket; larger blobs are not ours.
const textLimit = 4096

// texts reads the claims and tickets that were not seen before, by hash. An object that is not a small blob has no
// text.
func (m *Remote) texts(ctx context.Context, refs remoteRefs) (map[string][]byte, error) {
	store := newObjectStore(m.repo.layout)
	defer store.close()
	texts := map[string][]byte{}
	var packed []string
	m.mu.Lock()
	for ref, hash := range refs.shared {
		if strings.HasPrefix(ref, pendingRefs) || m.seen[ref].hash == hash {
			continue
		}
		text, err := store.looseText(hash)
		if errors.Is(err, os.ErrNotExist) {
			packed = append(packed, hash)
		} else if err == nil && text != nil {
			texts[hash] = text
		}
	}
	m.mu.Unlock()
	if len(packed) == 0 {
		return texts, nil
	}
	return texts, m.packedTexts(ctx, packed, texts)
}

// packedTexts reads the others, with git.
func (m *Remote) packedTexts(ctx context.Context, hashes []string, texts map[string][]byte) error {
	listed, err := m.git.run(ctx, call{stdin: []byte(strings.Join(hashes, "\n") + "\n")}, "cat-file", "--batch-check")
	if err != nil {
		return err
	}
	var small []Stored
	var names bytes.Buffer
	for line := range strings.Lines(string(listed)) {
		var hash, kind string
		var size int
		if _, err := fmt.Sscan(line, &hash, &kind, &size); err == nil && kind == "blob" && size <= textLimit {
			small = append(small, Stored{Path: hash})
			names.WriteString(hash + "\n")
		}
	}
	if len(small) == 0 {
		return nil
	}
	return m.git.contents(ctx, &names, small, func(s Stored) error {
		texts[s.Path] = s.Data
		return nil
	})
}

// recordSightings records the references on the remote, and since when each is unchanged.
func (m *Remote) recordSightings(refs remoteRefs, texts map[string][]byte) {
	now := m.now()
	if refs.shared[reservesRef] != m.seen[reservesRef].hash {
		m.reserves++
	}
	for ref, hash := range refs.shared {
		if !strings.HasPrefix(ref, pendingRefs) && m.seen[ref].hash != hash {
			m.seen[ref] = sighting{hash: hash, since: now, text: texts[hash]}
			if was := m.earlier[ref]; was.Hash == hash && was.Since.Before(now) {
				m.seen[ref] = sighting{hash: hash, since: was.Since, text: texts[hash]}
			}
		}
	}
	for ref := range m.seen {
		if _, there := refs.shared[ref]; !there {
			delete(m.seen, ref)
		}
	}
}

func (m *Remote) tip(refs remoteRefs) Tip {
	t := Tip{Head: refs.head, Reserves: m.reserves, Reserved: map[string]json.RawMessage{}}
	for ref, hash := range refs.shared {
		switch {
		case strings.HasPrefix(ref, claimRefs):
			c := m.claimOf(ref)
			t.Claims = append(t.Claims, c)
			if text := m.reserveOf(ref); text != nil && c.Key != "" {
				t.Reserved[c.Key] = text
			}
		case strings.HasPrefix(ref, pendingRefs):
			if p := (Pending{strings.TrimPrefix(ref, pendingRefs), hash}); !m.manual[p] {
				t.Pending = append(t.Pending, p)
			}
		}
	}
	slices.SortFunc(t.Claims, func(a, b Claim) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(t.Pending, func(a, b Pending) int { return strings.Compare(a.ID, b.ID) })
	t.Tickets = m.tickets(refs.head)
	return t
}
