package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// supervisor is the parent of the first process of a run that nothing confines. It adopts what the programs of the run leave running, so
// that all of them have its environment among those of their ancestors until the run ends, and are ended with it. It is this program,
// with the arguments of [Main]. A nil one does nothing.
type supervisor struct {
	pid  int
	line *os.File // to it; it ends the rest of the run when the line is closed
	said *bufio.Reader
	gone bool
}

const (
	supervisorName = "supervise-run"
	lineFD         = 3 // of the supervisor
)

// spawnSupervised is spawn with a supervisor in between. Both have the same environment.
func spawnSupervised(path string, argv []string, dir string, env []string, files []*os.File, group *os.File) (*process, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "run")
	defer theirs.Close()
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		return nil, os.NewSyscallError("fcntl", err)
	}
	s := &supervisor{line: os.NewFile(uintptr(ends[0]), "supervisor")}
	s.said = bufio.NewReader(s.line)
	null, err := openNull()
	if err != nil {
		s.line.Close()
		return nil, err
	}
	defer null.Close()
	all := slices.Concat([]*os.File{null, null, null, theirs}, files)
	if group != nil {
		all = append(all, group)
	}
	p, err := spawn("/proc/self/exe", slices.Concat([]string{"reconcile", supervisorName, strconv.Itoa(len(files)), strconv.FormatBool(group != nil), path}, argv), dir, env, all, nil)
	if err != nil {
		s.line.Close()
		return nil, err
	}
	unix.Close(p.fd)
	theirs.Close()
	s.pid = p.pid
	p = newProcess()
	p.supervisor = s
	p.pid, err = s.number("started")
	if err != nil && !errors.Is(err, io.EOF) { // at the end of the line, somebody ended it: what it started is found by its marks
		p.release()
		return nil, err
	}
	return p, nil
}

// number reads the next message of the supervisor, which has to be this one with a number. An error of the system is returned as such.
func (s *supervisor) number(message string) (int, error) {
	text, err := s.said.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the supervisor of the run has ended: %w", err)
	}
	word, digits, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil, word != message && word != "failed":
		return 0, fmt.Errorf("the supervisor of the run said %q", text)
	case word == "failed":
		return 0, unix.Errno(n)
	}
	return n, nil
}

// await returns when the first process of the run has ended, or its supervisor has.
func (s *supervisor) await() { _, _ = s.number("ended") } // reap reports what is wrong

// reap has the supervisor reap the first process of the run. If somebody ended the supervisor, its end counts as that of the process.
func (s *supervisor) reap() (exitStatus, error) {
	_, _ = s.line.Write([]byte{'\n'}) // the answer shows whether it lives
	n, err := s.number("status")
	if err == nil {
		return exitStatus(n), nil
	}
	s.line.Close()
	ws, lost := wait4(s.pid)
	if s.gone = lost == nil; s.gone && ws.Signaled() {
		return ws, nil
	}
	return ws, errors.Join(err, lost)
}

// adopter is the process that adopts those of the run whose parents are gone; 0: none does.
func (p *process) adopter() int {
	if p.supervisor == nil || p.supervisor.gone {
		return 0
	}
	return p.supervisor.pid
}

// release ends what is left of the run.
func (p *process) release() {
	s := p.supervisor
	if s == nil || s.gone {
		return
	}
	s.line.Close()
	_, _ = wait4(s.pid) // it has nothing more to say
	s.gone = true
}

// Main returns if args are not those of a supervisor. Otherwise it is that program, and ends the process.
func Main(args []string) {
	if len(args) < 6 || args[1] != supervisorName {
		return
	}
	keepPrivate()
	n, err := strconv.Atoi(args[2])
	files, group := inheritedFiles(n, args[3] == "true")
	if err != nil || superviseRun(os.NewFile(lineFD, "run"), files, group, args[4], args[5:]) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// superviseRun starts the first process of a run, as spawn does, and tells the other end of the line about it. It returns when no process
// of the run is left.
func superviseRun(line *os.File, files []*os.File, group *os.File, path string, argv []string) error {
	err := AdoptOrphans()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT) // those that end it are for the run
	p, err := spawn(path, argv, "", os.Environ(), files, group)
	var errno unix.Errno
	switch {
	case errors.As(err, &errno):
		_, _ = fmt.Fprintln(line, "failed", int(errno))
		return err
	case err != nil:
		return err
	}
	for _, f := range files {
		f.Close()
	}
	_, _ = fmt.Fprintln(line, "started", p.pid) // the runner may have been killed: then this ends with the run
	go func() {
		for range signals {
			if !p.ended(unix.WNOHANG) { // else all of them are ended in a moment
				reapAdopted(p.pid)
			}
		}
	}()
	p.await()
	_, _ = fmt.Fprintln(line, "ended", p.pid)
	in := bufio.NewReader(line)
	_, _ = in.ReadByte()
	if ws, err := p.reap(); err == nil {
		_, _ = fmt.Fprintln(line, "status", uint32(ws))
	}
	_, _ = io.Copy(io.Discard, in)
	return EndOrphans()
}

// inheritedFiles returns the n descriptors that follow the line, and that of a control group behind them, if there is one.
func inheritedFiles(n int, grouped bool) (files []*os.File, group *os.File) {
	for fd := lineFD + 1; fd <= lineFD+n; fd++ {
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	if grouped {
		group = os.NewFile(uintptr(lineFD+1+n), "group")
	}
	return files, group
}

// reapAdopted reaps the children of this process that have ended, except one.
func reapAdopted(except int) {
	for _, child := range children() {
		if child != except {
			_, _ = unix.Wait4(child, nil, unix.WNOHANG, nil) // it may live
		}
	}
}
