//go:build unix && !linux

package durable

import (
	"errors"
	"os"

	"reconcile.dev/reconcile/state/regular"
)

const canSyncTree = false

func syncTree(*os.Root, string) error { return errors.ErrUnsupported }

// syncDir makes the names in dir durable.
func syncDir(root *os.Root, dir string) error {
	f, err := regular.Folder(root, dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
