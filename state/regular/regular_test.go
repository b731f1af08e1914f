//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// special makes one of each thing that a file's name may stand for, and returns their names.
func special(t *testing.T, dir string) []string {
	t.Helper()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"pipe", "socket", "folder"}
}

func open(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestNothingElseIsOpened: what is no file is refused, for reading and for writing, and no open waits: one that did would
// end with the test's time limit.
func TestNothingElseIsOpened(t *testing.T) {
	dir := t.TempDir()
	root := open(t, dir)
	for _, name := range special(t, dir) {
		for what, do := range map[string]func() error{
			"Open":  func() error { _, _, err := Open(root, name); return err },
			"Read":  func() error { _, err := Read(root, name); return err },
			"Write": func() error { return Write(root, name, []byte("x"), 0o644) },
			"append": func() error {
				_, _, err := OpenFile(root, name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
				return err
			},
			"change":   func() error { _, _, err := OpenFile(root, name, os.O_RDWR, 0); return err },
			"ReadPath": func() error { _, err := ReadPath(filepath.Join(dir, name)); return err },
			"FS":       func() error { _, err := fs.ReadFile(FS(root), name); return err },
		} {
			if err := do(); !errors.Is(err, ErrNot) && !(what == "FS" && name == "folder" && err != nil) {
				t.Errorf("%s of the %s: %v", what, name, err)
			}
		}
		if name == "folder" {
			continue
		}
		for what, do := range map[string]func() error{
			"Folder":     func() error { _, err := Folder(root, name); return err },
			"FolderPath": func() error { _, err := FolderPath(filepath.Join(dir, name)); return err },
			"List":       func() error { _, err := List(root, name); return err },
			"Root":       func() error { _, err := Root(filepath.Join(dir, name)); return err },
			"Glob": func() error {
				if all, err := fs.Glob(FS(root), name+"/*"); err != nil || len(all) > 0 {
					return err
				}
				return fs.ErrInvalid
			},
		} {
			if err := do(); err == nil {
				t.Errorf("%s took the %s for a folder", what, name)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	root := open(t, dir)
	for _, size := range []int{0, 1, 511, 512, 513, 100_000} {
		if err := Write(root, "f", make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := Read(root, "f")
		if again, err2 := ReadPath(filepath.Join(dir, "f")); err != nil || err2 != nil || len(data) != size || len(again) != size {
			t.Errorf("of %d bytes %d and %d were read: %v, %v", size, len(data), len(again), err, err2)
		}
		if _, err := ReadPathUpTo(filepath.Join(dir, "f"), int64(size)); err != nil {
			t.Errorf("%d bytes, which are allowed: %v", size, err)
		}
		if _, err := ReadPathUpTo(filepath.Join(dir, "f"), int64(size)-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes, one too many: %v", size, err)
		}
	}
	if _, err := Read(root, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Read(root, "../x"); err == nil {
		t.Error("a path led out of the root")
	}
	if list, err := List(root, "."); err != nil || len(list) != 1 || list[0].Name() != "f" {
		t.Errorf("%v, %v", list, err)
	}
}

// TestRaces: a pipe that takes the place of a file between a look and the open is refused as well. A version that looks
// first and opens afterwards would wait for the pipe's other end, for good.
func TestRaces(t *testing.T) {
	dir := t.TempDir()
	root := open(t, dir)
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, from := range []string{"pipe", "file"} {
				_ = os.Link(filepath.Join(dir, from), filepath.Join(dir, "next"))
				_ = os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "name"))
				_ = os.Remove(filepath.Join(dir, "next"))
			}
		}
	})
	var text, refused int
	for end := time.Now().Add(10 * time.Second); (text < 200 || refused < 200) && time.Now().Before(end); {
		switch data, err := Read(root, "name"); {
		case err == nil && string(data) == "text":
			text++
		case errors.Is(err, ErrNot):
			refused++
		case !errors.Is(err, fs.ErrNotExist):
			t.Errorf("%q, %v", data, err)
		}
	}
	close(stop)
	wg.Wait()
	if text == 0 || refused == 0 {
		t.Errorf("%d times a file was read, %d times a pipe refused", text, refused)
	}
}
