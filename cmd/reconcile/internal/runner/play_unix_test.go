//go:build unix

package runner

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp/acptest"
	"reconcile.dev/reconcile/controllers/settle"
)

// pipe is a named pipe in a rig's tree, through which commands and the test wait for each other.
type pipe struct {
	t    testing.TB
	file *os.File
	in   *bufio.Reader
}

func (g *rig) fifo(name string) *pipe {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := unix.Mkfifo(path, 0o644); err != nil {
		g.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // both ends, so that nobody waits for the other to open
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { f.Close() })
	return &pipe{t: g.t, file: f, in: bufio.NewReader(f)}
}

// release lets one command go on that reads a line from the pipe.
func (p *pipe) release() {
	p.t.Helper()
	if _, err := p.file.WriteString("go\n"); err != nil {
		p.t.Fatal(err)
	}
}

// number reads one number that a command wrote into the pipe.
func (p *pipe) number() int {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// quickExit keeps the race detector from waiting a second at the end of each process.
const quickExit = "GORACE=atexit_sleep_ms=0"

// actor is an effect in which this test binary plays a role.
func actor(args ...string) settle.Effect {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	e := effect(theKey, append([]string{exe, "play"}, args...)...)
	e.Command().Env = []string{quickExit}
	return e
}

// play is what the test binary does as a command.
func play(role string, args []string) {
	switch role {
	case "tree":
		playTree(args)
	case "runner":
		playRunner(args)
	case "agent":
		os.Exit(acptest.Main(args, os.Stdin, os.Stdout))
	default:
		panic(role)
	}
}

// playTree is one process of a tree. The first of args is its traits, joined by +, the rest is the process that it
// starts, and so on. Each but a forker tells its number through the pipe "pids" and then waits for ever:
//
//	polite    ends at SIGTERM, as most programs do
//	stubborn  ignores SIGTERM
//	exits     ends, with success, when the pipe "gate" lets it
//	forker    ends as soon as it has started the next, which becomes an orphan
//	session   is in a session of its own
//	nolease   has no descriptor of the lease
//	noenv     has an empty environment
func playTree(args []string) {
	traits := strings.Split(args[0], "+")
	if slices.Contains(traits, "stubborn") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	}
	if len(args) > 1 {
		startPlayer(args[1:])
	}
	if slices.Contains(traits, "forker") {
		return
	}
	pids, err := os.OpenFile("pids", os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(pids, os.Getpid())
	if slices.Contains(traits, "exits") {
		gate, _ := os.Open("gate")
		bufio.NewReader(gate).ReadString('\n')
		return
	}
	for {
		time.Sleep(time.Hour)
	}
}

// startPlayer starts the next process of a tree, and waits for it if it is a forker.
func startPlayer(next []string) {
	traits := strings.Split(next[0], "+")
	cmd := exec.Command(os.Args[0], append([]string{"play", "tree"}, next...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: slices.Contains(traits, "session")}
	if slices.Contains(traits, "nolease") {
		unix.CloseOnExec(3)
	}
	if slices.Contains(traits, "noenv") {
		cmd.Env = []string{}
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if slices.Contains(traits, "forker") {
		cmd.Wait() //nolint:errcheck // it has gone
	}
}

// playRunner is a runner on the tree in args[0] that runs the rest of args, under the key in args[1], until it is
// killed.
func playRunner(args []string) {
	r, err := New(Options{Root: args[0]})
	if err != nil {
		panic(err)
	}
	e := effect(args[1], args[2:]...)
	e.Command().Env = []string{quickExit}
	r.Submit(e)
	for {
		<-r.Notify()
		r.Drain()
	}
}
