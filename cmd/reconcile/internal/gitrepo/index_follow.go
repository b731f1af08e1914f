package gitrepo

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
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
