package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// command is a program to start.
type command struct {
	path  string // of the program
	argv  []string
	dir   string // absolute
	env   []string
	stdin string
}

func (a *attempt) workingDir() (string, error) {
	if a.task.Dir == "" || a.task.Dir == "." {
		return a.place.dir, nil
	}
	fi, err := a.place.root.Stat(a.task.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("workingDir %s does not exist", a.task.Dir)
	case err != nil:
		return "", fmt.Errorf("workingDir: %w", err)
	case !fi.IsDir():
		return "", fmt.Errorf("workingDir %s is not a folder", a.task.Dir)
	}
	return a.place.absolute(a.task.Dir), nil
}

// foundPrograms remembers where programs were found, for a short time: a search takes a call for each folder of the PATH.
type foundPrograms struct {
	mu    sync.Mutex
	since time.Time
	paths map[[3]string]string // by name, folder and PATH
}

// find is findProgram, but may return a result that is up to a second old.
func (f *foundPrograms) find(name, dir, searchPath string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.paths == nil || now.Sub(f.since) > time.Second {
		f.since, f.paths = now, map[[3]string]string{}
	}
	key := [3]string{name, dir, searchPath}
	if p := f.paths[key]; p != "" && runnable(p) {
		return p, nil
	}
	p, err := findProgram(name, dir, searchPath)
	if err == nil {
		f.paths[key] = p
	}
	return p, err
}

