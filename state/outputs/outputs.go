// Package outputs keeps the declared outputs of nodes in a cache on this machine, addressed by content, and restores
// missing ones.
//
// An entry is a regular file .reconcile/cache/outputs/<sha256>. It is written atomically, and not synced: its name is
// its digest, and every read verifies it. A wrong entry is removed and counts as missing. Entries are copies, never hard
// links, because programs write in place. This package never holds a whole file in memory.
package outputs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Dir is the folder of the cache, below the root.
const Dir = ".reconcile/cache/outputs"

const (
	tmpDir = ".reconcile/tmp"
	prefix = "sha256:"
)

// ErrMissing says that the cache does not have the content, or had other content under its name.
var ErrMissing = errors.New("not in the cache of outputs")

// Digest computes the sha256 digest and the size of the regular file name below root, and returns them as an output.
func Digest(ctx context.Context, root *os.Root, name string) (schemas.Output, error) {
	f, out, err := openRegular(root, name)
	if err != nil {
		return out, err
	}
	defer f.Close()
	h := sha256.New()
	out.Size, err = io.Copy(h, reader{ctx, f})
	out.Digest = prefix + hex.EncodeToString(h.Sum(nil))
	return out, err
}

func openRegular(root *os.Root, name string) (*os.File, schemas.Output, error) {
	out := schemas.Output{Path: name}
	f, fi, err := regular.Open(root, name)
	if err != nil {
		return nil, out, err
	}
	if fi.Mode()&0o100 != 0 {
		out.Mode = schemas.OutputExecutable
	}
	return f, out, nil
}

// Put adds the content of the regular file name below from to the cache of outputs below root, unless it is larger than
// limit, and returns its digest as an output. A failed copy is ignored: the description is valid without it.
func Put(ctx context.Context, root, from *os.Root, name string, limit int64) (schemas.Output, error) {
	out, err := Digest(ctx, from, name)
	if err != nil || out.Size > limit || Has(root, out) {
		return out, err
	}
	f, _, err := openRegular(from, name)
	if err != nil {
		return out, nil
	}
	defer f.Close()
	_ = add(ctx, root, out, f) // at most, a missing entry costs a run of the node
	return out, nil
}

// Fill adds the content of an output, read from another source, to the cache, unless it has the output. The error wraps
// ErrMissing if it is not the content of out.
func Fill(ctx context.Context, root *os.Root, out schemas.Output, from io.Reader) error {
	if Has(root, out) {
		return nil
	}
	return add(ctx, root, out, from)
}

func add(ctx context.Context, root *os.Root, out schemas.Output, from io.Reader) error {
	err := durable.AddFrom(root, tmpDir, entry(out), durable.DefaultMode, false, func(f *os.File) error {
		return Copy(ctx, f, from, out)
	})
	if errors.Is(err, fs.ErrExist) {
		return nil // another process has added it
	}
	return err
}

// Copy copies content and verifies that it is that of out.
func Copy(ctx context.Context, to io.Writer, from io.Reader, out schemas.Output) error {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, h), reader{ctx, io.LimitReader(from, out.Size+1)})
	if err == nil && (n != out.Size || prefix+hex.EncodeToString(h.Sum(nil)) != out.Digest) {
		err = fmt.Errorf("%s: another content than %s: %w", out.Path, out.Digest, ErrMissing)
	}
	return err
}

// Has reports whether the cache has a regular file of the right size as the entry of the output out. Only a read verifies
// its content.
func Has(root *os.Root, out schemas.Output) bool {
	if !valid(out) {
		return false
	}
	fi, err := root.Lstat(entry(out))
	return err == nil && fi.Mode().IsRegular() && fi.Size() == out.Size
}

// Open opens the entry of an output in the cache for reading. The caller verifies its content; the error wraps ErrMissing if
// there is no entry.
func Open(root *os.Root, out schemas.Output) (*os.File, error) {
	if !Has(root, out) {
		return nil, fmt.Errorf("%s: %w", out.Path, ErrMissing)
	}
	f, _, err := regular.Open(root, entry(out))
	return f, err
}

// Restore restores an output that is missing in the work tree: it writes the content from the cache to the output's path
// below root, durably. It never replaces anything: the error wraps fs.ErrExist if the path exists by now. A path through a
// symbolic link is rejected. The error wraps ErrMissing if the cache does not have the content; a wrong entry is removed.
func Restore(ctx context.Context, root *os.Root, out schemas.Output) error {
	from, err := Open(root, out)
	if err != nil {
		return err
	}
	defer from.Close()
	mode := durable.DefaultMode
	if out.Mode == schemas.OutputExecutable {
		mode = 0o755
	}
	err = durable.AddFrom(root, tmpDir, out.Path, mode, true, func(f *os.File) error {
		return Copy(ctx, f, from, out)
	})
	if errors.Is(err, ErrMissing) {
		_ = root.Remove(entry(out)) // otherwise it is found to be wrong again
	}
	return err
}

// Read opens an output in the cache, or else at its path in the work tree, and returns its verified content. The error wraps
// ErrMissing if neither has it.
func Read(ctx context.Context, root *os.Root, out schemas.Output) ([]byte, error) {
	for _, open := range []func() (*os.File, error){
		func() (*os.File, error) { return Open(root, out) },
		func() (*os.File, error) { f, _, err := openRegular(root, out.Path); return f, err },
	} {
		f, err := open()
		if err != nil {
			continue
		}
		var data bytes.Buffer
		err = Copy(ctx, &data, f, out)
		_ = f.Close() // it was only read
		if err == nil || ctx.Err() != nil {
			return data.Bytes(), err
		}
	}
	return nil, fmt.Errorf("%s: %w", out.Path, ErrMissing)
}

// entry returns the path of the entry of out, which is valid.
func entry(out schemas.Output) string { return Dir + "/" + strings.TrimPrefix(out.Digest, prefix) }

// valid reports whether an output, which may come from an untrusted file, names an entry.
func valid(out schemas.Output) bool {
	digits, ok := strings.CutPrefix(out.Digest, prefix)
	return ok && isEntry(digits) && out.Size >= 0
}

func isEntry(name string) bool {
	return len(name) == 2*sha256.Size && strings.Trim(name, "0123456789abcdef") == ""
}

// reader returns the error of ctx once ctx is done.
type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
