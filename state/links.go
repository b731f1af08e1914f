package state

import (
	"errors"
	"os"
	"path"
	"strings"

	"reconcile.dev/reconcile/schemas/treepath"
)

// lookLink judges a symbolic link. In specs/ it may stand for a regular file of the tree; elsewhere links are refused.
func (s *scanner) lookLink(p *place, name []byte, a area, v visitor) {
	at := p.dir + "/" + string(name)
	if a != areaSpecs {
		v.trouble(trouble{at, "symlink", "it is a symbolic link; state is kept in regular files only"})
		return
	}
	st, err := followLink(s.root, at)
	if err != nil {
		v.trouble(trouble{at, "symlink", err.Error()})
		return
	}
	v.file(a, p.dir, name, &st)
}

// lookFolderLink reports a link in specs/ that could hide specs: it leads to a folder, or out of the tree.
func (s *scanner) lookFolderLink(p *place, name []byte, v visitor) {
	at := p.dir + "/" + string(name)
	to, err := resolve(s.root, at)
	if err != nil {
		v.trouble(trouble{at, "symlink", err.Error()})
		return
	}
	if st, err := lstat(s.root, to); err == nil && st.form() == formFolder {
		v.trouble(trouble{at, "symlink", "it is a symbolic link to a folder, and such are not followed; link the files"})
	}
}

// followLink returns what the link at p leads to, which must be a regular file of the tree.
func followLink(root *os.Root, p string) (stat, error) {
	to, err := resolve(root, p)
	if err != nil {
		return stat{}, err
	}
	st, err := lstat(root, to)
	switch {
	case err != nil:
		return stat{}, errors.New("it is a symbolic link that leads nowhere")
	case st.form() != formFile:
		return stat{}, errors.New("it is a symbolic link to something that is not a regular file")
	}
	return st, nil
}

var (
	errLinkOut   = errors.New("it is a symbolic link that leaves the tree; copy the file, or link to one in the tree")
	errLinkLoop  = errors.New("it is a symbolic link that leads to itself")
	errLinkLocal = errors.New("it is a symbolic link into .git or .reconcile, which are no part of the tree")
)

// resolve follows all links in a slash path below root and returns the path without any.
func resolve(root *os.Root, p string) (string, error) {
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
		if err != nil { // not a link, or nothing: the caller will see
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
