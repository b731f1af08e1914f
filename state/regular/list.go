package regular

import (
	"cmp"
	"io/fs"
	"os"
	"slices"
)

// List returns what a folder of root holds, sorted by name.
func List(root *os.Root, dir string) ([]fs.DirEntry, error) {
	d, err := Folder(root, dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}
