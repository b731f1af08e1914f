package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// broker runs commands of this program for a confined run, outside of its sandbox: a question to another agent, say, writes a file
// into the tree. The commands run as part of the run, and the program allows only some of them there ([BrokerVar]).
//
// A message is one packet of a Unix socket: the request with the caller's standard streams, then the exit code.
type broker struct {
	a      *attempt
	name   string // the path of the socket
	l      *net.UnixListener
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	places chan struct{} // one for each command that runs
}

// Limits of a broker.
const (
	brokerPlaces  = 4
	brokerMessage = 128 << 10
)

// brokerRequest is a command: its arguments, and its folder.
type brokerRequest struct {
	Args []string
	Dir  string
}

func (a *attempt) openBroker(path string) (*broker, error) {
	address, dir, err := socketAddress(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unixpacket", address)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it goes with its folder
	b := &broker{a: a, name: path, l: l, places: make(chan struct{}, brokerPlaces)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.wg.Go(b.serve)
	return b, nil
}

func (b *broker) path() string { return b.name }

// socketAddress is the address of a socket in a folder whose path may be longer than the 107 bytes of an address: it names the open
// folder, which is valid as long as the caller keeps it open.
func socketAddress(path string) (*net.UnixAddr, *os.File, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	name := fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path))
	return &net.UnixAddr{Name: name, Net: "unixpacket"}, os.NewFile(uintptr(fd), filepath.Dir(path)), nil
}

// close ends the commands that still run.
func (b *broker) close() {
	b.cancel()
	b.l.Close()
	b.wg.Wait()
}

func (b *broker) serve() {
	for {
		c, err := b.l.AcceptUnix()
		if err != nil {
			return
		}
		select {
		case b.places <- struct{}{}:
		case <-b.ctx.Done():
			c.Close()
			return
		}
		b.wg.Go(func() {
			defer func() { <-b.places }()
			defer c.Close()
			b.answer(c)
		})
	}
}

// answer runs one command. It ends when the caller hangs up.
func (b *broker) answer(c *net.UnixConn) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	q, streams, err := receive(c)
	defer func() {
		for _, f := range streams {
			f.Close()
		}
	}()
	if err != nil {
		return
	}
	go func() {
		_, _ = c.Read(make([]byte, 1)) // until the caller is gone
		cancel()
	}()
	code := b.a.runForAgent(ctx, q, streams)
	_, _ = c.Write([]byte{byte(code)}) // the caller may be gone
}

// receive reads a request and the caller's three standard streams.
func receive(c *net.UnixConn) (q brokerRequest, streams []*os.File, err error) {
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return q, nil, err
	}
	data, rights := make([]byte, brokerMessage), make([]byte, syscall.CmsgSpace(8*4))
	n, m, _, _, err := c.ReadMsgUnix(data, rights)
	if err != nil {
		return q, nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return q, nil, err
	}
	for _, msg := range messages {
		fds, err := syscall.ParseUnixRights(&msg)
		if err != nil {
			return q, streams, err
		}
		for _, fd := range fds {
			streams = append(streams, os.NewFile(uintptr(fd), "stream"))
		}
	}
	if len(streams) != 3 {
		return q, streams, errors.New("a request has three streams")
	}
	return q, streams, errors.Join(json.Unmarshal(data[:n], &q), c.SetReadDeadline(time.Time{}))
}

// runForAgent runs a command of this program as part of the run, and returns its exit code.
func (a *attempt) runForAgent(ctx context.Context, q brokerRequest, streams []*os.File) int {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{"reconcile"}, q.Args...)
	cmd.Dir = a.place.dir
	if real, err := realPath(q.Dir); err == nil && a.place.ws != nil && within(a.place.ws.Top(), real) {
		cmd.Dir = real
	}
	cmd.Env = slices.DeleteFunc(slices.Clone(a.command.env), func(kv string) bool {
		return strings.HasPrefix(kv, HostVar+"=") || strings.HasPrefix(kv, "TMPDIR=") || strings.HasPrefix(kv, "XDG_CACHE_HOME=")
	})
	cmd.Env = append(cmd.Env, BrokerVar+"="+a.job.effect.Key)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = streams[0], streams[1], streams[2], []*os.File{a.lease.file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = max(a.runner.grace(), time.Millisecond) // 0 would be for ever
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode()
	}
	if err != nil {
		return 1
	}
	return 0
}

// AskHost has the process that runs this run do a command of this program, with this process's standard streams, and returns its exit
// code. host is the value of HostVar.
func AskHost(host string, args []string, streams [3]*os.File) (int, error) {
	address, folder, err := socketAddress(host)
	if err != nil {
		return 0, err
	}
	defer folder.Close()
	c, err := net.DialUnix("unixpacket", nil, address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	data, err := json.Marshal(brokerRequest{args, dir})
	if err != nil {
		return 0, err
	}
	if len(data) > brokerMessage {
		return 0, errors.New("the arguments are too long; hand long texts over on standard input")
	}
	if _, _, err := c.WriteMsgUnix(data, syscall.UnixRights(int(streams[0].Fd()), int(streams[1].Fd()), int(streams[2].Fd())), nil); err != nil {
		return 0, err
	}
	var code [1]byte
	if _, err := io.ReadFull(c, code[:]); err != nil {
		return 0, err
	}
	return int(code[0]), nil
}
