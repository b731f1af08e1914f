package outputs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// entries lists the entries of the cache, the newest first.
func entries(root *os.Root) ([]fs.FileInfo, error) {
	list, err := regular.List(root, Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the cache of outputs: %w", err)
	}
	var out []fs.FileInfo
	for _, d := range list {
		if fi, err := d.Info(); err == nil && isEntry(d.Name()) && fi.Mode().IsRegular() {
			out = append(out, fi)
		}
	}
	slices.SortFunc(out, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	return out, nil
}

// Sweep removes the entries without a named output, and then the oldest ones, until the rest has at most limit bytes.
// named is called only if there are entries.
func Sweep(root *os.Root, limit int64, named func(func(schemas.Output))) error {
	list, err := entries(root)
	if err != nil || len(list) == 0 {
		return err
	}
	keep := map[string]bool{}
	named(func(out schemas.Output) { keep[out.Digest] = true })
	total := int64(0)
	for _, fi := range list {
		if wanted := keep[prefix+fi.Name()]; wanted && total+fi.Size() <= limit {
			total += fi.Size()
			continue
		}
		if e := root.Remove(Dir + "/" + fi.Name()); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove an entry of the cache of outputs: %w", e))
		}
	}
	return err
}

// Stats is the result of Verify.
type Stats struct {
	Entries int
	Bytes   int64
	Wrong   []string // names of entries with other content, sorted
}

// Verify computes the sha256 of every entry in the cache of outputs, and returns stats: the number of entries and bytes, and
// the wrong names.
func Verify(ctx context.Context, root *os.Root) (Stats, error) {
	list, err := entries(root)
	var s Stats
	for _, fi := range list {
		s.Entries++
		s.Bytes += fi.Size()
		f, _, err := regular.Open(root, Dir+"/"+fi.Name())
		if err != nil {
			continue // it was removed meanwhile
		}
		h := sha256.New()
		_, err = io.Copy(h, reader{ctx, f})
		_ = f.Close()
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err != nil || hex.EncodeToString(h.Sum(nil)) != fi.Name() {
			s.Wrong = append(s.Wrong, fi.Name())
		}
	}
	slices.Sort(s.Wrong)
	return s, err
}

// Drop removes the entries with these names from the cache of outputs.
func Drop(root *os.Root, names []string) error {
	var err error
	for _, name := range names {
		if !isEntry(name) {
			continue
		}
		if e := root.Remove(Dir + "/" + name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove an entry of the cache of outputs: %w", e))
		}
	}
	return err
}
