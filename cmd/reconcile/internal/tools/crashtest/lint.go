package crashtest

import (
	"fmt"
	"path"
	"strings"
)

// Finding is something that a power loss could show and a killed process cannot.
type Finding struct {
	Rule string // UnsyncedRename or UnsyncedFolder
	Call Call   // the one at fault
}

// The rules of Lint.
const (
	// UnsyncedRename: a file was written and renamed without a sync between; the new name may hold nothing.
	UnsyncedRename = "unsynced-rename"
	// UnsyncedFolder: a name was made, changed or removed and its folder was not synced until the end; it may come back.
	UnsyncedFolder = "unsynced-folder"
)

func (f Finding) String() string {
	c := f.Call
	switch f.Rule {
	case UnsyncedRename:
		return fmt.Sprintf("%s: %s %s -> %s: it was written and not synced before", f.Rule, c.Name, c.Path, c.To)
	case UnsyncedFolder:
		return fmt.Sprintf("%s: %s %s: its folder was not synced afterwards", f.Rule, c.Name, c.Path)
	}
	return f.Rule
}

// Lint lints the calls of a whole run, and returns the findings about unsynced renames and folders. Calls that failed
// have no effect; ignore, if not nil, reports the paths that need not survive.
func Lint(calls []Call, ignore func(path string) bool) []Finding {
	l := linter{dirty: map[string]bool{}, names: map[string]Call{}, ignore: ignore}
	for _, c := range calls {
		if c.Err == 0 {
			l.call(c)
		}
	}
	return append(l.found, l.unsynced(calls)...)
}

type linter struct {
	dirty  map[string]bool // files written since their last sync
	names  map[string]Call // by path, the last change of a name that is not durable
	ignore func(string) bool
	found  []Finding
}

func (l *linter) call(c Call) {
	switch c.Op {
	case Write, Truncate:
		l.dirty[c.Path] = true
	case Create, Mkdir:
		l.name(c.Path, c)
	case Remove:
		l.remove(c)
	case Rename:
		l.rename(c)
	case Link:
		l.dirty[c.To] = l.dirty[c.Path]
		l.name(c.To, c)
	case Sync:
		l.sync(c.Path)
	case SyncAll:
		clear(l.dirty)
		clear(l.names)
	}
}

func (l *linter) rename(c Call) {
	if l.dirty[c.Path] && !l.skip(c.To) {
		l.found = append(l.found, Finding{UnsyncedRename, c})
	}
	l.dirty[c.To] = l.dirty[c.Path]
	delete(l.dirty, c.Path)
	delete(l.names, c.Path) // a reappearing old name is harmless: its content was made for this path
	l.name(c.To, c)
}

// remove also drops the state of a folder's content: its names are removed with it.
func (l *linter) remove(c Call) {
	delete(l.dirty, c.Path)
	for name := range l.names {
		if strings.HasPrefix(name, c.Path+"/") {
			delete(l.names, name)
		}
	}
	l.name(c.Path, c)
}

func (l *linter) name(p string, c Call) {
	if !l.skip(p) {
		l.names[p] = c
	}
}

func (l *linter) skip(p string) bool { return p == "" || l.ignore != nil && l.ignore(p) }

// sync makes the content of a file, or the names in a folder, durable.
func (l *linter) sync(p string) {
	delete(l.dirty, p)
	for name := range l.names {
		if path.Dir(name) == p {
			delete(l.names, name)
		}
	}
}

// unsynced returns the names that are left over, in the order of the calls. A name that was made and removed again
// need not survive either way, and is left out.
func (l *linter) unsynced(calls []Call) []Finding {
	var out []Finding
	made := map[string]bool{}
	for _, c := range calls {
		name := c.Path
		if c.Op == Rename || c.Op == Link {
			name = c.To
		}
		if c.Err == 0 && c.Op == Create {
			made[name] = true
		}
		if last, ok := l.names[name]; ok && last == c && !(c.Op == Remove && made[name]) {
			out = append(out, Finding{UnsyncedFolder, c})
			delete(l.names, name)
		}
	}
	return out
}
