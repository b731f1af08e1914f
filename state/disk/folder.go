// Package disk reads folders, and files in them, by descriptors: without following links, and without resolving a path
// more than once. It also maps files into memory and watches folders. Each system has its own implementation.
package disk

import "fmt"

// Listing is a part of a folder's names, in the order of the file system.
type Listing struct {
	names []byte // each followed by a NUL
	ends  []int32
	Forms []Form // of the names, in their order
	raw   []byte // the buffer of Dir.List
}

// Reset drops the names, and keeps the memory.
func (l *Listing) Reset() { l.names, l.ends, l.Forms = l.names[:0], l.ends[:0], l.Forms[:0] }

func (l *Listing) add(name []byte, f Form) {
	l.names = append(l.names, name...)
	l.names = append(l.names, 0)
	l.ends = append(l.ends, int32(len(l.names)))
	l.Forms = append(l.Forms, f)
}

// Name returns the i-th name. A NUL follows it, in the same array.
func (l *Listing) Name(i int) []byte {
	start := int32(0)
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.names[start : l.ends[i]-1]
}

// Len returns the number of names.
func (l *Listing) Len() int { return len(l.ends) }

// Each calls each for the index of every name of the folder, whose path p is for messages.
func (d *Dir) Each(l *Listing, each func(i int, l *Listing), p string) (err error) {
	for more := true; more; {
		l.Reset()
		if more, err = d.List(l); err != nil {
			return fmt.Errorf("list %s: %w", p, err)
		}
		for i := range l.Len() {
			each(i, l)
		}
	}
	return nil
}
