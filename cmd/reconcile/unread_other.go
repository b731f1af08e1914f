//go:build !unix

package main

import "io"

// unread reports whether w is a pipe without a reader; on these systems only writing finds out.
func unread(io.Writer) bool { return false }
