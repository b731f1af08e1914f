package state

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// WorkDir holds the files that are passed to runs, below the root. Unused ones have names that durable.Sweep removes.
const WorkDir = localDir + "/work"

// ProgramsDir holds the caches of programs that run in a sandbox, in a folder for each agent, below the root.
const ProgramsDir = localDir + "/programs"

// otherFolders are the fixed folders of state/, except those of the kinds and runs/.
var otherFolders = []string{ledgersFolder, memoryFolder, factsFolder}

const factsFolder = "graph"

// FactsDir returns the folder of files with facts about indexed nodes, below the folder of the state.
func FactsDir(stateFolder string) string { return stateFolder + "/" + factsFolder }

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

// StatusPath returns the path of the status file of the object ref, by the layout; "" if its kind has no statuses. It is
// below the root.
func (s *Store) StatusPath(ref schemas.Ref) string { return s.layout().statusPath(ref) }

func (l *layout) statusPath(ref schemas.Ref) string {
	for _, k := range l.kinds {
		if k.Name == ref.Kind && k.NewStatus != nil {
			return l.state + "/" + k.Plural + "/" + ref.Name + ".json"
		}
	}
	return ""
}

// RunPath returns the path of the record of the run with the given key, by the layout.
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

// replaces reports whether the files of a folder are replaced, not written in place: statuses and archived specs.
func (l *layout) replaces(dir string) bool {
	if dir == l.archive() || within(l.archive(), dir) {
		return true
	}
	kind, ok := strings.CutPrefix(dir, l.state+"/")
	_, isKind := l.statusKind(kind)
	return ok && isKind
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
		return areaOther, schemas.Ref{Kind: MemoryKind, Name: strings.TrimSuffix(rest, ".json")}
	}
	if name := checkpointName(rest); folder == checkpointsFolder && name != "" {
		return areaCheckpoints, schemas.Ref{Kind: CheckpointKind, Name: name}
	}
	if slices.Contains(otherFolders, folder) {
		return areaOther, schemas.Ref{}
	}
	return areaNone, schemas.Ref{}
}

const checkpointsFolder = "checkpoints"

// checkpointName returns the name of the checkpoint in a file, by its path below the folder; "" for other files.
func checkpointName(below string) string {
	name, ok := strings.CutSuffix(below, ".json")
	if !ok || strings.Count(name, "/") != 1 {
		return ""
	}
	return name
}

