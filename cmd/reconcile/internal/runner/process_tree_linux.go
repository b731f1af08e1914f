package runner

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// member is a live process of a run, from /proc.
type member struct {
	pid, parent, group, session int
	started                     string // clock ticks since boot; unique together with pid
	chain                       string // of chainOf; "" where it was not asked for
}

// inGroup reports whether the process is in the group or session of leader pid.
func (m member) inGroup(pid int) bool { return m.group == pid || m.session == pid }

// olderThan reports whether the process was started before the other one, whose start may be unknown: then it was not.
func (m member) olderThan(other member) bool {
	return cmp.Or(cmp.Compare(len(m.started), len(other.started)), cmp.Compare(m.started, other.started)) < 0
}

// orphanGroup is 0: orphans are found by their marks and leases, their group's number may be reused by now.
func orphanGroup(int) int { return 0 }

// signal signals the process, if it is still the same one.
func (m member) signal(force bool) {
	send := func(sig unix.Signal) error { return unix.Kill(m.pid, sig) }
	if fd, err := unix.PidfdOpen(m.pid, 0); err == nil {
		defer unix.Close(fd)
		send = func(sig unix.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }
	} else if !errors.Is(err, unix.ENOSYS) {
		return // it is gone, or this process has no descriptor left; the next look finds whoever still lives
	}
	if now, ok := readMember(m.pid); ok && now.started == m.started {
		for _, sig := range signalsOf(force) {
			send(sig) //nolint:errcheck // whoever still lives is found by the next look
		}
	}
}

// members lists the live processes of the hunted trees: those of the first process's group and session, those with the
// mark, those met before, and the descendants of all these.
func members(h *hunt) []member {
	all := h.runner.roster.look()
	h.forgetReused(all)
	found := family(all, func(m member) bool {
		if h.met[m.pid] == m.started {
			return true
		}
		for _, t := range h.trees {
			if t.adopter != 0 && m.parent == t.adopter || t.pid != 0 && m.chain == "" && m.inGroup(t.pid) || t.marks.ofRun(m.chain, t.key) {
				return true
			}
		}
		return false
	})
	found = slices.DeleteFunc(found, func(m member) bool {
		return slices.ContainsFunc(h.trees, func(t *tree) bool { return m.pid == t.adopter })
	})
	for _, m := range found {
		h.met[m.pid] = m.started
	}
	return found
}

// forgetReused forgets the groups whose numbers may have been reused. A process that was met, or that had started before the first
// process of its group was reaped, keeps the number from that.
func (h *hunt) forgetReused(all []member) {
	for _, t := range h.trees {
		if t.reaped != (member{}) && !slices.ContainsFunc(all, func(m member) bool {
			return m.inGroup(t.pid) && (h.met[m.pid] == m.started || !t.reaped.olderThan(m))
		}) {
			t.pid = 0
		}
	}
}

// startingNow represents a process that starts now.
func startingNow() member {
	const ticks = 100 // a second, on each system
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return member{started: "0"}
	}
	return member{started: strconv.FormatInt(now.Nano()/(int64(time.Second)/ticks), 10)}
}

// ownedBy lists the live processes that a runner of this process started, and their descendants. None of them is older than this process.
// Those that were met before, by number, with their start times, stay in the list until they are gone: a process that ends loses its
// environment first.
func ownedBy(ms marks, met map[int]string) []member {
	self, _ := readMember(os.Getpid())
	young := slices.DeleteFunc(processes(), func(m member) bool { return m.olderThan(self) })
	owned := family(marked(young), func(m member) bool { return met[m.pid] == m.started || ms.ofRunner(m.chain) })
	for _, m := range owned {
		met[m.pid] = m.started
	}
	return owned
}

