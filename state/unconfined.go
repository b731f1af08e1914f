package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// A program that nothing confines can write any file, also the decision of a person. So the folder below has a mark for each run of such a
// program, until a process has seen all that the run wrote; and a receipt for each file that reconcile itself writes meanwhile for a person.
const (
	unconfinedDir = localDir + "/unconfined"
	markSuffix    = ".run"
	receiptSuffix = ".own"
)

// MarkUnconfined notes that the run with the key is about to start a program that nothing confines.
func MarkUnconfined(root *os.Root, key string) error {
	if err := durable.WriteFile(root, tmpDir, markOf(key), []byte(key)); err != nil {
		return fmt.Errorf("note that a run starts without a sandbox: %w", err)
	}
	return nil
}

func markOf(key string) string {
	return path.Join(unconfinedDir, hexDigest(key)+markSuffix)
}

// Unconfined lists the keys of the runs that are marked, sorted.
func (s *Store) Unconfined() ([]string, error) {
	files, err := listUnconfined(s.root)
	var keys []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), markSuffix) {
			continue
		}
		key, readErr := regular.Read(s.root, path.Join(unconfinedDir, f.Name()))
		if errors.Is(readErr, fs.ErrNotExist) {
			continue // another process has removed it
		}
		keys, err = append(keys, string(key)), errors.Join(err, readErr)
	}
	slices.Sort(keys)
	return keys, err
}

func listUnconfined(root *os.Root) ([]fs.DirEntry, error) {
	files, err := regular.List(root, unconfinedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// ForgetUnconfined removes the marks of runs, and the receipts before the last mark. The folder stays: after a kill, the next process finds a
// mark and removes the rest.
func (s *Store) ForgetUnconfined(keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	files, errs := listUnconfined(s.root)
	over, last := map[string]bool{}, true
	for _, key := range keys {
		over[path.Base(markOf(key))] = true
	}
	for _, f := range files {
		last = last && (over[f.Name()] || !strings.HasSuffix(f.Name(), markSuffix))
	}
	for _, suffix := range []string{receiptSuffix, markSuffix} {
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), suffix) || !over[f.Name()] && (suffix == markSuffix || !last) {
				continue
			}
			if err := s.root.Remove(path.Join(unconfinedDir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = errors.Join(errs, err)
			}
		}
	}
	return errs
}

// Vouch notes that reconcile writes a file for a person. It comes before the file.
func Vouch(root *os.Root, name string, data []byte) error {
	if files, err := listUnconfined(root); err != nil || len(files) == 0 {
		return err // no program runs that could have written it
	}
	return durable.WriteFile(root, tmpDir, receiptOf(name, data), nil)
}

// Vouched reports whether reconcile wrote a file with this content for a person.
func (s *Store) Vouched(name string) (bool, error) {
	data, err := regular.Read(s.root, name)
	if err != nil {
		return false, regular.Cause(err)
	}
	_, err = s.root.Lstat(receiptOf(name, data))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func receiptOf(name string, data []byte) string {
	return path.Join(unconfinedDir, hexDigest(name+"\x00"+string(data))+receiptSuffix)
}

func hexDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
