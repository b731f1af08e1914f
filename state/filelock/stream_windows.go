package filelock

import "os"

const createStream = os.O_CREATE

// stream returns the name to lock: an empty stream next to the content, since Windows makes locked data unreadable.
func stream(name string) string { return name + ":lock" }
