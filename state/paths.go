package state

import (
	"path"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// WorkDir holds the files that are passed to runs, below the root. Unused ones have names that durable.Sweep removes.
const WorkDir = localDir + "/work"

// The paths of local files, below the root.
const (
	localDir       = ".reconcile"
	tmpDir         = ".reconcile/tmp"
	cacheDir       = ".reconcile/cache"
	cachePath      = ".reconcile/cache/tree"
	cacheTemp      = ".reconcile/cache/tree.new"
	settledPath    = ".reconcile/cache/settled"
	journalDir     = ".reconcile/journal"
	logDir         = ".reconcile/logs"
	damagedDir     = ".reconcile/damaged"
	generationPath = ".reconcile/generation"
	treeLockPath   = ".reconcile/tree"
	runsFolder     = "runs"
	journalSuffix  = ".journal"
	journalNew     = ".new" // suffix of an unfinished one
)

// area is the purpose of a folder or a file.
type area uint8

const (
	areaNone    area = iota
	areaSpecs        // specs/**, state/archive/**: spec files
	areaStatus       // state/<kinds>/*.json: statuses
	areaRuns         // state/runs/<kinds>/<name>/*.json: records of effects
	areaLedgers      // state/clarifications/issue-<N>.json
	areaOther        // other files of the tree that are watched and not decoded: projections, memory, facts
)

// otherFolders are the fixed folders of state/, except those of the kinds and runs/.
var otherFolders = []string{ledgersFolder, memoryFolder, factsFolder}

const factsFolder = "graph"

// FactsDir returns the folder of files with facts about indexed nodes, below the folder of the state.
func FactsDir(stateFolder string) string { return stateFolder + "/" + factsFolder }

// layout is the layout of a tree's folders.
type layout struct {
	kinds        schemas.Kinds
	specs, state string // slash paths below the root
}

// archive returns the folder of specs that had their effect.
func (l *layout) archive() string { return ArchiveDir(l.state) }

// statusKind returns the kind whose statuses are in the folder state/<plural>.
func (l *layout) statusKind(plural string) (schemas.Kind, bool) {
	for _, k := range l.kinds {
		if k.Plural == plural && k.NewStatus != nil {
			return k, true
		}
	}
	return schemas.Kind{}, false
}

// StatusPath returns the path of the status file of ref below the root; "" if its kind has no statuses.
func (s *Store) StatusPath(ref schemas.Ref) string { return s.layout().statusPath(ref) }

func (l *layout) statusPath(ref schemas.Ref) string {
	for _, k := range l.kinds {
		if k.Name == ref.Kind && k.NewStatus != nil {
			return l.state + "/" + k.Plural + "/" + ref.Name + ".json"
		}
	}
	return ""
}

// RunPath returns the path of the record of the effect with the given key.
func (s *Store) RunPath(key string) string { return s.layout().runPath(key) }

func (l *layout) runPath(key string) string { return l.state + "/" + runsFolder + "/" + key + ".json" }

// runKey is the inverse of runPath: "dags/checks/build-…-1".
func (l *layout) runKey(p string) string {
	return strings.TrimSuffix(strings.TrimPrefix(p, l.state+"/"+runsFolder+"/"), ".json")
}

// runName returns the last element of a key.
func runName(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// ownerOf returns the object of the effect with the given key; the zero Ref if the key does not have the form
// <kinds>/<name>/<effect>.
func (l *layout) ownerOf(key string) schemas.Ref {
	plural, rest, ok := strings.Cut(key, "/")
	name, effect, ok2 := strings.Cut(rest, "/")
	k, ok3 := l.statusKind(plural)
	if !ok || !ok2 || !ok3 || effect == "" || strings.Contains(effect, "/") || schemas.CheckName(name) != nil {
		return schemas.Ref{}
	}
	return schemas.Ref{Kind: k.Name, Name: name}
}

// classify returns the area of the file at p, and the object of a status or record.
func (l *layout) classify(p string) (area, schemas.Ref) {
	base := path.Base(p)
	switch {
	case hidden(base):
		return areaNone, schemas.Ref{}
	case within(l.specs, p):
		if specFile(base) && !hiddenBelow(l.specs, p) {
			return areaSpecs, schemas.Ref{}
		}
	case within(l.archive(), p):
		if specFile(base) && !hiddenBelow(l.archive(), p) {
			return areaSpecs, schemas.Ref{}
		}
	case within(l.state, p) && strings.HasSuffix(base, ".json"):
		return l.classifyState(p[len(l.state)+1:])
	}
	return areaNone, schemas.Ref{}
}

func (l *layout) classifyState(below string) (area, schemas.Ref) {
	folder, rest, deep := strings.Cut(below, "/")
	if !deep {
		return areaOther, schemas.Ref{}
	}
	if folder == runsFolder {
		if ref := l.ownerOf(strings.TrimSuffix(rest, ".json")); ref != (schemas.Ref{}) {
			return areaRuns, ref
		}
		return areaNone, schemas.Ref{}
	}
	if k, ok := l.statusKind(folder); ok && !strings.Contains(rest, "/") {
		return areaStatus, schemas.Ref{Kind: k.Name, Name: strings.TrimSuffix(rest, ".json")}
	}
	if issue, ok := ledgerIssue(rest); ok && folder == ledgersFolder {
		return areaLedgers, ledgerRef(issue)
	}
	if folder == memoryFolder {
		return areaOther, memoryRef(rest)
	}
	for _, f := range otherFolders {
		if folder == f {
			return areaOther, schemas.Ref{}
		}
	}
	return areaNone, schemas.Ref{}
}

// within reports whether p is below the folder dir.
func within(dir, p string) bool {
	return len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// hidden reports whether a name is that of a temporary file of an editor or another hidden file, which is not part of a
// tree.
func hidden[S string | []byte](name S) bool {
	return len(name) == 0 || name[0] == '.' || name[len(name)-1] == '~' || name[0] == '#'
}

func hiddenBelow(dir, p string) bool {
	for _, part := range strings.Split(path.Dir(p[len(dir)+1:]), "/") {
		if part != "." && hidden(part) {
			return true
		}
	}
	return false
}

// specFile reports whether a name has an extension of specs, in upper or lower case: file systems that ignore case treat
// X.YAML as x.yaml, and no system may skip it silently.
func specFile[S string | []byte](name S) bool {
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '.' {
			switch string(name[i+1:]) {
			case "yaml", "yml", "json", "toml":
				return true
			}
			switch strings.ToLower(string(name[i+1:])) {
			case "yaml", "yml", "json", "toml":
				return true
			}
			return false
		}
	}
	return false
}
