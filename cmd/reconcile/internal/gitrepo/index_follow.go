package gitrepo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// follow updates the entries of the edited paths (sorted) to a commit, and reports whether any changed. An entry
// follows if it matches the old or the new commit; entries that the user staged differently, and conflicts, stay.
// stats holds the stat data of the files that were read for the commit.
func (x *index) follow(edits []edit, stats map[string]fileStat) bool {
	changed := false
	out := make([]indexEntry, 0, len(x.entries)+len(edits))
	at := 0
	for _, e := range edits {
		i, found := slices.BinarySearchFunc(x.entries[at:], e.path, comparePath)
		out = append(out, x.entries[at:at+i]...)
		at += i
		old, conflict := indexEntry{}, false
		if found {
			old, conflict = x.entries[at], x.entries[at].stage() != 0
		}
		if conflict || !follows(old, e) || !found && x.blocked(e.path) {
			continue
		}
		if found {
			at++
		}
		if e.now.mode != 0 {
			next := newEntry(e.path, e.now, stats[e.path], old)
			changed = changed || !bytes.Equal(next.fixed, old.fixed)
			out = append(out, next)
		} else {
			changed = changed || found
		}
	}
	x.entries = append(out, x.entries[at:]...)
	return changed
}

// follows reports whether the entry (zero: absent) matches the file in the old or the new commit.
func follows(old indexEntry, e edit) bool {
	if old.fixed == nil {
		return e.was.mode == 0 || e.now.mode == 0
	}
	return old.extended()&flagIntent != 0 || old.blob() == e.was || old.blob() == e.now
}

// blocked reports whether the index holds a file where path needs a folder, or files below path: a new entry would
// contradict the user's staged changes.
func (x *index) blocked(path string) bool {
	for i := strings.IndexByte(path, '/'); i >= 0; {
		if e, _ := x.find(path[:i]); e.fixed != nil {
			return true
		}
		next := strings.IndexByte(path[i+1:], '/')
		if next < 0 {
			break
		}
		i += next + 1
	}
	return len(x.below(path+"/")) > 0
}

// guardRacy keeps git from trusting stale stat data. Git rereads a file if its mtime is not older than the index;
// writing the index makes the index newer, so every such entry is marked with size 0 unless it is certainly clean.
// written is the old index's mtime, lookup returns a path's stat data.
func (x *index) guardRacy(written fileTime, lookup func(path string) (fileStat, bool)) {
	for i, e := range x.entries {
		mtime := mtimeOf(e.fixed)
		if mtime.sec < written.sec || e.stage() != 0 || binary.BigEndian.Uint32(e.fixed[sizeOffset:]) == 0 {
			continue
		}
		if st, ok := lookup(e.path); ok && mtime.nsec != 0 && mtime.before(written) && st.matches(e.fixed) {
			continue
		}
		x.entries[i].fixed = slices.Clone(e.fixed)
		binary.BigEndian.PutUint32(x.entries[i].fixed[sizeOffset:], 0)
	}
}

// cacheTree is the extension TREE: the hashes of the tree objects that folders of the index equal, where known.
type cacheTree struct {
	name  string
	files int // entries below; negative if unknown
	hash  plumbing.Hash
	subs  []*cacheTree
}

// parseCacheTree returns nil for a damaged extension, which git would ignore, too.
func parseCacheTree(data []byte) *cacheTree {
	t, rest, ok := parseCacheNode(data, 0)
	if !ok || len(rest) > 0 {
		return nil
	}
	return t
}

func parseCacheNode(data []byte, depth int) (*cacheTree, []byte, bool) {
	name, data, ok1 := bytes.Cut(data, []byte{0})
	line, data, ok2 := bytes.Cut(data, []byte{'\n'})
	files, subs, ok3 := strings.Cut(string(line), " ")
	f, err1 := strconv.Atoi(files)
	n, err2 := strconv.Atoi(subs)
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil || n > len(data) || depth > 4096 {
		return nil, nil, false
	}
	t := &cacheTree{name: string(name), files: f}
	if f >= 0 {
		if len(data) < 20 {
			return nil, nil, false
		}
		t.hash, data = plumbing.Hash(data[:20]), data[20:]
	}
	for range n {
		sub, rest, ok := parseCacheNode(data, depth+1)
		if !ok {
			return nil, nil, false
		}
		t.subs, data = append(t.subs, sub), rest
	}
	return t, data, true
}

// collect adds a folder and those below it to a map by path.
func (t *cacheTree) collect(path string, to map[string]*cacheTree) {
	if t == nil {
		return
	}
	to[path] = t
	for _, s := range t.subs {
		s.collect(strings.TrimPrefix(path+"/"+s.name, "/"), to)
	}
}

