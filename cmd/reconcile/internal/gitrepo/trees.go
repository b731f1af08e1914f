package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Modes of tree entries.
const (
	modeFile = 0o100644
	modeExec = 0o100755
	modeTree = 0o040000
)

// blob is a file's entry in a tree or the index; the zero value means that it does not exist.
type blob struct {
	mode uint32
	hash plumbing.Hash
}

type treeEntry struct {
	name string
	blob
}

// tree returns the entries of a tree in git's order; callers must not change them. The zero hash is the empty tree.
func (s *objectStore) tree(hash plumbing.Hash) ([]treeEntry, error) {
	if hash.IsZero() {
		return nil, nil
	}
	if entries, ok := s.trees[hash]; ok {
		return entries, nil
	}
	data, err := s.read(plumbing.TreeObject, hash)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w; look with git fsck", hash, err)
	}
	s.trees[hash] = entries
	return entries, nil
}

func parseTree(data []byte) ([]treeEntry, error) {
	entries := make([]treeEntry, 0, len(data)/40)
	text := string(data) // names are slices of one string
	for at := 0; at < len(data); {
		head := strings.IndexByte(text[at:], 0)
		if head < 0 || at+head+21 > len(data) {
			return nil, fmt.Errorf("damaged at byte %d", at)
		}
		octal, name, ok := strings.Cut(text[at:at+head], " ")
		mode, err := strconv.ParseUint(octal, 8, 32)
		if !ok || err != nil {
			return nil, fmt.Errorf("damaged at byte %d", at)
		}
		at += head + 1
		entries = append(entries, treeEntry{name, blob{uint32(mode), plumbing.Hash(data[at : at+20])}})
		at += 20
	}
	return entries, nil
}

func encodeTree(entries []treeEntry) []byte {
	var buf bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&buf, "%o %s\x00", e.mode, e.name)
		buf.Write(e.hash[:])
	}
	return buf.Bytes()
}

// compareEntries is git's order: by bytes, where a folder's name ends in a slash.
func compareEntries(a, b treeEntry) int { return strings.Compare(a.sortName(), b.sortName()) }

func (e treeEntry) sortName() string {
	if e.mode == modeTree {
		return e.name + "/"
	}
	return e.name
}

// file looks a path up. An entry that is not a file (a folder, a symlink, a submodule) is returned with its mode.
func (s *objectStore) file(root plumbing.Hash, path string) (blob, error) {
	at := blob{modeTree, root}
	for part := range strings.SplitSeq(path, "/") {
		if at.mode != modeTree {
			return blob{}, nil
		}
		entries, err := s.tree(at.hash)
		if err != nil {
			return blob{}, err
		}
		at = childTree(entries, part)
	}
	return at, nil
}

// childTree finds a name by binary search, as a file and as a folder, which sort differently.
func childTree(entries []treeEntry, name string) blob {
	for _, as := range []treeEntry{{name, blob{mode: modeFile}}, {name, blob{mode: modeTree}}} {
		if i, ok := slices.BinarySearchFunc(entries, as, compareEntries); ok {
			return entries[i].blob
		}
	}
	return blob{}
}

// edit is one file that a commit changes; a zero now removes it.
type edit struct {
	path     string // relative to the root of the tree
	was, now blob
}

// graft applies edits (sorted by path) to the tree root, and returns the new root and the new trees. Empty folders
// are removed; an empty root is the empty tree.
func (s *objectStore) graft(root plumbing.Hash, edits []edit) (plumbing.Hash, []object, error) {
	old, err := s.tree(root)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	var objects []object
	changed := map[string]blob{}
	for len(edits) > 0 {
		name, _, nested := strings.Cut(edits[0].path, "/")
		if !nested {
			changed[name] = edits[0].now
			edits = edits[1:]
			continue
		}
		var below []edit
		below, edits = splitFolder(edits, name)
		sub, more, err := s.graftFolder(childTree(old, name), below)
		if err != nil {
			return plumbing.ZeroHash, nil, fmt.Errorf("%s/%w", name, err)
		}
		changed[name] = sub
		objects = append(objects, more...)
	}
	entries := mergeTreeEdits(old, changed)
	o := newObject(plumbing.TreeObject, encodeTree(entries))
	s.trees[o.hash] = entries
	return o.hash, append(objects, o), nil
}

