package memstore

import (
	"path"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// The paths of the memory's cache, below the root. All of it can be rebuilt.
const (
	cacheDir          = ".reconcile/memory"
	basePath          = cacheDir + "/base"
	deltaPath         = cacheDir + "/delta"
	archivesPath      = cacheDir + "/archives"
	sparedPath        = cacheDir + "/spared"
	manifestStatePath = cacheDir + "/step"
	settledPath       = cacheDir + "/settled"
	foldedPath        = cacheDir + "/folded"
	recordsPath       = cacheDir + "/records"
	anchorsPath       = cacheDir + "/anchors"
)

// fileLimit is the maximum size of a file of the memory, in bytes.
const fileLimit = 64 << 20

func (f *Files) dir() string        { return f.store.MemoryDir() }
func (f *Files) recordsDir() string { return f.dir() + "/records" }
func (f *Files) archiveDir() string { return f.dir() + "/archive" }
func (f *Files) manifestPath() string {
	return f.dir() + "/manifest.json"
}

// Issues are numbers, so that no name leads to another folder.
func (f *Files) issuePath(issue int) string { return f.dir() + "/" + issueName(issue) }

func issueName(issue int) string { return "issue-" + strconv.Itoa(issue) + ".json" }

func (f *Files) archivePath(issue int) string {
	return f.archiveDir() + "/issue-" + strconv.Itoa(issue) + "-archived.json"
}

// specPath returns the path of an Observation's spec.
func (f *Files) specPath(name string) string {
	return path.Join(f.settings().Folders.Specs, schemas.ObservationKind.Plural, specFile(name))
}

// keptAt returns the path of the spec of an Observation of a time: in the archive, if it was moved there.
func (f *Files) keptAt(name string, at time.Time) string {
	p := state.ArchivePath(f.settings().Folders.State, schemas.ObservationKind.Plural, at, specFile(name))
	if _, err := f.store.Lstat(p); err == nil {
		return p
	}
	return f.specPath(name)
}

func (f *Files) recordPath(name string) string { return f.recordsDir() + "/" + name + ".json" }

func specFile(name string) string { return name + ".yaml" }

// issueOf returns the number in the name of an issue file; ok is false for other names.
func issueOf(name string) (issue int, ok bool) {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "issue-")
	n, err := strconv.ParseInt(digits, 10, 32)
	return int(n), ok && err == nil && n >= 0 && issueName(int(n)) == name
}
