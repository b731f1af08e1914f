package disk

import (
	"errors"
	"maps"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watch receives notifications of changes in folders from the kernel (inotify). A nil watch receives none.
type Watch struct {
	fd    int
	later sync.WaitGroup // adds folders

	mu      sync.Mutex // scans add folders from several goroutines
	dirs    map[int32]string
	changed map[string]bool // since the last take; true: it is or was a folder
	lost    bool            // changed is incomplete
}

// maxChanged bounds the recorded changes: for more, a full scan costs the same.
const maxChanged = 1 << 16

const (
	watchNames = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	watchAll   = watchNames | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB
)

// OpenWatch returns nil if file notification is not available.
func OpenWatch() *Watch {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	return &Watch{fd: fd, lost: true}
}

// Close returns at once: the kernel takes some milliseconds.
func (w *Watch) Close() {
	if w != nil {
		w.Wait()
		go unix.Close(w.fd)
	}
}

// AddLater calls add, which adds folders, meanwhile. What depends on it waits.
func (w *Watch) AddLater(add func()) {
	if w != nil {
		w.later.Go(add)
	}
}

// Wait waits until AddLater has added its folders.
func (w *Watch) Wait() {
	if w != nil {
		w.later.Wait()
	}
}

// Restart drops the recorded changes: a full scan begins, and adds all folders.
func (w *Watch) Restart() {
	if w == nil {
		return
	}
	w.ReadEvents()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dirs == nil {
		w.dirs = map[int32]string{}
	}
	w.changed, w.lost = map[string]bool{}, false
}

// Add watches a folder, whose names must be read after that. If d is nil, the folder is known not to exist. With names,
// files that appear, disappear or are replaced are reported, and those that are written in place are not: for the latter the kernel visits
// each file of the folder that it has in memory.
func (w *Watch) Add(d *Dir, dir string, names bool) {
	if w == nil {
		return
	}
	mask := uint32(watchAll)
	if names {
		mask = watchNames
	}
	wd := -1
	if d != nil && isLocalDisk(d.fd) {
		wd, _ = unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(d.fd), mask)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case wd >= 0:
		w.dirs[int32(wd)] = dir
	case d != nil:
		w.lost = true
	}
}

// Lose records that changes may not be reported.
func (w *Watch) Lose() {
	if w != nil {
		w.mu.Lock()
		w.lost = true
		w.mu.Unlock()
	}
}

// Covers reports whether a folder is watched.
func (w *Watch) Covers(dir string) bool {
	w.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.dirs {
		if d == dir {
			return true
		}
	}
	return false
}

// isLocalDisk reports whether the kernel sees all changes in a folder: on network file systems, and on those that another
// system shares with this one, it does not.
func isLocalDisk(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, zfsMagic, bcachefsMagic:
		return true
	}
	return false
}

const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
)

// Complete reports whether all changes since restart are known.
func (w *Watch) Complete() bool {
	if w == nil {
		return false
	}
	w.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.lost
}

// Pending returns the result of the next take; the caller must not change it.
func (w *Watch) Pending() (changed map[string]bool, ok bool) {
	if w == nil {
		return nil, false
	}
	w.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed, !w.lost
}

// Take returns the changes since its last call; ok is false if they are not known.
func (w *Watch) Take() (changed map[string]bool, ok bool) {
	if w == nil {
		return nil, false
	}
	w.ReadEvents()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		return nil, false
	}
	changed = maps.Clone(w.changed)
	clear(w.changed)
	return changed, true
}

// ReadEvents reads the available notifications.
func (w *Watch) ReadEvents() {
	if w == nil {
		return
	}
	w.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil || n < unix.SizeofInotifyEvent:
			w.lost = true
			return
		default:
			w.events(buf[:n])
		}
	}
}

func (w *Watch) events(b []byte) {
	for len(b) >= unix.SizeofInotifyEvent {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&b[0]))
		name := b[unix.SizeofInotifyEvent:][:e.Len]
		b = b[unix.SizeofInotifyEvent+int(e.Len):]
		w.event(e, unix.ByteSliceToString(name))
	}
}

func (w *Watch) event(e *unix.InotifyEvent, name string) {
	dir, known := w.dirs[e.Wd]
	switch {
	case e.Mask&unix.IN_IGNORED != 0:
		delete(w.dirs, e.Wd)
	case !known, name == "", len(w.changed) >= maxChanged: // the queue overflowed, or the folder itself changed
		w.lost = true
	default:
		p := dir + "/" + name
		w.changed[p] = w.changed[p] || e.Mask&unix.IN_ISDIR != 0
	}
}
