package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/regular"
)

// Bounds of the caches that programs in sandboxes keep.
const (
	programsAge   = 30 * 24 * time.Hour // of one that no run has used
	programsBytes = 10 << 30            // of all; the one that was used least recently goes first
	// programsEach is how often their sizes are measured.
	programsEach = 24 * time.Hour
	programsMark = state.ProgramsDir + "/.measured"
)

// programs are the caches of programs that this runner's agents use. Its zero value is ready.
type programs struct {
	used []string // their folders
}

// use makes the cache of an agent, and notes when it was used last.
func (r *Runner) useProgram(name string) error {
	if err := r.root.MkdirAll(name, 0o700); err != nil {
		return err
	}
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.programs.used, name) {
		r.programs.used = append(r.programs.used, name)
	}
	return r.root.Chtimes(name, now, now)
}

// sweepPrograms removes caches that are too old, and the oldest while all are too large. It does nothing while another process of
// reconcile does the same, or where this runner used none.
func (r *Runner) sweepPrograms(age time.Duration, most int64) (err error) {
	if len(r.programs.used) == 0 {
		return nil
	}
	mark, fi, err := regular.OpenFile(r.root, programsMark, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer mark.Close()
	now := r.o.Now()
	if fi.Size() > 0 && now.Sub(fi.ModTime()) < programsEach {
		return nil
	}
	lock, err := filelock.Try(mark)
	if lock == nil || err != nil {
		return err
	}
	defer func(l *flock.Flock) { err = errors.Join(err, l.Unlock()) }(lock)
	caches, total, err := r.measurePrograms()
	for _, c := range caches {
		if now.Sub(c.used) > age || total > most {
			total -= c.size
			err = errors.Join(err, removeTree(r.root, c.name))
		}
	}
	_, writeErr := mark.WriteAt([]byte("x"), 0)
	return errors.Join(err, writeErr, r.root.Chtimes(programsMark, now, now))
}

// programCache is the cache of one agent.
type programCache struct {
	name string
	used time.Time
	size int64
}

// measurePrograms returns the caches, the one that was used least recently first, and their size.
func (r *Runner) measurePrograms() (all []programCache, total int64, err error) {
	entries, err := regular.List(r.root, state.ProgramsDir)
	for _, e := range entries {
		fi, infoErr := e.Info()
		if !e.IsDir() || infoErr != nil {
			continue
		}
		c := programCache{name: path.Join(state.ProgramsDir, e.Name()), used: fi.ModTime()}
		_ = fs.WalkDir(regular.FS(r.root), c.name, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if fi, err := d.Info(); err == nil {
					c.size += fi.Size()
				}
			}
			return nil // what cannot be read is not counted
		})
		all, total = append(all, c), total+c.size
	}
	slices.SortFunc(all, func(a, b programCache) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	return all, total, err
}

// chooseProgram takes the other program of an agent whose turn needs one that is not found.
func (a *attempt) chooseProgram() {
	if a.talk == nil || a.talk.task.Otherwise == nil {
		return
	}
	if _, err := findProgram(a.task.Argv[0], a.command.dir, lookup(a.command.env, "PATH")); err != nil {
		a.task, a.talk = a.talk.task.Otherwise, nil
	}
}

// findProgram finds a program as a shell in dir would: a name with a slash is relative to dir. It skips relative entries of
// searchPath.
func findProgram(name, dir, searchPath string) (string, error) {
	if runtime.GOOS == "windows" {
		return exec.LookPath(name)
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil // starting it gives the best error
	}
	for entry := range strings.SplitSeq(searchPath, string(filepath.ListSeparator)) {
		p := filepath.Join(entry, name)
		if filepath.IsAbs(entry) && runnable(p) {
			return p, nil
		}
	}
	hint := "install it, or give its path"
	if strings.ContainsAny(name, " \t|&;<>$") {
		hint = "for a shell command use script; for a program with arguments make run a list"
	}
	return "", fmt.Errorf("program %q was not found in PATH: %s", name, hint)
}
