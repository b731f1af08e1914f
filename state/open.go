package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// Errors of Find, for errors.Is.
var (
	// ErrNoTree says that a folder is not in a tree.
	ErrNoTree = errors.New("no tree here")
	// ErrForeign says that the tree belongs to another user, whose commands must not run by accident.
	ErrForeign = errors.New("the tree belongs to another user")
)

// Find searches dir and the folders above it for the tree that contains dir, and returns the tree's absolute path without
// links. The tree is the nearest folder with settings, or with an object of reconcile in specs/. It stops at the top of
// dir's git work tree. The error wraps ErrNoTree, or ErrForeign if a folder above dir is a tree of a user who owns neither
// dir nor this process.
func Find(dir string, kinds schemas.Kinds) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	top := ""
	switch l, err := worktree.Find(abs); {
	case err == nil:
		top = l.Top
	case !errors.Is(err, worktree.ErrNone):
		top = abs // the top of the repository is not known
	}
	for at := abs; ; at = filepath.Dir(at) {
		if isTree(at, kinds) {
			if at != abs && disk.Foreign(at, abs) {
				return "", fmt.Errorf("%s: %w; if you trust it, name it with -C", at, ErrForeign)
			}
			return at, nil
		}
		if at == top || at == filepath.Dir(at) {
			return "", noTree(abs, top)
		}
	}
}

func noTree(dir, top string) error {
	upTo := ""
	if top != "" && top != dir {
		upTo = ", up to the top of the repository,"
	}
	return fmt.Errorf("%w: neither %s nor a folder above it%s has %s or an object in specs/", ErrNoTree, dir, upTo, schemas.SettingsPath)
}

// isTree reports whether dir has settings, or an object of reconcile in the default folder of specs.
func isTree(dir string, kinds schemas.Kinds) bool {
	if _, err := os.Lstat(filepath.Join(dir, schemas.SettingsPath)); err == nil {
		return true
	}
	var standard schemas.SettingsSpec
	standard.Default()
	root, err := regular.Root(filepath.Join(dir, standard.Folders.Specs))
	if err != nil {
		return false
	}
	defer root.Close()
	return hasObject(root, ".", 0, schemas.NewDecoder(kinds, 0))
}

// hasObject reports whether a file in a folder of root, or below it, is an object of reconcile. It does not follow links.
func hasObject(root *os.Root, dir string, depth int, d *schemas.Decoder) bool {
	f, err := regular.Folder(root, dir)
	if err != nil {
		return false
	}
	defer f.Close()
	var folders []string
	for {
		entries, err := f.ReadDir(64) // in parts, since the first hit suffices
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case hidden(e.Name()):
			case e.IsDir() && depth < maxDepth:
				folders = append(folders, name)
			case specFile([]byte(e.Name())) && !e.IsDir() && isOurs(root, name, d):
				return true
			}
		}
		if err != nil {
			break
		}
	}
	for _, name := range folders {
		if hasObject(root, name, depth+1, d) {
			return true
		}
	}
	return false
}

// isOurs reports whether a file holds an object of reconcile, or names its version and is otherwise invalid.
func isOurs(root *os.Root, name string, d *schemas.Decoder) bool {
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, _, err := regular.Open(root, name)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, schemas.DefaultFileSize))
	if err != nil {
		return false
	}
	group, _, _ := strings.Cut(schemas.APIVersion, "/")
	return bytes.Contains(data, []byte(group+"/")) || path.Ext(name) == ".toml" && d.Decode(name, data).Object != nil
}

// Open returns the store of the tree in the folder dir, which it opens as root. The folder must exist; an empty one is a
// tree without objects. It reads and writes nothing yet. The error wraps ErrFolder if the folder of local files is not a
// folder.
func Open(dir string, o Options) (*Store, error) {
	root, err := regular.Root(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("tree %s does not exist; make the folder, or point -C at another: %w", dir, err)
		}
		return nil, fmt.Errorf("tree %s: %w", dir, err)
	}
	if o.DormantFrom == 0 {
		o.DormantFrom = minDormantFiles
	}
	if o.FileNow == nil {
		o.FileNow = o.Now
	}
	s := &Store{root: root, dir: dir, opts: o, tick: disk.TickOf(root), settings: new(schemas.SettingsSpec), against: checksAgainst(o.Kinds),
		lost: map[string]bool{}, shapes: shapesOf(o.Kinds), deferFrom: minDeferredRecords}
	s.settings.Default()
	s.decoder = schemas.DecoderFor(o.Kinds, s.settings)
	s.cache = newCache(s)
	if err := s.checkFolder(localDir, ""); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

// Close closes the folder. Journals and locks must be closed before.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.close()
	s.unwatch()
	return s.root.Close()
}

func checksAgainst(kinds schemas.Kinds) map[string]func(o, to *schemas.Object, r *schemas.Report) {
	checks := map[string]func(o, to *schemas.Object, r *schemas.Report){}
	for _, k := range kinds {
		if k.CheckAgainst != nil {
			checks[k.Name] = k.CheckAgainst
		}
	}
	return checks
}

// minDormantFiles is the number of files of dormant objects from which on a load skips dormant objects.
const minDormantFiles = 1000
