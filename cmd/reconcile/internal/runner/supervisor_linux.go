package runner

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// supervisor is the parent of the first process of a run that nothing confines. It adopts what the programs of the run leave running, so
// that all of them have its environment among those of their ancestors until the run ends, and are ended with it. Then it serves another
// run. It is this program, with the arguments of [Main]. A nil one does nothing.
type supervisor struct {
	pid    int
	home   *supervisors
	line   *os.File // to it; it ends the rest of the run, and itself, when the line is closed
	said   *bufio.Reader
	room   int  // for its environment, in bytes
	served bool // an order
	reaped bool // the first process of the run: nobody else reads the line
	gone   bool
}

// supervisors are those of a runner that serve no run now. To start one takes ten times as long as to have one serve the next run.
type supervisors struct {
	mu     sync.Mutex
	idle   []*supervisor
	closed bool
}

// order is what a supervisor starts. The files of the process and its control group, if there is one, come before it.
type order struct {
	Path      string
	Argv, Env []string
	Dir       string
	Grouped   bool
}

const (
	supervisorName = "supervise-run"
	lineFD         = 3 // of the supervisor
	maxIdle        = 8 // supervisors
)

// spawn is [spawn] with a supervisor in between, whose environment has the marks of the other one.
func (all *supervisors) spawn(path string, argv []string, dir string, env []string, files []*os.File, group *os.File) (*process, error) {
	given := slices.Clip(files)
	if group != nil {
		given = append(given, group)
	}
	o := order{path, argv, env, dir, group != nil}
	for {
		s, err := all.take(env)
		if err != nil {
			return nil, err
		}
		sent := s.send(o, given)
		p := newProcess()
		p.supervisor = s
		p.pid, err = s.number("started")
		unread := !sent || errors.Is(err, unix.ECONNRESET)
		switch {
		case unread && s.served: // somebody ended it while it served no run
			_, _ = s.end()
			continue
		case err != nil && !unread && !errors.Is(err, io.EOF):
			p.release()
			return nil, err
		}
		s.served = true
		return p, nil // somebody may have ended it: what it started is found by its marks
	}
}

// take returns a supervisor that has room for the marks in env, else a new one that has this environment.
func (all *supervisors) take(env []string) (*supervisor, error) {
	all.mu.Lock()
	need := len(marksIn(env))
	i := slices.IndexFunc(all.idle, func(s *supervisor) bool { return s.room >= need })
	if i < 0 {
		all.mu.Unlock()
		return all.hire(env)
	}
	defer all.mu.Unlock()
	s := all.idle[i]
	all.idle = slices.Delete(all.idle, i, i+1)
	return s, nil
}

// keep keeps a supervisor for a later run, if few are kept.
func (all *supervisors) keep(s *supervisor) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed || len(all.idle) >= maxIdle {
		return false
	}
	all.idle = append(all.idle, s)
	return true
}

// close ends those that serve no run, also in future.
func (all *supervisors) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	for _, s := range all.idle {
		s.line.Close() // so that they end at once
	}
	for _, s := range all.idle {
		_, _ = s.end()
	}
	all.idle = nil
}

// hire starts a supervisor with an environment.
func (all *supervisors) hire(env []string) (*supervisor, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "runs")
	defer theirs.Close()
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		return nil, os.NewSyscallError("fcntl", err)
	}
	s := &supervisor{home: all, line: os.NewFile(uintptr(ends[0]), "supervisor"), room: len(joined(env))}
	s.said = bufio.NewReader(s.line)
	null, err := openNull()
	if err != nil {
		s.line.Close()
		return nil, err
	}
	defer null.Close()
	p, err := spawn("/proc/self/exe", []string{"reconcile", supervisorName}, "/", env, []*os.File{null, null, null, theirs}, nil)
	if err != nil {
		s.line.Close()
		return nil, err
	}
	unix.Close(p.fd)
	s.pid = p.pid
	return s, nil
}

// send has the supervisor start a process; false if it had ended before.
func (s *supervisor) send(o order, files []*os.File) bool {
	s.reaped = false
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	defer runtime.KeepAlive(files)
	raw, err := s.line.SyscallConn()
	if err != nil {
		return false
	}
	sent := raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), []byte{'\n'}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN)
	})
	if err != nil || sent != nil {
		return false
	}
	_ = gob.NewEncoder(s.line).Encode(o) // the answer shows whether it arrived
	return true
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
	if s.reaped = err == nil; s.reaped {
		return exitStatus(n), nil
	}
	ws, lost := s.end()
	if s.gone && ws.Signaled() {
		return ws, nil
	}
	return ws, errors.Join(err, lost)
}

// end ends the supervisor, and what is left of its run.
func (s *supervisor) end() (exitStatus, error) {
	s.line.Close()
	ws, err := wait4(s.pid)
	s.gone = err == nil
	return ws, err
}

// adopter is the process that adopts those of the run whose parents are gone; 0: none does.
func (p *process) adopter() int {
	if p.supervisor == nil || p.supervisor.gone {
		return 0
	}
	return p.supervisor.pid
}

