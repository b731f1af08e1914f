package lock

import "golang.org/x/sys/windows"

// noLinks is what linking says on a file system that has none, such as FAT.
const noLinks = windows.ERROR_INVALID_FUNCTION
