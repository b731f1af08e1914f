// Package allowlist stores the destinations to which a user lets trees' settings send data, and the folders whose checks may run. A tree may be untrusted: its
// settings name an address and the environment variable that is sent there as a bearer token, and nothing is sent before
// the user of this machine has allowed that pair.
//
// The list is allowed.json in the user's configuration folder, outside of every tree. A process can be given its own
// addresses in addition, as in CI.
package allowlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

const (
	fileName  = "allowed.json"
	lockName  = "allowed.json.lock"
	tempDir   = "tmp"
	sizeLimit = 1 << 20
)

// file is the content of allowed.json.
type file struct {
	Version int     `json:"version"`
	Allowed []entry `json:"allowed"`
}

// entry allows one address to receive the value of one variable, or the key in a file; without both, requests without a key.
type entry struct {
	URL  string `json:"url,omitempty"`
	Env  string `json:"env,omitempty"`
	File string `json:"file,omitempty"`
	// Folder is a folder whose checks may run; the entry is about nothing else.
	Folder string `json:"folder,omitempty"`
}

func entryOf(d schemas.Destination) entry { return entry{URL: d.URL, Env: d.Env, File: d.File} }

// List is a user's list. The zero value allows nothing.
type List struct {
	dir     string
	entries []entry
	process []string // addresses that this process may use, with any variable
	checks  bool     // this process may run the checks of any folder
}

// checks is the word that allows a process to run the checks of any folder, in place of an address.
const checks = "checks"

// Open opens the allowlist in a folder, which may be missing; dir "" means no list. process are additionally allowed
// addresses, separated by commas, with any variable.
func Open(dir, process string) (*List, error) {
	l := &List{dir: dir}
	for address := range strings.SplitSeq(process, ",") {
		switch address = strings.TrimSpace(address); address {
		case "":
		case checks:
			l.checks = true
		default:
			l.process = append(l.process, schemas.CanonicalAddress(address))
		}
	}
	var err error
	l.entries, err = read(dir)
	return l, err
}

func read(dir string) ([]entry, error) {
	if dir == "" {
		return nil, nil
	}
	p := filepath.Join(dir, fileName)
	info, err := os.Stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > sizeLimit:
		return nil, fmt.Errorf("%s is not a file of at most %d bytes; remove it, and run \"reconcile allow\" again", p, sizeLimit)
	}
	data, err := regular.ReadPath(p)
	if err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w; correct it, or remove it and run \"reconcile allow\" again", p, err)
	}
	return f.Allowed, nil
}

// Path returns the path of the list.
func (l *List) Path() string { return filepath.Join(l.dir, fileName) }

// Allows reports whether the list allows data to be sent to a destination: the process allows its URL, or an entry its
// URL and variable.
func (l *List) Allows(d schemas.Destination) bool {
	return slices.Contains(l.process, d.URL) || slices.Contains(l.entries, entryOf(d))
}

// AllowsChecks reports whether the checks of a folder may run: of the folder itself, or of all in this process.
func (l *List) AllowsChecks(folder string) bool {
	return l.checks || slices.Contains(l.entries, entry{Folder: folder})
}

// AddChecks allows the checks of a folder, an absolute path without symbolic links, durably.
func (l *List) AddChecks(folder string) error {
	return l.change(func(all []entry) []entry {
		if e := (entry{Folder: folder}); !slices.Contains(all, e) {
			all = append(all, e)
		}
		return all
	})
}

// Add allows destinations, durably; entries that other processes add concurrently are kept.
func (l *List) Add(destinations []schemas.Destination) error {
	return l.change(func(all []entry) []entry {
		for _, d := range destinations {
			if e := entryOf(d); !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
		return all
	})
}

// Remove removes the entries of an address, with any variable, or of a folder, and returns their number.
func (l *List) Remove(what string) (removed int, err error) {
	address := schemas.CanonicalAddress(what)
	err = l.change(func(all []entry) []entry {
		before := len(all)
		all = slices.DeleteFunc(all, func(e entry) bool { return e.Folder == what || e.Folder == "" && e.URL == address })
		removed = before - len(all)
		return all
	})
	return removed, err
}

// change replaces the file under a lock. Only the user can read it.
func (l *List) change(edit func([]entry) []entry) (err error) {
	if l.dir == "" {
		return errors.New("the system tells no configuration folder of the user; set HOME")
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(l.dir, lockName))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", l.Path(), err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	entries, err := read(l.dir)
	if err != nil {
		return err
	}
	entries = edit(entries)
	data, err := json.MarshalIndent(file{Version: 1, Allowed: entries}, "", "  ")
	if err != nil {
		return err
	}
	root, err := regular.Root(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := durable.WriteFile(root, tempDir, fileName, append(data, '\n')); err != nil {
		return err
	}
	l.entries = entries
	return nil
}
