package filelock

import "os"

const createStream = os.O_CREATE

// stream is what is locked: an empty stream beside the content, since Windows keeps everybody from reading what is locked.
func stream(name string) string { return name + ":lock" }