// family returns the processes that belong, and their descendants, except this process.
func family(all []member, belongs func(m member) bool) []member {
	in := map[int]bool{}
	self := os.Getpid()
	for _, m := range all {
		if m.pid != self && belongs(m) {
			in[m.pid] = true
		}
	}
	if len(in) == 0 {
		return nil
	}
	for grown := true; grown; {
		grown = false
		for _, m := range all {
			if !in[m.pid] && in[m.parent] && m.pid != self {
				in[m.pid], grown = true, true
			}
		}
	}
	var out []member
	for _, m := range all {
		if in[m.pid] {
			out = append(out, m)
		}
	}
	return out
}

// processes lists all live processes; zombies are not.
func processes() []member {
	var out []member
	for _, pid := range numbers("/proc") {
		if m, ok := readMember(pid); ok {
			out = append(out, m)
		}
	}
	return out
}

// numbers lists the entries of a folder whose names are numbers.
func numbers(dir string) []int {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // a partial list counts
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// readMember reads /proc/<pid>/stat: pid (comm) state ppid pgrp session …, starttime is the 22nd field. comm may hold
// spaces and parentheses.
func readMember(pid int) (member, bool) {
	b := readProc(pid, "stat")
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return member{}, false
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return member{}, false
	}
	m := member{pid: pid, started: string(f[19])}
	var err error
	for i, to := range []*int{&m.parent, &m.group, &m.session} {
		if *to, err = strconv.Atoi(string(f[i+1])); err != nil {
			return member{}, false
		}
	}
	return m, true
}

// chainOf returns the chain in a process's environment; "" if it has none, or is not readable.
func chainOf(pid int) string {
	for kv := range bytes.SplitSeq(environOf(pid), []byte{0}) {
		if chain, ok := bytes.CutPrefix(kv, []byte(chainVar+"=")); ok {
			return string(chain)
		}
	}
	return ""
}

// environOf returns the initial environment of a process, each variable ended by a zero byte; empty if it is not readable.
func environOf(pid int) []byte { return readProc(pid, "environ") }

// readProc returns the readable part of a file of /proc about a process, at most 4 MiB: no environment is larger. It makes a third of the
// calls of [os.ReadFile]; hundreds of these files are read in a row.
func readProc(pid int, name string) []byte {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 2048)
	for len(b) < 4<<20 {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			break
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
	}
	return b
}

// Ancestry yields the initial environments of this process's ancestors, its parent's first.
func Ancestry(yield func(environ []string) bool) {
	const most = 1000 // deeper than any tree of processes
	pid := os.Getppid()
	for range most {
		m, alive := readMember(pid)
		if !alive || !yield(strings.Split(string(environOf(pid)), "\x00")) {
			return
		}
		if pid = m.parent; pid < 1 {
			return
		}
	}
}

// holders lists the processes of commands, which hold the leases of the trees of processes, except runners: they hold the lease through a
// close-on-exec descriptor, their commands through another one. The hunt has met them then: one that ends closes its lease before it
// is gone.
func holders(h *hunt, trees []*tree) []member {
	if len(trees) == 0 {
		return nil
	}
	var out []member
	for _, m := range processes() {
		if m.pid != os.Getpid() && holdsAny(m.pid, trees) {
			h.met[m.pid] = m.started
			out = append(out, m)
		}
	}
	return out
}

func holdsAny(pid int, trees []*tree) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fdinfo"
	for _, fd := range numbers(dir) {
		info := readProc(pid, "fdinfo/"+strconv.Itoa(fd))
		if !bytes.Contains(info, []byte("OFDLCK")) || closedOnExec(info) {
			continue
		}
		for _, t := range trees {
			if t.lease.shownIn(info) {
				return true
			}
		}
	}
	return false
}

// closedOnExec reads the line "flags: 02100002" (octal) of a descriptor's info.
func closedOnExec(info []byte) bool {
	_, rest, _ := bytes.Cut(info, []byte("flags:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	flags, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 8, 64)
	return err == nil && flags&unix.O_CLOEXEC != 0
}
