package lock

import "golang.org/x/sys/windows"

// noLinks is the error of link on a file system without links, such as FAT.
const noLinks = windows.ERROR_INVALID_FUNCTION
