package limits

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/schemas"
)

const canLimitProcess = true

// places is where this process may make control groups. It is asked once.
var places = sync.OnceValues(func() ([]place, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return findPlaces(string(own), string(mounts))
})

// place is a folder in which groups can be made, with the controllers that they have.
type place struct {
	dir         string
	controllers []string
}

// findPlaces returns the folders above the group of this process that it may change and whose groups have controllers, the nearest one
// first: a group with processes cannot have groups with controllers below it.
func findPlaces(own, mounts string) ([]place, error) {
	root, point := unifiedMount(mounts)
	if point == "" {
		return nil, errors.New("version 2 of control groups is not mounted")
	}
	group := ""
	for line := range strings.Lines(own) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			group = strings.TrimSpace(rest)
		}
	}
	rel, err := filepath.Rel(root, group)
	if group == "" || err != nil || strings.HasPrefix(rel, "..") || strings.HasPrefix(group, "/..") {
		return nil, errors.New("the group of this process is not visible")
	}
	var found []place
	for dir := filepath.Dir(filepath.Join("/", rel)); ; dir = filepath.Dir(dir) {
		full := filepath.Join(point, dir)
		enabled, err := os.ReadFile(filepath.Join(full, "cgroup.subtree_control"))
		if err == nil && len(bytes.TrimSpace(enabled)) > 0 && unix.Access(full, unix.W_OK) == nil && unix.Access(filepath.Join(full, "cgroup.procs"), unix.W_OK) == nil {
			found = append(found, place{full, strings.Fields(string(enabled))})
		}
		if dir == "/" {
			break
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no group with controllers is delegated to this process")
	}
	return found, nil
}

// unifiedMount returns the root and the mount point of control groups of version 2.
func unifiedMount(mounts string) (root, point string) {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if kind := strings.Fields(after); ok && len(kind) > 0 && kind[0] == "cgroup2" && len(fields) > 4 {
			return fields[3], fields[4]
		}
	}
	return "", ""
}

// groups counts the groups of this process.
var groups atomic.Int64

// newGroup makes a control group with bounds, and tries once whether programs can start in one.
func newGroup(b Bounds) (*Limit, error) {
	found, err := places()
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		var l *Limit
		if l, err = p.make(b); err == nil {
			if err = p.try(l); err == nil {
				return l, nil
			}
			l.Close()
		}
	}
	return nil, err
}

// settings are the files of a group that bound it.
func (b *Bounds) settings() (controllers []string, files [][2]string) {
	if b.Memory > 0 {
		controllers = append(controllers, "memory")
		files = append(files, [2]string{"memory.max", strconv.FormatInt(b.Memory, 10)}, [2]string{"memory.swap.max", "0"}, [2]string{"memory.oom.group", "1"})
	}
	if b.CPUs > 0 {
		const period = 100_000 // microseconds
		controllers = append(controllers, "cpu")
		files = append(files, [2]string{"cpu.max", fmt.Sprintf("%d %d", max(int64(b.CPUs*period), 1000), period)})
	}
	if b.PIDs > 0 {
		controllers = append(controllers, "pids")
		files = append(files, [2]string{"pids.max", strconv.Itoa(b.PIDs)})
	}
	return controllers, files
}

func (p *place) make(b Bounds) (*Limit, error) {
	needed, files := b.settings()
	for _, c := range needed {
		if !slices.Contains(p.controllers, c) {
			return nil, fmt.Errorf("the controller %s is not delegated", c)
		}
	}
	dir, err := p.folder()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0)
		if err != nil && !(f[0] == "memory.swap.max" && errors.Is(err, os.ErrNotExist)) { // a kernel without swap has none
			return nil, errors.Join(err, os.Remove(dir))
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &Limit{By: schemas.LimitsByGroup, memory: b.Memory, group: dir, folder: folder}, nil
}

// groupName is what the name of a group begins with; the process that makes it, and a number, follow.
const groupName = "reconcile-"

// folder makes the folder of a new group. An earlier process with the same number may have left some.
func (p *place) folder() (dir string, err error) {
	for range 100 {
		dir = filepath.Join(p.dir, fmt.Sprintf("%s%d-%d", groupName, os.Getpid(), groups.Add(1)))
		if err = os.Mkdir(dir, 0o755); !errors.Is(err, os.ErrExist) {
			break
		}
	}
	return dir, err
}

// sweep removes the groups that killed processes have left. The system keeps those that have processes.
func (p *place) sweep() {
	left, _ := filepath.Glob(filepath.Join(p.dir, groupName+"[0-9]*-[0-9]*"))
	for _, dir := range left {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupName), "-")
		if pid, err := strconv.Atoi(number); err == nil && pid != os.Getpid() && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = os.Remove(dir) // it has processes that end later
		}
	}
}

// tried has the result of the first start in a group of a place, a startResult, by its folder.
var tried sync.Map

type startResult struct{ err error }

// try starts a program in a group.
func (p *place) try(l *Limit) error {
	if known, ok := tried.Load(p.dir); ok {
		return known.(startResult).err
	}
	pid, err := syscall.ForkExec(shell, []string{"sh", "-c", ":"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(l.folder.Fd())}})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	p.sweep()
	if err != nil {
		err = fmt.Errorf("a program cannot start in it: %w", err)
	}
	tried.Store(p.dir, startResult{err})
	return err
}

// killed reports whether the system ended processes of the group since they had no more memory.
func (l *Limit) killed() bool {
	events, err := os.ReadFile(filepath.Join(l.group, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(events)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// Close removes the group, whose processes have ended. One that is left is empty and bounds no one.
func (l *Limit) Close() {
	if l == nil || l.group == "" {
		return
	}
	_ = l.folder.Close() // it was only read
	for wait := time.Millisecond; os.Remove(l.group) != nil && wait < 100*time.Millisecond; wait *= 2 {
		time.Sleep(wait) // a process that has just ended is in it for a moment
	}
}
