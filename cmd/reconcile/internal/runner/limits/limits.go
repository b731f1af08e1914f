// Package limits bounds what the programs of a run use: by a control group of Linux (version 2), where one that this process may make
// has the controllers, else by limits of each process, else not at all.
package limits

import (
	"os"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Bounds are what the programs of a run may use together; 0 means unbounded.
type Bounds struct {
	Memory int64   // bytes
	CPUs   float64 // processors
	PIDs   int     // processes and threads
}

// Limit bounds the programs of one run. A nil Limit bounds nothing.
type Limit struct {
	// By is the mechanism, a LimitsBy constant of package schemas; Why names unbounded resources, and the cause.
	By, Why string
	memory  int64
	group   string   // the folder of the control group
	folder  *os.File // which is open
}

// Begin makes a limit. Close ends it.
func Begin(b Bounds) *Limit {
	l, err := newGroup(b)
	if err == nil {
		return l
	}
	var not []string
	for _, each := range []struct {
		name string
		set  bool
	}{{"memory", b.Memory > 0 && !perProcess()}, {"cpus", b.CPUs > 0}, {"pids", b.PIDs > 0}} {
		if each.set {
			not = append(not, each.name)
		}
	}
	l = &Limit{By: schemas.LimitsByNone}
	if b.Memory > 0 && perProcess() {
		l.By, l.memory = schemas.LimitsByProcess, b.Memory
		l.Why = "memory is limited for each process by itself"
	}
	if len(not) > 0 {
		if l.Why != "" {
			l.Why += ", "
		}
		l.Why += strings.Join(not, " and ") + " cannot be limited here"
	}
	l.Why += " (no control group: " + err.Error() + ")"
	return l
}

// shell is the program that sets the limit of a process before it becomes another program.
const shell = "/bin/sh"

// perProcess reports whether each process can have a limit of its memory.
func perProcess() bool {
	_, err := os.Stat(shell)
	return canLimitProcess && err == nil
}

// Command is the program to start in place of the one at path with argv.
func (l *Limit) Command(path string, argv []string) (string, []string) {
	if l == nil || l.By != schemas.LimitsByProcess {
		return path, argv
	}
	const script = `ulimit -d "$0" && exec "$@"`
	return shell, append([]string{"sh", "-c", script, strconv.FormatInt(max(l.memory/1024, 1), 10), path}, argv[1:]...)
}

// Group is the folder of the control group that the program has to start in; nil for none.
func (l *Limit) Group() *os.File {
	if l == nil {
		return nil
	}
	return l.folder
}

// signs are what programs print that get no more memory.
var signs = []string{"out of memory", "cannot allocate", "memoryerror", "bad_alloc", "memory exhausted", "outofmemoryerror",
	"allocation failed", "not enough memory"}

// OutOfMemory reports whether a program that failed, and printed output, had no more memory. Of a control group the system says so; a
// process on its own only gets an error of the system, and its output is the sign of it.
func (l *Limit) OutOfMemory(output string) bool {
	switch {
	case l == nil:
		return false
	case l.group != "":
		return l.killed()
	case l.By != schemas.LimitsByProcess:
		return false
	}
	output = strings.ToLower(output)
	for _, s := range signs {
		if strings.Contains(output, s) {
			return true
		}
	}
	return false
}

// PerhapsOutOfMemory reports whether a program that ended with an exit code may have crashed since it had no more memory: one that does
// not look whether the system gave it some ends by a signal, and prints nothing.
func (l *Limit) PerhapsOutOfMemory(exitCode int) bool {
	const aborted, bus, segment = 128 + 6, 128 + 7, 128 + 11 // by SIGABRT, SIGBUS and SIGSEGV of Linux
	return l != nil && l.By == schemas.LimitsByProcess && (exitCode == aborted || exitCode == bus || exitCode == segment)
}

// Describe tries out what bounds the programs of runs here, and says so.
func Describe() (by, why string) {
	l := Begin(Bounds{Memory: 1 << 30, CPUs: 1, PIDs: 1000})
	defer l.Close()
	return l.By, l.Why
}
