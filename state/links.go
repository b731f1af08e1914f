package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/disk"
)

// followLink returns the stat of the target of the link at p, which must be a regular file of the tree.
func followLink(root *os.Root, p string) (disk.Stat, error) {
	to, err := resolveLink(root, p)
	if err != nil {
		return disk.Stat{}, err
	}
	st, err := disk.Lstat(root, to)
	switch {
	case err != nil:
		return disk.Stat{}, errors.New("it is a symbolic link that leads nowhere")
	case st.Form() != disk.File:
		return disk.Stat{}, errors.New("it is a symbolic link to something that is not a regular file")
	}
	return st, nil
}

var (
	errLinkOut   = errors.New("it is a symbolic link that leaves the tree; copy the file, or link to one in the tree")
	errLinkLoop  = errors.New("it is a symbolic link that leads to itself")
	errLinkLocal = errors.New("it is a symbolic link into .git or .reconcile, which are no part of the tree")
)

// resolveLink follows all links in a slash path below root and returns the resulting path.
func resolveLink(root *os.Root, p string) (string, error) {
	done, rest := ".", p
	for links := 0; rest != ""; {
		part, after, _ := strings.Cut(rest, "/")
		rest = after
		switch part {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", errLinkOut
			}
			done = path.Dir(done)
			continue
		}
		if treepath.OfName(part) != treepath.User {
			return "", errLinkLocal
		}
		at := path.Join(done, part)
		target, err := root.Readlink(at)
		if err != nil { // not a link, or missing: the caller's next access reports it
			done = at
			continue
		}
		if links++; links > 40 {
			return "", errLinkLoop
		}
		if path.IsAbs(target) || strings.Contains(target, `\`) {
			return "", errLinkOut
		}
		rest = target + "/" + rest
	}
	return done, nil
}

// ErrFolder says that one of the tree's own folders is a link, or is not a folder.
var ErrFolder = errors.New("not a folder of the tree")

// CheckFolders reports an error if a folder of the layout is a link or another file: that of specs, of state or of local
// files. The error wraps ErrFolder. Links are rejected regardless of their target: reads and writes through them could leave
// the tree, and git stores only the link.
func (s *Store) CheckFolders() error { return s.checkFolders(s.layout()) }

func (s *Store) checkFolders(l *layout) error {
	for _, f := range []struct{ path, field string }{{l.specs, "folders.specs"}, {l.state, "folders.state"}, {localDir, ""}} {
		if err := s.checkFolder(f.path, f.field); err != nil {
			return err
		}
	}
	return nil
}

// checkFolder checks a folder and the existing folders above it.
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

// folderError is an ErrFolder with its own text.
type folderError struct{ text string }

func (e *folderError) Error() string        { return e.text }
func (e *folderError) Is(target error) bool { return target == ErrFolder }

// checkLink validates a symbolic link. In specs/ a link may lead to a regular file of the tree; elsewhere links are
// rejected.
func (s *scanner) checkLink(p *scanFolder, name []byte, a area, v visitor) {
	at := p.dir + "/" + string(name)
	if a != areaSpecs {
		v.scanError(scanError{at, "symlink", "it is a symbolic link; state is kept in regular files only"})
		return
	}
	st, err := followLink(s.root, at)
	if err != nil {
		v.scanError(scanError{at, "symlink", err.Error()})
		return
	}
	v.file(a, p.dir, name, &st)
}

// checkFolderLink reports a link in specs/ that could hide specs: it leads to a folder, or out of the tree.
func (s *scanner) checkFolderLink(p *scanFolder, name []byte, v visitor) {
	at := p.dir + "/" + string(name)
	to, err := resolveLink(s.root, at)
	if err != nil {
		v.scanError(scanError{at, "symlink", err.Error()})
		return
	}
	if st, err := disk.Lstat(s.root, to); err == nil && st.Form() == disk.Folder {
		v.scanError(scanError{at, "symlink", "it is a symbolic link to a folder, and such are not followed; link the files"})
	}
}
