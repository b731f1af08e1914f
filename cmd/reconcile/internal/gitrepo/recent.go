package gitrepo

import (
	"bytes"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"

	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
)

// recent keeps what the calls of one Repo read, since most of them read the same: commits and trees, and the configuration. A nil one
// keeps nothing.
type recent struct {
	objects sync.Map // contents by objectName
	bytes   atomic.Int64
	configs sync.Map // configFile by path
}

// folderID tells a folder from a later one at the same path, which may have the same number.
type folderID struct {
	info  fs.FileInfo
	birth int64
}

func identify(folder string) (folderID, error) {
	info, err := os.Stat(folder)
	return folderID{info, disk.Birth(folder)}, err
}

// is reports whether two of them are certainly those of one folder.
func (i folderID) is(other folderID) bool {
	return i.birth != 0 && i.birth == other.birth && os.SameFile(i.info, other.info)
}

// recentRoom bounds the kept objects, in bytes.
const recentRoom = 1 << 20

type objectName struct {
	kind plumbing.ObjectType
	hash plumbing.Hash
}

func (r *recent) object(name objectName) ([]byte, bool) {
	if r == nil {
		return nil, false
	}
	data, ok := r.objects.Load(name)
	if !ok {
		return nil, false
	}
	return data.([]byte), true
}

func (r *recent) add(name objectName, data []byte) {
	if r == nil || name.kind == plumbing.BlobObject || len(data) > recentRoom/4 {
		return
	}
	if r.bytes.Add(int64(len(data))) > recentRoom {
		r.objects.Clear()
		r.bytes.Store(int64(len(data)))
	}
	r.objects.Store(name, data)
}

// configFile is a configuration file as it was read. No one changes it.
type configFile struct {
	file fs.FileInfo
	cfg  *config.Config
}

// config parses a configuration file, once for each version of it. It is nil for a file that is absent or unreadable, which git
// ignores, too.
func (r *recent) config(path string) (*config.Config, error) {
	is, err := os.Stat(path)
	if err != nil {
		return nil, nil
	}
	if r != nil {
		was, _ := r.configs.Load(path)
		if was, ok := was.(configFile); ok && os.SameFile(was.file, is) && was.file.Size() == is.Size() && was.file.ModTime().Equal(is.ModTime()) {
			return was.cfg, nil
		}
	}
	data, err := regular.ReadPath(path)
	if err != nil {
		return nil, nil
	}
	cfg := config.New()
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(cfg); err != nil {
		return nil, err
	}
	_, _ = cfg.Section("core"), cfg.Section("extensions") // supported asks for them, and Section would add a missing one then
	if r != nil && settled(is.ModTime(), time.Now()) {
		r.configs.Store(path, configFile{is, cfg})
	}
	return cfg, nil
}

// settled reports whether another write of a file would now get another time: some file systems count in steps of two seconds.
func settled(modified, now time.Time) bool {
	step := 2 * time.Second
	if modified.Nanosecond() != 0 {
		step = 100 * time.Millisecond
	}
	return now.Sub(modified) > step
}
