package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/state/regular"
)

const canSyncTree = true

// syncTree writes the whole file system of dir to disk (syncfs(2); since Linux 5.8 it reports errors of writing back).
// errors.ErrUnsupported says that the system has no such call.
func syncTree(root *os.Root, dir string) error {
	f, err := regular.Folder(root, dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			return errors.ErrUnsupported
		}
		return fmt.Errorf("syncfs %s: %w", dir, err)
	}
	return nil
}

// syncDir makes the names in dir durable.
func syncDir(root *os.Root, dir string) error {
	f, err := regular.Folder(root, dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
