package acptest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gofrs/flock"
)

// Blow ends a process of a test once, at one of the messages of an agent.
type Blow struct {
	Kill string // WHO:N kills self, parent or reconcile at the N-th message; "" nobody
	Once string // only if this file does not exist; it does afterwards

	messages atomic.Int64
}

// Strike counts a message, and kills at the one that Kill names. An agent that kills itself does not return.
func (b *Blow) Strike() {
	who, n, _ := strings.Cut(b.Kill, ":")
	if strconv.FormatInt(b.messages.Add(1), 10) != n {
		return
	}
	f, err := os.OpenFile(b.Once, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return
	}
	must(f.Close())
	pid := os.Getpid()
	if who != "self" {
		pid = os.Getppid()
	}
	if who == "reconcile" {
		pid = supervised(pid)
	}
	p, err := os.FindProcess(pid)
	must(err)
	must(p.Kill())
	if who == "self" {
		select {}
	}
}

// supervised is the parent of a supervisor of a run; another process is returned as it is.
func supervised(pid int) int {
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(words), "\x00supervise-run\x00") {
		return pid
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(err)
	_, fields, _ := strings.Cut(string(stat), ") ") // the name of the program is before it
	parent, err := strconv.Atoi(strings.Fields(fields)[1])
	must(err)
	return parent
}

// Alone locks a file for as long as this process lives. If another process does, it appends a line to the file name.two.
func Alone(name string) {
	lock := flock.New(name)
	free, err := lock.TryLock()
	must(err)
	if !free {
		appendTo(name+".two", fmt.Sprintln(os.Getpid()))
	}
}
