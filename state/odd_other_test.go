//go:build !unix

package state

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