func (s *objectStore) graftFolder(was blob, edits []edit) (blob, []object, error) {
	if was.mode != 0 && was.mode != modeTree {
		return blob{}, nil, fmt.Errorf("%s: on the branch a file stands where the folder is; commit that change first", edits[0].path)
	}
	hash, objects, err := s.graft(was.hash, edits)
	if err != nil || len(s.trees[hash]) == 0 {
		return blob{}, nil, err
	}
	return blob{modeTree, hash}, objects, nil
}

// mergeTreeEdits returns entries with the changed names replaced, added or (zero) removed, in git's order. Only added names
// require sorting; most commits add none, and folders may hold thousands of files.
func mergeTreeEdits(entries []treeEntry, changed map[string]blob) []treeEntry {
	out := make([]treeEntry, 0, len(entries)+len(changed))
	added := maps.Clone(changed)
	for _, e := range entries {
		b, ok := changed[e.name]
		switch {
		case !ok:
			out = append(out, e)
		case b.mode != 0 && (b.mode == modeTree) == (e.mode == modeTree):
			out = append(out, treeEntry{e.name, b})
			delete(added, e.name)
		}
	}
	for name, b := range added {
		if b.mode != 0 {
			out = append(out, treeEntry{name, b})
		}
	}
	if len(added) > 0 {
		slices.SortFunc(out, compareEntries)
	}
	return out
}

// folderChange is the change of one folder between two trees.
type folderChange struct {
	was, now plumbing.Hash
	files    int  // files more (or fewer) below it
	reshaped bool // a direct subfolder was added or removed
}

// difference lists the files that differ between two trees, and the folders on the way ("" is the root).
func (s *objectStore) difference(was, now plumbing.Hash) ([]edit, map[string]folderChange, error) {
	folders := map[string]folderChange{}
	edits, err := s.compareTrees("", was, now, folders)
	return edits, folders, err
}

func (s *objectStore) compareTrees(prefix string, was, now plumbing.Hash, folders map[string]folderChange) ([]edit, error) {
	old, err := s.tree(was)
	if err != nil {
		return nil, err
	}
	young, err := s.tree(now)
	if err != nil {
		return nil, err
	}
	change := folderChange{was: was, now: now}
	var edits []edit
	for len(old) > 0 || len(young) > 0 {
		var a, b treeEntry
		switch c := compareHeads(old, young); {
		case c < 0:
			a, old = old[0], old[1:]
		case c > 0:
			b, young = young[0], young[1:]
		default:
			a, b, old, young = old[0], young[0], old[1:], young[1:]
		}
		if a.blob == b.blob {
			continue
		}
		more, err := s.compareEntry(prefix+max(a.name, b.name), a.blob, b.blob, folders)
		if err != nil {
			return nil, err
		}
		if (a.mode == modeTree) != (b.mode == modeTree) {
			change.reshaped = true
		}
		edits = append(edits, more...)
		change.files += count(more)
	}
	folders[strings.TrimSuffix(prefix, "/")] = change
	return edits, nil
}

func compareHeads(a, b []treeEntry) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return compareEntries(a[0], b[0])
}

// compareEntry handles one name. Files and folders of one name sort apart, so a and b are of one type or zero.
func (s *objectStore) compareEntry(path string, a, b blob, folders map[string]folderChange) ([]edit, error) {
	if a.mode == modeTree || b.mode == modeTree {
		return s.compareTrees(path+"/", a.hash, b.hash, folders)
	}
	return []edit{{path: path, was: a, now: b}}, nil
}

func treeMode(c byte) bool { return '0' <= c && c <= '7' }

func splitTreePath(p string) []string {
	if p == "" {
		return nil
	}
	return strings.Split(path.Clean(p), "/")
}

// SameTree reports whether two commits have the same files.
func (r *Repo) SameTree(ctx context.Context, a, b string) (same bool, err error) {
	err = r.either(func(_ *native, s *objectStore) error {
		one, err := s.treeOf(a)
		if err != nil {
			return err
		}
		other, err := s.treeOf(b)
		same = one == other
		return err
	}, func(k *command) error {
		out, err := k.run(ctx, call{}, "rev-parse", "--verify", a+"^{tree}")
		if err == nil {
			same, err = k.isTree(ctx, b, strings.TrimSpace(string(out)))
		}
		return err
	})
	return same, err
}