func runnable(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// start starts the command; its descriptors are stdin, stdout, stderr and the lease.
func (a *attempt) start(out *output) (*process, error) {
	in, err := a.openInput()
	if err != nil {
		return nil, asFault(err)
	}
	if in != a.runner.null {
		defer in.Close()
	}
	files := []*os.File{in, out.stdout, out.stderr, a.lease.file}
	path, argv := a.bound.Command(a.command.path, a.command.argv)
	if a.policy != nil {
		return a.startConfined(path, argv, files)
	}
	p, err := a.spawn(path, argv, files)
	if err == nil {
		a.lease.handOver()
	}
	return p, err
}

// spawn starts the command in its folder, environment and control group, and under a supervisor if an agent, or what it wrote and a
// landing checks, could act as a person.
func (a *attempt) spawn(path string, argv []string, files []*os.File) (*process, error) {
	start, ofAgent := spawn, a.isAgent() || a.task.Workspace != nil && a.task.Workspace.Kind == settle.CheckWorkspace
	if ofAgent && (a.policy == nil || a.exposed) && a.runner.o.Sandbox != nil {
		start = a.runner.supervisors.spawn
	}
	return start(path, argv, a.command.dir, a.command.env, files, a.bound.Group())
}

// pipeRoom is the minimum capacity of a pipe on every system.
const pipeRoom = 4096

// openInput opens the command's stdin.
func (a *attempt) openInput() (*os.File, error) {
	if a.talk != nil {
		r, w, err := os.Pipe()
		a.input = w
		return r, err
	}
	text := a.command.stdin
	if text == "" {
		return a.runner.null, nil
	}
	if len(text) <= pipeRoom {
		r, w, err := newInput()
		if err != nil {
			return nil, err
		}
		defer w.Close()
		_, err = w.WriteString(text)
		return r, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	a.input = w
	a.runner.workers.Go(func() {
		w.WriteString(text) //nolint:errcheck // the command need not read it
		w.Close()
	})
	return r, nil
}

// explainStart returns why an existing program could not be started.
func (a *attempt) explainStart(err error) error {
	program := a.task.Argv[0]
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("program %q cannot be run: it is no program for this machine, and no script with #! in its "+
			"first line", program)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("program %q: the arguments and the environment are too long; hand large values over in files",
			program)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("program %q may not be run: make it executable (chmod +x)", program)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("program %q does not exist, or the interpreter in its first line does not", program)
	}
	return fmt.Errorf("start %q: %w", program, err)
}

// execute starts the command, supervises it, and returns when its whole tree and its output have ended.
func (a *attempt) execute(b *buffers) (exit, error) {
	switch {
	case a.delivery != nil:
		return a.delivery.execute(), nil
	case a.dialogue != nil:
		return a.dialogue.execute()
	}
	limit := a.limit()
	if limit != nil && limit.after <= 0 {
		return exit{stopped: &limit.cause}, nil
	}
	if a.task.Profile != nil {
		a.reader = profiles.NewReader(a.task.Profile)
	}
	a.heard.Store(time.Now().UnixNano())
	out, err := a.openOutput(b)
	if err != nil {
		return exit{}, asFault(err)
	}
	a.job.awaitTurn()
	p, err := a.start(out)
	if err != nil {
		out.abandon()
		a.talk.abandon()
		return exit{}, a.explainStart(err)
	}
	a.record.StartedAt = schemas.NewTime(a.runner.reportStart(a.job, p.pid))
	out.pump(a.sink)
	if a.talk != nil {
		a.talk.begin()
	}
	end := a.supervise(p, limit)
	if a.input != nil {
		a.input.Close() // a remaining reader does not belong to the run
	}
	out.finish()
	if a.talk != nil {
		a.talk.finish()
	}
	if err := a.executed(end); err != nil {
		return exit{}, a.explainStart(err)
	}
	return end, nil
}

// supervise waits for the end of the command, or stops it, and then ends its tree.
func (a *attempt) supervise(p *process, l *limit) exit {
	ended := make(chan struct{})
	go func() {
		p.await()
		close(ended)
	}()
	var end exit
	began := time.Now()
	end.stopped = a.waitOrStop(ended, l)
	kill := time.Now().Add(a.runner.grace())
	if a.talk != nil && a.talk.hangUp(ended, end.stopped) {
		kill = time.Now().Add(a.runner.grace())
	}
	defer p.release()
	t := &tree{pid: p.pid, adopter: p.adopter(), marks: a.runner.marks, key: a.job.effect.Key, lease: a.lease}
	h := a.runner.newHunt(t)
	if end.stopped != nil || !isClosed(ended) {
		if end.stuck = h.stopFirst(p.pid, ended, a.job.hurry, kill); end.stuck != nil {
			return end
		}
	}
	t.reaped = startingNow()
	end.status, end.lost = p.reap()
	t.adopter = p.adopter()
	quick := end.stopped == nil && len(h.signalled) == 0 && time.Since(began) < quickRun
	if free, err := a.lease.free(); free && err == nil && quick && !t.groupLives() {
		return end
	}
	end.stuck = h.finish(a.job.hurry, kill)
	end.left = len(h.signalled)
	return end
}

// waitOrStop returns nil if the command, or the turn of an agent, has ended on its own, else the reason to stop it.
func (a *attempt) waitOrStop(ended <-chan struct{}, l *limit) *cause {
	var late <-chan time.Time
	var timer *time.Timer
	if l != nil {
		timer = time.NewTimer(l.after)
		defer timer.Stop()
		late = timer.C
	}
	var granted time.Duration // beyond the limit, for waiting
	over := ended
	if a.talk != nil {
		over = a.talk.over(ended)
	}
	var silent <-chan time.Time
	if a.task.Silence > 0 {
		tick := time.NewTicker(max(a.task.Silence/4, time.Millisecond))
		defer tick.Stop()
		silent = tick.C
	}
	var c cause
wait:
	for {
		select {
		case <-over:
			return nil
		case c = <-a.job.stop:
			break wait
		case <-late:
			if more := a.talk.waitedForPeople() - granted; l.work && more > 0 {
				granted += more
				timer.Reset(more)
				continue
			}
			c = l.cause
			break wait
		case why := <-a.spent:
			c = cause{outcome: schemas.OutcomeFailed, spent: why}
			break wait
		case now := <-silent:
			if a.isSilent(now) {
				c = cause{outcome: schemas.OutcomeFailed, silent: a.task.Silence}
				break wait
			}
		}
	}
	if isClosed(over) { // in the meantime
		return nil
	}
	return &c
}