// CheckpointKind is the Kind in the Refs of checkpoints, as Checkpoint/<session>/<agent>-<n>. A checkpoint is not an object:
// it has no entry.
const CheckpointKind = schemas.CheckpointName

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
	for part := range strings.SplitSeq(path.Dir(p[len(dir)+1:]), "/") {
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

const (
	memoryFolder  = "memory"
	recordsFolder = "records"
	archiveFolder = "archive"
)

// ArchiveDir returns the archive below stateFolder: the folder for spec files that had their effect.
func ArchiveDir(stateFolder string) string { return stateFolder + "/" + specArchive }

// MemoryKind is the Kind in the Refs of the memory's files, which have no entries: Memory/issue-42, Memory/manifest,
// Memory/records/<name>, Memory/archive/issue-42-archived. This package does not interpret their content; it only tracks
// changes, for fingerprints and for the code that updates the memory from the specs.
const MemoryKind = "Memory"

// specArchive is the folder below state/ whose spec files are read as if they were in specs/.
const specArchive = "archive"

// replaceLocal replaces a disposable local file atomically. The temporary file has a fixed name, so that killed processes
// leave at most one.
func (s *Store) replaceLocal(p string, data []byte) error {
	if err := s.ensureLocal(cacheDir); err != nil {
		return err
	}
	temp := p + ".new"
	if err := regular.Write(s.root, temp, data, 0o644); err != nil {
		_ = s.root.Remove(temp)
		return fmt.Errorf("write %s: %w", p, err)
	}
	if err := s.root.Rename(temp, p); err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

func splitPath(p string) (dir, name string) {
	i := strings.LastIndexByte(p, '/')
	return p[:max(i, 0)], p[i+1:]
}

// LogPath returns the path of the log file for the full output of the run with the given key. It is below the root. Logs are
// local to a clone, and are removed with the records of their runs.
func LogPath(key string) string { return logDir + "/" + key + ".log" }

const logDir = ".reconcile/logs"

const (
	ledgersFolder = "clarifications"
	ledgerPrefix  = "issue-"
)

// ledgerIssue returns the number in the name of a ledger file; ok is false for other files.
func ledgerIssue[S string | []byte](file S) (issue int, ok bool) {
	const least, most = len(ledgerPrefix + "0.json"), len(ledgerPrefix + "2147483647.json")
	if len(file) < least || len(file) > most || string(file[:len(ledgerPrefix)]) != ledgerPrefix {
		return 0, false
	}
	digits, ok := strings.CutSuffix(string(file[len(ledgerPrefix):]), ".json")
	n, err := strconv.ParseInt(digits, 10, 32)
	return int(n), ok && err == nil && strconv.FormatInt(n, 10) == digits && n >= 0
}

func ledgerRef(issue int) schemas.Ref {
	return schemas.Ref{Kind: LedgerKind, Name: ledgerPrefix + strconv.Itoa(issue)}
}

// LedgerKind is the Kind in the Refs of ledgers, as Ledger/issue-42. A ledger is not an object: it has no entry.
const LedgerKind = "Ledger"

// MirrorDir returns the directory of the mirror's records, github in the layout's folder of state, below the root. They are
// not part of a tree: no decision depends on them, and Refresh does not report them.
func (s *Store) MirrorDir() string { return s.layout().state + "/github" }

// MirrorPath returns the path of the mirror's JSON record of the issue with this number.
func (s *Store) MirrorPath(issue int) string {
	return s.MirrorDir() + "/issue-" + strconv.Itoa(issue) + ".json"
}

// MirrorObjectPath returns the path of the mirror's JSON record of the object ref; "" if its kind is unknown. The object has
// an issue.
func (s *Store) MirrorObjectPath(ref schemas.Ref) string {
	for _, k := range s.layout().kinds {
		if k.Name == ref.Kind {
			return s.MirrorDir() + "/objects/" + k.Plural + "/" + ref.Name + ".json"
		}
	}
	return ""
}

// MirrorKeysPath returns the path of the mirror's file keys.json, with the keys that sign markers.
func (s *Store) MirrorKeysPath() string { return s.MirrorDir() + "/keys.json" }

// MemoryDir returns the directory of the memory in the layout of the store, below the root.
func (s *Store) MemoryDir() string { return s.layout().memoryDir() }

func (l *layout) memoryDir() string { return l.state + "/" + memoryFolder }

// HasMemory reports whether MemoryDir is an existing folder, even if it is empty.
func (s *Store) HasMemory() bool {
	fi, err := s.root.Lstat(s.MemoryDir())
	return err == nil && fi.IsDir()
}

// layout returns the folders of the tree: as of the last Load, or, before the first, by the current settings.
func (s *Store) layout() *layout {
	if l := s.lay.Load(); l != nil {
		return l
	}
	s.lay.CompareAndSwap(nil, s.layoutOf(s.readSettings().spec))
	return s.lay.Load()
}

func (s *Store) layoutOf(spec *schemas.SettingsSpec) *layout {
	return &layout{kinds: s.opts.Kinds, specs: spec.Folders.Specs, state: spec.Folders.State}
}

// useSettings applies the settings for the tree itself.
func (s *Store) useSettings(spec *schemas.SettingsSpec) {
	if !sameDecoder(s.settings, spec) {
		s.decoder = schemas.DecoderFor(s.opts.Kinds, spec)
	}
	s.settings = spec
	s.lay.Store(s.layoutOf(spec))
}

// CheckpointsDir returns the folder of checkpoints, below the folder of the state.
func CheckpointsDir(stateFolder string) string { return stateFolder + "/" + checkpointsFolder }
