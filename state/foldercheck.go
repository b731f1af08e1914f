package state

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// ErrFolder says that a link, or something else that is no folder, stands in place of one of the tree's own folders.
var ErrFolder = errors.New("not a folder of the tree")

// CheckFolders reports what stands in place of a folder of specs, of state or of local files and is none. The error wraps
// ErrFolder. A link is refused wherever it leads: what is read and written through it could be outside of the tree, and
// git keeps the link only.
func (s *Store) CheckFolders() error { return s.checkFolders(s.layout()) }

func (s *Store) checkFolders(l *layout) error {
	for _, f := range []struct{ path, field string }{{l.specs, "folders.specs"}, {l.state, "folders.state"}, {localDir, ""}} {
		if err := s.checkFolder(f.path, f.field); err != nil {
			return err
		}
	}
	return nil
}

// checkFolder looks at a folder and at those above it, as far as they exist.
func (s *Store) checkFolder(p, field string) error {
	at := ""
	for part := range strings.SplitSeq(p, "/") {
		at = strings.TrimPrefix(at+"/"+part, "/")
		fi, err := s.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("look at %s: %w", at, err)
		case fi.IsDir():
			continue
		}
		is := "is not a folder"
		if fi.Mode()&fs.ModeSymlink != 0 {
			is = "is a symbolic link, and what is behind it is not kept with the tree"
		}
		instead := "remove it"
		if field != "" {
			instead = "put the folder itself there, or name another as " + field + " in " + schemas.SettingsPath
		}
		return &folderError{fmt.Sprintf("%s %s; %s", at, is, instead)}
	}
	return nil
}

// folderError is an ErrFolder in words of its own.
type folderError struct{ text string }

func (e *folderError) Error() string        { return e.text }
func (e *folderError) Is(target error) bool { return target == ErrFolder }
