//go:build !linux

package durable

import (
	"errors"
	"os"
	"runtime"

	"reconcile.dev/reconcile/state/regular"
)

const canSyncTree = false

func syncTree(*os.Root, string) error { return errors.ErrUnsupported }

// SyncDir makes the names in dir durable. Windows keeps names in a journal and cannot sync a folder.
func SyncDir(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := regular.Folder(root, dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncData makes the content of a file, and its size, durable.
func SyncData(f *os.File) error { return f.Sync() }

// exchange is not available on this system.
func (f *folders) exchange(string, string) error { return errors.ErrUnsupported }
