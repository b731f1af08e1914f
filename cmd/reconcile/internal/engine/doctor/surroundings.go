package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

func checkProgram(_ context.Context, e *Patient) []Finding { return ok(e.Program) }

// checkFileSystem warns of file systems on which locks or renames are known to be unreliable, and of full ones.
func checkFileSystem(_ context.Context, e *Patient) []Finding {
	info, err := statFS(e.Dir)
	if err != nil {
		return ok(fmt.Sprintf("cannot be told here: %v", err))
	}
	const little = 256 << 20
	if info.free < little {
		return []Finding{warn(fmt.Sprintf("only %d MiB are free on this %s", info.free>>20, info.name), "make room")}
	}
	if why, risky := riskyFileSystems[info.name]; risky {
		return []Finding{warn(fmt.Sprintf("%s: %s", info.name, why),
			"keep the tree on a local disk, or let only one machine work on it")}
	}
	return ok(fmt.Sprintf("%s, %d GiB free", info.name, info.free>>30))
}

// riskyFileSystems are the known ones, by the names of statFS.
var riskyFileSystems = map[string]string{
	"nfs":    "locks need a lock daemon on the server, and other machines see changes late",
	"cifs":   "locks and renames are translated, and not all servers keep to them",
	"smb":    "locks and renames are translated, and not all servers keep to them",
	"9p":     "locks hold only on this side of the virtual machine",
	"fuse":   "whether locks hold depends on the program behind it (virtiofs of virtual machines is known to fail)",
	"vboxsf": "there are no locks",
}

const testFile = ".reconcile/tmp/doctor"

// checkWriting writes a file like any other, and reads it back.
func checkWriting(_ context.Context, e *Patient) []Finding {
	if !e.isTree() {
		return skipped("this is not a tree yet")
	}
	text := []byte(e.Now().String())
	err := e.makeScratch()
	if err == nil {
		err = durable.WriteFile(e.root, tempFolder, testFile, text)
	}
	if err != nil {
		return []Finding{bad(fmt.Sprintf("files cannot be written: %v", err), "check permissions and free space of .reconcile")}
	}
	back, err := regular.Read(e.root, testFile)
	if rmErr := e.root.Remove(testFile); err == nil {
		err = rmErr
	}
	if err != nil || string(back) != string(text) {
		return []Finding{bad(fmt.Sprintf("what was written does not come back: %v", err), "do not use this file system")}
	}
	return ok("files are written, synced, renamed and read back")
}

// checkClock compares the clock of the process with that of the file system.
func checkClock(_ context.Context, e *Patient) []Finding {
	if !e.isTree() {
		return skipped("this is not a tree yet")
	}
	const name = testFile + "-clock"
	if err := e.writeScratch(name); err != nil {
		return skipped(err.Error())
	}
	info, err := e.root.Lstat(name)
	if rmErr := e.root.Remove(name); err == nil {
		err = rmErr
	}
	if err != nil {
		return skipped(err.Error())
	}
	const most = 5 * time.Second
	apart := e.Now().Sub(info.ModTime())
	switch {
	case e.Now().Year() < 2025:
		return []Finding{bad("the clock says "+e.Now().Format(time.RFC3339), "set it: retries and time limits depend on it")}
	case apart.Abs() > most:
		return []Finding{warn(fmt.Sprintf("the clocks of this process and of the file system are %s apart", apart.Abs()),
			"set both by NTP: ages of locks are told by both")}
	}
	return ok("agrees with the file system's")
}

// checkWatches compares the number of folders with the system's limit on watches.
func checkWatches(_ context.Context, e *Patient) []Finding {
	watches, instances, err := watchLimits()
	if err != nil {
		return ok("no limit is known here")
	}
	folders := e.folders()
	const others = 1024 // for editors and similar programs
	switch {
	case watches < folders+others:
		return []Finding{warn(fmt.Sprintf("%s for %s: --watch may have to poll", schemas.Count(watches, "watch"), schemas.Count(folders, "folder")),
			"sysctl fs.inotify.max_user_watches=524288")}
	case instances < 16:
		return []Finding{warn(fmt.Sprintf("only %s may watch at once: --watch may have to poll", schemas.Count(instances, "program")),
			"sysctl fs.inotify.max_user_instances=512")}
	}
	return ok(schemas.Count(watches, "watch") + " for " + schemas.Count(folders, "folder"))
}

// folders counts the folders of the tree that --watch watches.
func (e *Patient) folders() int {
	n := 0
	for _, top := range []string{e.settings().Folders.Specs, e.settings().Folders.State} {
		_ = filepath.WalkDir(filepath.Join(e.Dir, top), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				n++
			}
			return nil // unreadable folders are not watched either
		})
	}
	return n
}

// checkEnvironment reports variables that change the behaviour of commands unexpectedly.
func checkEnvironment(_ context.Context, e *Patient) []Finding {
	var found []Finding
	var ours, gits []string
	for _, v := range e.Environ {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "RECONCILE_"):
			ours = append(ours, name)
		case name == "GIT_DIR" || name == "GIT_WORK_TREE" || name == "GIT_INDEX_FILE" || name == "GIT_OBJECT_DIRECTORY":
			gits = append(gits, name)
		}
	}
	if len(ours) > 0 {
		found = append(found, warn("this is inside of a run of reconcile: "+some(ours)+
			"; a run on the same tree is refused here", "use another shell, or unset them"))
	}
	if len(gits) > 0 {
		found = append(found, warn("git commands are led to another repository: "+some(gits), "unset them"))
	}
	if len(found) > 0 {
		return found
	}
	return ok("nothing in it changes what reconcile does")
}

// sizeOf returns the total size in bytes and the number of files below a folder whose names match.
func (e *Patient) sizeOf(dir, pattern string) (size, files int64) {
	_ = fs.WalkDir(regular.FS(e.root), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // unreadable folders count as empty
		}
		if ok, _ := path.Match(pattern, path.Base(name)); ok {
			if info, err := d.Info(); err == nil {
				size += info.Size()
				files++
			}
		}
		return nil
	})
	return size, files
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