// treeEntries returns the entries of the tree object that a folder of the index equals, by its part t of the extension.
// ok is false if both do not match.
func (x *index) treeEntries(path string, t *cacheTree, cached map[string]*cacheTree) (entries []treeEntry, ok bool) {
	prefix := ""
	if path != "" {
		prefix = path + "/"
	}
	below := x.below(prefix)
	if len(below) != t.files {
		return nil, false
	}
	for len(below) > 0 {
		e := below[0]
		name, _, nested := strings.Cut(e.path[len(prefix):], "/")
		if !nested {
			if e.stage() != 0 || e.extended()&flagIntent != 0 {
				return nil, false
			}
			entries, below = append(entries, treeEntry{name, e.blob()}), below[1:]
			continue
		}
		sub := cached[prefix+name]
		if sub == nil || sub.files < 1 || sub.files > len(below) {
			return nil, false
		}
		entries, below = append(entries, treeEntry{name, blob{modeTree, sub.hash}}), below[sub.files:]
	}
	return entries, true
}

func (t *cacheTree) append(buf []byte) []byte {
	buf = append(append(buf, t.name...), 0)
	buf = append(strconv.AppendInt(buf, int64(t.files), 10), ' ')
	buf = append(strconv.AppendInt(buf, int64(len(t.subs)), 10), '\n')
	if t.files >= 0 {
		buf = append(buf, t.hash[:]...)
	}
	for _, s := range t.subs {
		buf = s.append(buf)
	}
	return buf
}

// size is an estimate of the encoded size.
func (t *cacheTree) size() int {
	if t == nil {
		return 0
	}
	n := 48 + len(t.name)
	for _, s := range t.subs {
		n += s.size()
	}
	return n
}

// follow updates the folders that matched the old commit to the new one. Other folders on the way, and all above
// them, become unknown; git computes them on demand. It reports whether t is still known.
func (t *cacheTree) follow(path string, folders map[string]folderChange) bool {
	if t == nil {
		return false
	}
	change, touched := folders[path]
	if !touched {
		return t.files >= 0
	}
	known := t.files >= 0 && t.hash == change.was && !change.reshaped && !change.now.IsZero()
	for _, s := range t.subs {
		if !s.follow(strings.TrimPrefix(path+"/"+s.name, "/"), folders) {
			known = false
		}
	}
	if known {
		t.hash, t.files = change.now, t.files+change.files
	} else {
		t.files = -1
	}
	return known
}

func (k *command) settle(ctx context.Context) error {
	if settledIndex(k.layout) {
		return nil
	}
	w, err := openScratchDir(ctx, k.layout, k.lockTimeout)
	if err != nil {
		return err
	}
	return errors.Join(k.catchUp(ctx, w), w.close())
}

// catchUp updates the index for recorded commits that are still at HEAD, and reverts it where HEAD is still at the
// parent because the commit was never made.
func (k *command) catchUp(ctx context.Context, w *scratchDir) error {
	list := w.readPending()
	if len(list) == 0 {
		return nil
	}
	head, err := k.head(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.GitDir != k.gitDir || p.Ref != head.Ref || p.New != head.Hash && p.Old != head.Hash {
			continue
		}
		if err := k.updateIndex(ctx, p, head.Hash); err != nil {
			return err
		}
	}
	return w.clearPending()
}

// updateIndex sets the index entries of the files that a commit changed to their state in "to", which is the commit
// or its parent. See native.nextIndex for why the index goes first.
func (k *command) updateIndex(ctx context.Context, p pending, to string) error {
	edits, err := k.difference(ctx, p)
	if err != nil {
		return err
	}
	if to != p.New {
		for i, e := range edits {
			edits[i].was, edits[i].now = e.now, e.was
		}
	}
	return k.followIndex(ctx, edits)
}

// difference lists what a commit changed.
func (k *command) difference(ctx context.Context, p pending) ([]commandEdit, error) {
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--root", "--no-commit-id", p.New}
	if p.Old != "" {
		args = append(args[:len(args)-1], p.Old, p.New)
	}
	out, err := k.run(ctx, call{}, args...)
	if err != nil {
		return nil, err
	}
	fields := nulSplit(out)
	var edits []commandEdit
	for i := 0; i+1 < len(fields); i += 2 { // ":<mode> <mode> <hash> <hash> <letter>", path
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", fields[i])
		}
		edits = append(edits, commandEdit{fields[i+1], f[0] + " " + f[2], f[1] + " " + f[3]})
	}
	return edits, nil
}

// commandEdit is an edit in git's format: "100644 <hash>", or zeros.
type commandEdit struct{ path, was, now string }

// followIndex is index.follow for an index that only git can write.
func (k *command) followIndex(ctx context.Context, edits []commandEdit) error {
	out, err := k.run(ctx, call{}, "ls-files", "-s", "-z")
	if err != nil {
		return err
	}
	staged := map[string]string{} // path -> "100644 <hash> 0"
	for _, line := range nulSplit(out) {
		if entry, path, ok := strings.Cut(line, "\t"); ok {
			staged[path] = entry
		}
	}
	var info []string
	for _, e := range edits {
		cur, found := staged[e.path]
		none := strings.HasPrefix(e.was, "000000")
		if found && cur == e.was+" 0" || !found && none {
			info = append(info, e.now+"\t"+e.path)
		}
	}
	deadline := time.Now().Add(k.lockTimeout)
	for {
		_, err := k.run(ctx, call{stdin: nulJoin(info)}, "update-index", "-z", "--index-info")
		if err = remoteBusy(err); !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
