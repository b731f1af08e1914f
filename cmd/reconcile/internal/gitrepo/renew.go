package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"reconcile.dev/reconcile/state/regular"
)

// exactStat has git compare all stat data, also the time of the last change, which programs cannot set, and the number of the file.
var exactStat = []string{"-c", "core.trustctime=true", "-c", "core.checkStat=default"}

// Renew makes a checkout of Clone one of a commit again, whatever programs have done in it: with the files of that commit and no others, and with a
// new repository. Only what differs is written. After an error the checkout is of no use, and has to be removed. No program may be at work in it.
func (r *Repo) Renew(ctx context.Context, co Checkout, commit, branch string) error {
	if _, err := r.gitCommand(); err != nil {
		return err
	}
	root, err := regular.Root(co.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := filepath.Join(co.Dir, ".git")
	if err := root.RemoveAll(".git"); err != nil {
		return err
	}
	if err := errors.Join(r.newRepository(ctx, dir, branch, commit), r.shareObjects(dir)); err != nil {
		return err
	}
	err = r.either(func(n *native, s *objectStore) error { return n.rewrite(ctx, s, root, co, commit) }, func(k *command) error {
		in, c := k.inWorkspace(co)
		c.config = slices.Concat(exactStat, c.config)
		_, err := in.quick(ctx, c, "read-tree", "--reset", "-u", commit)
		return err
	})
	if err != nil {
		return err
	}
	data, _, _, err := readIndex(co.Index)
	if err != nil {
		return err
	}
	ix, err := parseIndex(data)
	if err != nil {
		return err
	}
	own, err := root.Lstat(".git") // has the mode of a new folder
	if err != nil {
		return err
	}
	n, err := ix.keepOnly(root, "", own.Mode())
	if err == nil && n != len(ix.entries) {
		err = fmt.Errorf("%d of %d files are there", n, len(ix.entries))
	}
	return errors.Join(err, writeFile(filepath.Join(dir, "index"), data))
}

// rewrite writes the files of a commit that a checkout of few files does not have as its index says, and then the index. It removes nothing
// that is not in the way of one.
func (n *native) rewrite(ctx context.Context, s *objectStore, root *os.Root, co Checkout, commit string) error {
	return n.scanCheckout(ctx, s, co, func(scan *dirtyScan) error {
		tree, err := s.treeOf(commit)
		if err != nil {
			return err
		}
		w := &checkoutWriter{store: s, rules: scan.rules}
		folders, err := w.list("", tree)
		if err != nil {
			return err
		}
		keeps := func(e indexEntry) (fs.FileInfo, bool) {
			was, conflict := scan.index.find(e.path)
			if was.fixed == nil || conflict || was.blob() != e.blob() {
				return nil, false
			}
			same, err := scan.sameOnDisk(was)
			fi, err2 := lstatBelow(root, e.path)
			return fi, same && err == nil && err2 == nil && statOf(fi).matches(was.fixed)
		}
		if err := w.write(ctx, root, keeps); err != nil {
			return err
		}
		return writeFile(co.Index, (&index{version: 2, entries: w.entries, folders: folders}).encode())
	})
}

// clearWay removes what is at a path, and what is no folder on the way there.
func clearWay(root *os.Root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		fi, err := root.Lstat(filepath.FromSlash(name[:i]))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return root.Remove(filepath.FromSlash(name[:i]))
		}
	}
	return root.RemoveAll(filepath.FromSlash(name))
}

// keepOnly removes from a folder what the index does not have, and counts what it has. An error says that something is another one.
func (x *index) keepOnly(here *os.Root, dir string, folders fs.FileMode) (n int, err error) {
	fi, err := here.Stat(".")
	if err == nil && fi.Mode() != folders {
		err = fmt.Errorf("the folder %q has the mode %s", dir, fi.Mode())
	}
	if err != nil {
		return 0, err
	}
	names, err := regular.List(here, ".")
	if err != nil {
		return 0, err
	}
	for _, d := range names {
		at := path.Join(dir, d.Name())
		switch e, _ := x.find(at); {
		case at == ".git":
		case e.fixed != nil && (d.Type() == 0 && e.blob().mode != modeLink || d.Type() == fs.ModeSymlink && e.blob().mode == modeLink):
			fi, err := d.Info()
			if err == nil && !statOf(fi).matches(e.fixed) { // git compares seconds
				err = fmt.Errorf("%s has changed", at)
			}
			if err != nil {
				return n, err
			}
			n++
		case e.fixed != nil:
			return n, fmt.Errorf("%s is no plain file", at)
		case d.IsDir() && len(x.below(at+"/")) > 0:
			more, err := x.keepOnlyBelow(here, d.Name(), at, folders)
			if err != nil {
				return n, err
			}
			n += more
		default:
			if err := here.RemoveAll(d.Name()); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (x *index) keepOnlyBelow(parent *os.Root, name, at string, folders fs.FileMode) (int, error) {
	here, err := parent.OpenRoot(name)
	if err != nil {
		return 0, err
	}
	defer here.Close()
	return x.keepOnly(here, at, folders)
}
