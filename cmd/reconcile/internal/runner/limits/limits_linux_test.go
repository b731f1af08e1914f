package limits

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestPlaces finds the groups that belong to this process, from folders as a system has them.
func TestPlaces(t *testing.T) {
	point := t.TempDir()
	for dir, enabled := range map[string]string{"": "cpu memory pids\n", "user": "", "user/app": "memory pids\n", "user/app/term": ""} {
		full := filepath.Join(point, dir)
		if err := os.MkdirAll(full, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cgroup.subtree_control": enabled, "cgroup.procs": ""} {
			if err := os.WriteFile(filepath.Join(full, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	mounts := "25 1 0:5 / /proc rw - proc proc rw\n30 25 0:26 / " + point + " rw,nosuid - cgroup2 cgroup2 rw\n"
	found, err := findPlaces("1:name=systemd:/\n0::/user/app/term\n", mounts)
	if err != nil || len(found) != 2 || found[0].dir != filepath.Join(point, "user/app") || found[1].dir != point ||
		!slices.Equal(found[0].controllers, []string{"memory", "pids"}) {
		t.Errorf("%+v %v", found, err)
	}
	if _, err := found[0].make(Bounds{CPUs: 1}); err == nil || !strings.Contains(err.Error(), "the controller cpu is not delegated") {
		t.Errorf("a group without the controller: %v", err)
	}
	for own, mounts := range map[string]string{"0::/a\n": "", "4:memory:/a\n": mounts, "0::/../other\n": mounts} {
		if found, err := findPlaces(own, mounts); err == nil {
			t.Errorf("%q: %+v", own, found)
		}
	}
}

// TestFolders: a group gets a folder of its own, also where a process of the same number has left some; those of processes that are gone are
// removed.
func TestFolders(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	p := &place{dir: t.TempDir()}
	of := func(pid int, n int64) string { return filepath.Join(p.dir, fmt.Sprintf("%s%d-%d", groupName, pid, n)) }
	own, left := of(os.Getpid(), groups.Load()+1), of(gone.Process.Pid, 1)
	for _, dir := range []string{own, left, of(os.Getppid(), 1), filepath.Join(p.dir, "reconcile-1x-1")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if dir, err := p.folder(); err != nil || dir == own {
		t.Errorf("%s %v", dir, err)
	}
	p.sweep()
	if _, err := os.Stat(left); err == nil {
		t.Error("the group of a process that is gone is still there")
	}
	if all, _ := filepath.Glob(filepath.Join(p.dir, "*")); len(all) != 4 {
		t.Errorf("left are %q", all)
	}
}

func TestSettings(t *testing.T) {
	controllers, files := (&Bounds{Memory: 1 << 20, CPUs: 0.5, PIDs: 7}).settings()
	if !slices.Equal(controllers, []string{"memory", "cpu", "pids"}) {
		t.Errorf("controllers %q", controllers)
	}
	for _, want := range [][2]string{{"memory.max", "1048576"}, {"memory.oom.group", "1"}, {"cpu.max", "50000 100000"}, {"pids.max", "7"}} {
		if !slices.Contains(files, want) {
			t.Errorf("%q lacks %q", files, want)
		}
	}
}

// TestProcessLimit starts a program under the limit of a process: it has the limit, its arguments, and no other shell around it.
func TestProcessLimit(t *testing.T) {
	l := &Limit{By: schemas.LimitsByProcess, memory: 64 << 20}
	path, argv := l.Command("/bin/sh", []string{"sh", "-c", `ulimit -d; echo "$0" "$1" $$`, "a b", "$(x)"})
	cmd := exec.Command(path)
	cmd.Args = argv
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 2 || lines[0] != "65536" || !strings.HasPrefix(lines[1], "a b $(x) ") {
		t.Fatalf("%q %v", out, err)
	}
}

func TestOutOfMemory(t *testing.T) {
	process := &Limit{By: schemas.LimitsByProcess}
	for text, want := range map[string]bool{"MemoryError\n": true, "fatal error: runtime: out of memory": true, "sh: Cannot allocate memory": true,
		"bash: xrealloc: cannot allocate 134217728 bytes": true, "exit code 1": false} {
		if process.OutOfMemory(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	for code, want := range map[int]bool{139: true, 134: true, 1: false, 137: false} {
		if process.PerhapsOutOfMemory(code) != want || (&Limit{By: schemas.LimitsByGroup}).PerhapsOutOfMemory(code) {
			t.Errorf("exit code %d: %t", code, !want)
		}
	}
	group := &Limit{By: schemas.LimitsByGroup, group: t.TempDir()}
	for text, want := range map[string]bool{"low 0\noom 1\noom_kill 1\n": true, "low 0\noom 0\noom_kill 0\n": false} {
		if err := os.WriteFile(filepath.Join(group.group, "memory.events"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if group.OutOfMemory("MemoryError") != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	if (*Limit)(nil).OutOfMemory("MemoryError") || (&Limit{By: schemas.LimitsByNone}).OutOfMemory("MemoryError") {
		t.Error("without a limit a program had too much memory")
	}
}
