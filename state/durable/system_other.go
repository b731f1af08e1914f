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

// syncDir makes the names in dir durable. Windows keeps names in a journal and cannot sync a folder.
func syncDir(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := regular.Folder(root, dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// exchange is not available on this system.
func (f *folders) exchange(string, string) error { return errors.ErrUnsupported }
