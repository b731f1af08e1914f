package checking

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// Walk lists the regular files below a folder that is in no repository, sorted, without hidden folders and those of dependencies.
func Walk(ctx context.Context, root string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // what cannot be read is not checked either
		case d.IsDir() && p != "." && (d.Name()[0] == '.' || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, filepath.ToSlash(p))
		}
		return nil
	})
	return files, err
}
