//go:build !linux

package durable

import "errors"

// exchange is not to be had here.
func (f *folders) exchange(string, string) error { return errors.ErrUnsupported }
