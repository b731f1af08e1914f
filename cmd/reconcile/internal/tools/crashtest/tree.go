package crashtest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// TreeHash returns a hash of the tree below root, and its listing: for each path, sorted, its mode and the hash of its
// content or the target of its link. Times are ignored. exclude are patterns as of package doublestar, of paths relative
// to root; an excluded folder excludes everything below it.
func TreeHash(root string, exclude ...string) (hash, listing string, err error) {
	return Listing(root, func(path string, data []byte) ([]byte, bool) { return data, !excluded(path, exclude) })
}

// Listing lists the files below root with their contents as keep edits them, and returns the SHA-256 hash of the
// listing with it. It is TreeHash with edited contents: keep gets the relative path, and the content of a file, and
// returns the content to hash, or false to leave the path out. For folders and links, data is nil.
func Listing(root string, keep func(path string, data []byte) ([]byte, bool)) (hash, listing string, err error) {
	var b strings.Builder
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return list(&b, p, filepath.ToSlash(rel), d, keep)
	})
	if err != nil {
		return "", "", fmt.Errorf("list %s: %w", root, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(b.String()))), b.String(), nil
}

func list(b *strings.Builder, p, rel string, d fs.DirEntry, keep func(string, []byte) ([]byte, bool)) error {
	var data []byte
	fi, err := d.Info()
	if err == nil && fi.Mode().IsRegular() {
		data, err = os.ReadFile(p)
	}
	if err != nil {
		return err
	}
	data, ok := keep(rel, data)
	switch {
	case !ok && d.IsDir():
		return fs.SkipDir
	case !ok:
		return nil
	case fi.Mode().IsRegular():
		fmt.Fprintf(b, "%v %s %d %x\n", fi.Mode(), rel, len(data), sha256.Sum256(data))
	case fi.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(p)
		fmt.Fprintf(b, "%v %s -> %s\n", fi.Mode(), rel, to)
		return err
	default:
		fmt.Fprintf(b, "%v %s\n", fi.Mode(), rel)
	}
	return nil
}

func excluded(path string, patterns []string) bool {
	for _, p := range patterns {
		if ok, err := doublestar.Match(p, path); ok && err == nil {
			return true
		}
	}
	return false
}
