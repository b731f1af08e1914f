//go:build !linux

package durable

import "errors"

// exchange is not available on this system.
func (f *folders) exchange(string, string) error { return errors.ErrUnsupported }
