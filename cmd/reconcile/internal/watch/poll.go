package watch

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cespare/xxhash/v2"
)

// fingerprint summarizes the stat data of every watched file: path, size, change time and mode. Equal fingerprints mean no
// change. Unreadable folders count as empty. The second result is false if the watcher was closed meanwhile.
func (w *Watcher) fingerprint() (uint64, bool) {
	var sum uint64
	err := filepath.WalkDir(w.root, func(name string, d fs.DirEntry, err error) error {
		rel, ok := w.rel(name)
		if !ok || !w.scope.wants(rel) {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d != nil && d.IsDir() && w.skips(rel) {
			return fs.SkipDir
		}
		if d == nil || d.IsDir() {
			return w.closing()
		}
		if info, err := d.Info(); err == nil {
			sum += pollStamp(rel, info) // a sum, so that the order does not matter
		}
		return nil
	})
	return sum, err == nil
}

func pollStamp(rel string, info fs.FileInfo) uint64 {
	var meta [24]byte
	binary.LittleEndian.PutUint64(meta[:], uint64(info.Size()))
	binary.LittleEndian.PutUint64(meta[8:], uint64(info.ModTime().UnixNano()))
	binary.LittleEndian.PutUint64(meta[16:], uint64(info.Mode()))
	h := xxhash.NewWithSeed(uint64(len(rel)))
	_, _ = h.Write(meta[:]) // a hash never fails
	_, _ = h.WriteString(rel)
	return h.Sum64()
}

var errClosing = errors.New("the watcher is being closed")

// look polls once.
func (w *Watcher) poll() {
	if now, ok := w.fingerprint(); ok && now != w.seen {
		w.seen = now
		w.gather.everything(time.Now(), false)
	}
}