// release ends what is left of the run. The process is not used again.
func (p *process) release() {
	s := p.supervisor
	if s == nil || s.gone {
		return
	}
	if s.reaped {
		_, _ = s.line.Write([]byte{'\n'})
		if _, err := s.number("free"); err == nil && s.home.keep(s) {
			return
		}
	}
	_, _ = s.end() // it has nothing more to say
}

// Main returns if args are not those of a supervisor. Otherwise it is that program, and ends the process.
func Main(args []string) {
	if len(args) != 2 || args[1] != supervisorName {
		return
	}
	keepPrivate()
	if superviseRuns(os.NewFile(lineFD, "runs")) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// supervising is what a supervisor knows.
type supervising struct {
	line *os.File
	in   *bufio.Reader // from line
	mu   sync.Mutex    // held while first changes
	// first is the first process of the run; nil: none is served, or it was reaped.
	first *process
}

// superviseRuns serves runs until the other end of the line is closed. It returns when no process of them is left.
func superviseRuns(line *os.File) error {
	if err := AdoptOrphans(); err != nil {
		return err
	}
	s := &supervising{line: line, in: bufio.NewReader(line)}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT) // those that end it are for the run
	go func() {
		for range signals {
			s.reapOrphans()
		}
	}()
	for run := 0; ; run++ {
		o, files, err := receiveOrder(line, s.in)
		if err != nil {
			return nil // the runner has ended, or has no more runs
		}
		if run > 0 {
			err = showEnviron(marksIn(o.Env))
		}
		if err == nil {
			err = s.serve(o, files)
		}
		if err == nil {
			err = showEnviron(nil)
		}
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(line, "free", 0)
	}
}

// serve starts the first process of a run, as spawn does, and tells the other end of the line about it. It returns when no process of the
// run is left.
func (s *supervising) serve(o order, files []*os.File) error {
	err := s.start(o, files)
	var errno unix.Errno
	switch {
	case errors.As(err, &errno):
		_, _ = fmt.Fprintln(s.line, "failed", int(errno))
		return err
	case err != nil:
		return err
	}
	_, _ = fmt.Fprintln(s.line, "started", s.first.pid) // the runner may have been killed: then this ends with the run
	s.first.await()
	_, _ = fmt.Fprintln(s.line, "ended", s.first.pid)
	_, _ = s.in.ReadByte()
	if ws, err := s.reap(); err == nil {
		_, _ = fmt.Fprintln(s.line, "status", uint32(ws))
	}
	_, _ = s.in.ReadByte()
	return EndOrphans()
}

// start starts the first process, and closes the files.
func (s *supervising) start(o order, files []*os.File) (err error) {
	s.mu.Lock() // else its end could be taken for that of an orphan
	defer s.mu.Unlock()
	rest, group := files, (*os.File)(nil)
	if last := len(files) - 1; o.Grouped {
		rest, group = files[:last], files[last]
	}
	s.first, err = spawn(o.Path, o.Argv, o.Dir, o.Env, rest, group)
	for _, f := range files {
		f.Close()
	}
	return err
}

func (s *supervising) reap() (exitStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.first
	s.first = nil
	return p.reap()
}

// reapOrphans reaps the adopted processes that have ended, while the first process lives: after it all of them are ended.
func (s *supervising) reapOrphans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil || s.first.ended(unix.WNOHANG) {
		return
	}
	for _, child := range children() {
		if child != s.first.pid {
			_, _ = unix.Wait4(child, nil, unix.WNOHANG, nil) // it may live
		}
	}
}

// receiveOrder reads an order and its files from the line, of which in has read nothing ahead.
func receiveOrder(line *os.File, in *bufio.Reader) (o order, files []*os.File, err error) {
	one, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(16*4))
	var n, size int
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		n, size, _, _, err = unix.Recvmsg(int(line.Fd()), one, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil || n == 0 {
		return o, nil, cmp.Or(err, io.EOF)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "given"))
		}
	}
	return o, files, errors.Join(err, gob.NewDecoder(in).Decode(&o))
}

// marksIn are the variables in env that [InsideRun] reads, as the system shows them.
func marksIn(env []string) []byte {
	return joined(slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(MarkVariables, name)
	}))
}

func joined(env []string) []byte { return []byte(strings.Join(env, "\x00") + "\x00") }

// showEnviron has the system show another initial environment of this process, which is not larger.
func showEnviron(environ []byte) error {
	fields := bytes.Fields(readProc(os.Getpid(), "stat"))
	if len(fields) < 51 {
		return errors.New("the place of the environment is not known")
	}
	from, err := strconv.ParseInt(string(fields[49]), 10, 64)
	to, err2 := strconv.ParseInt(string(fields[50]), 10, 64)
	if err = errors.Join(err, err2); err != nil || int64(len(environ)) > to-from {
		return errors.Join(err, errors.New("the environment is too large"))
	}
	mem, err := unix.Open("/proc/self/mem", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(mem)
	all := make([]byte, to-from)
	copy(all, environ)
	n, err := unix.Pwrite(mem, all, from)
	if err == nil && n < len(all) {
		err = io.ErrShortWrite
	}
	return err
}
