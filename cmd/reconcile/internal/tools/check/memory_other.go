//go:build !linux

package main

// memoryFolder returns "": only on Linux is a file system in memory known to be there.
func memoryFolder(string) (string, func()) { return "", nil }
