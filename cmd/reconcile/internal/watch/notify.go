package watch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"reconcile.dev/reconcile/schemas/treepath"
)

// notifier is the part of fsnotify that the watcher uses.
type notifier interface {
	Add(dir string) error
	Remove(dir string) error
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	io.Closer
}

type inotify struct{ *fsnotify.Watcher }

func (n inotify) Events() <-chan fsnotify.Event { return n.Watcher.Events }
func (n inotify) Errors() <-chan error          { return n.Watcher.Errors }

func openNotifier() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return inotify{w}, nil
}

// watchesExhausted reports whether err means that the system's limit of watches is reached.
func watchesExhausted(err error) bool {
	for _, errno := range []error{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// adviseWatches returns err with advice about the missing watches.
func adviseWatches(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("no more file watches (%w); looking at the files from time to time instead; "+
			"to be told of changes at once, raise the limit: sysctl fs.inotify.max_user_watches=524288", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("no more watchers or open files (%w); looking at the files from time to time instead; "+
			"to be told of changes at once, raise the limits: sysctl fs.inotify.max_user_instances=512, ulimit -n", err)
	default:
		return fmt.Errorf("file notification does not work here (%w); looking at the files from time to time instead", err)
	}
}

// cover watches the folder dir, a slash path below the root, and every relevant folder below it. A folder that has
// disappeared meanwhile is not an error: its removal is an event, too.
func (w *Watcher) cover(dir string) error {
	if !w.scope.wants(dir) || w.skips(dir) {
		return nil
	}
	name := filepath.Join(w.root, filepath.FromSlash(dir))
	// Watch first, list second: a file created in between is seen twice, but never missed.
	if err := w.notify.Add(name); err != nil {
		return w.uncovered(dir, err)
	}
	w.watched[dir] = true
	entries, err := os.ReadDir(name)
	if err != nil {
		return w.uncovered(dir, err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := w.cover(join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// uncovered handles a folder that could not be watched: exhaustion is returned, a missing folder is ignored, and any other
// error is reported once and left to the rescans.
func (w *Watcher) uncovered(dir string, err error) error {
	switch {
	case watchesExhausted(err):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fsnotify.ErrClosed):
		return nil
	case !w.warned[dir]:
		w.warned[dir] = true
		w.o.Warn(fmt.Errorf("%s is not watched, changes in it are found by rescans only: %w", dir, err))
	}
	return nil
}

// uncover removes the watches of dir and of every folder below it.
func (w *Watcher) uncover(dir string) {
	for d := range w.watched {
		if treepath.Below(d, dir) {
			// The kernel may have removed the watch already, with the folder.
			_ = w.notify.Remove(filepath.Join(w.root, filepath.FromSlash(d)))
			delete(w.watched, d)
		}
	}
}

// isFolder reports whether name is a folder, not a link to one: links are not followed.
func isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// coverAll watches every relevant folder. Watched ones are unaffected.
func (w *Watcher) coverAll() {
	if w.notify != nil {
		w.try(w.cover("."))
	}
}

func (w *Watcher) closeNotifier() {
	if w.notify != nil {
		_ = w.notify.Close() // the descriptor is closed in any case
		w.notify = nil
	}
}
