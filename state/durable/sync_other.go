//go:build !unix

package durable

import (
	"errors"
	"os"
)

const canSyncTree = false

func syncTree(*os.Root, string) error { return errors.ErrUnsupported }

// syncDir does nothing: Windows keeps names in a journal and cannot sync a folder.
func syncDir(*os.Root, string) error { return nil }
