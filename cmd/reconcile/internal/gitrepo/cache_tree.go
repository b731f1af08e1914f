package gitrepo

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

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
