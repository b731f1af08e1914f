package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

const (
	readSize  = 32 << 10 // bytes read at once
	firstRead = 2 << 10  // and until a command fills them: hundreds of agents say little for minutes
	lineLimit = 64 << 10 // a longer line is handled in pieces; more than twice what filter.cut retains
	// drainTime is how long output may arrive after the whole tree has ended; then the pipe is closed.
	drainTime = 200 * time.Millisecond
	// drainReads bounds the number of reads after that: more than a pipe holds.
	drainReads = 64
)

// buffers belong to a worker and are reused for each run.
type buffers struct {
	read    [2][]byte
	capture []byte // stdout, if it is parsed: at most one byte more than the limit
}

// output is the pipes between a command and us.
type output struct {
	stdout, stderr *os.File // the command's ends; one pipe if stdout is not parsed, so that the order is kept
	streams        []*stream
	pumps          sync.WaitGroup
}

func (a *attempt) openOutput(b *buffers) (*output, error) {
	o := new(output)
	b.capture = b.capture[:0]
	if a.talk != nil {
		return o, a.openTalk(o, b)
	}
	var err error
	if o.stdout, err = a.addStream(o, b); err != nil {
		return nil, err
	}
	o.stderr = o.stdout
	if a.task.Output == "" {
		return o, nil
	}
	if a.reader != nil {
		o.streams[0].reader = &liveReader{sessionWriter: sessionWriter{a: a}}
	} else {
		o.streams[0].capture, o.streams[0].limit = &b.capture, a.runs.ResultLimit+1
	}
	if o.stderr, err = a.addStream(o, b); err != nil {
		o.abandon()
		return nil, err
	}
	return o, nil
}

// openTalk is openOutput for an agent whose standard output is a protocol: only its standard error is copied.
func (a *attempt) openTalk(o *output, b *buffers) error {
	var err error
	if o.stderr, err = a.addStream(o, b); err != nil {
		return err
	}
	a.talk.from, o.stdout, err = newPipe()
	if err != nil {
		o.stdout = o.stderr
		o.abandon()
	}
	return err
}

// addStream creates a pipe and returns the end that the command writes to.
func (a *attempt) addStream(o *output, b *buffers) (*os.File, error) {
	r, w, err := newPipe()
	if err != nil {
		return nil, err
	}
	buf := &b.read[len(o.streams)]
	if *buf == nil {
		*buf = make([]byte, firstRead)
	}
	o.streams = append(o.streams, &stream{src: r, buf: buf, clean: a.runner.newFilter(), heard: &a.heard, longest: lineLimit})
	return w, nil
}

func (o *output) closeWriters() {
	o.stdout.Close()
	if o.stderr != nil && o.stderr != o.stdout {
		o.stderr.Close()
	}
}

// abandon closes everything if no command was started.
func (o *output) abandon() {
	o.closeWriters()
	for _, s := range o.streams {
		s.src.Close()
	}
}

// pump starts to copy the command's output to k. It closes our copies of the command's ends.
func (o *output) pump(k *sink) {
	o.closeWriters()
	for _, s := range o.streams {
		s.sink = k
		o.pumps.Go(s.pump)
	}
}

// finish returns when all output is copied. The command's tree is gone.
func (o *output) finish() {
	for _, s := range o.streams {
		if s.src.SetReadDeadline(time.Now().Add(drainTime)) != nil {
			s.src.Close() // no deadlines here: cut it off at once
		}
	}
	o.pumps.Wait()
}

// stream is the connection of one pipe to the sink.
type stream struct {
	src     *os.File
	buf     *[]byte // of the worker
	clean   *filter
	sink    *sink
	carry   []byte  // the incomplete last line
	capture *[]byte // receives the first limit bytes; may be nil
	limit   int
	reader  io.Writer     // gets everything; may be nil
	heard   *atomic.Int64 // when output last came, in Unix nanoseconds
	longest int           // a longer line is handled in pieces
}

func (s *stream) pump() {
	defer s.src.Close()
	for {
		n, err := s.src.Read(*s.buf)
		s.heard.Store(time.Now().UnixNano())
		s.take(n)
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.drain()
			}
			break
		}
	}
	s.emit(s.carry)
}

// drain reads the content of the pipe, without waiting.
func (s *stream) drain() {
	raw, err := s.src.SyscallConn()
	if err != nil || s.src.SetReadDeadline(time.Time{}) != nil {
		return
	}
	for range drainReads {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n = readNow(fd, *s.buf)
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		s.take(n)
	}
}

// take accounts for the bytes that were read into the buffer, and makes it as large as a read may be once it was full.
func (s *stream) take(n int) {
	s.feed((*s.buf)[:n])
	if n == len(*s.buf) && n < readSize {
		*s.buf = make([]byte, readSize)
	}
}

// feed passes on the lines that b completes, and retains the rest.
func (s *stream) feed(b []byte) {
	if s.reader != nil {
		s.reader.Write(b) //nolint:errcheck // it never fails
	}
	if s.capture != nil {
		*s.capture = append(*s.capture, b[:min(len(b), s.limit-len(*s.capture))]...)
	}
	end := bytes.LastIndexByte(b, '\n') + 1
	switch {
	case end > 0 && len(s.carry) > 0:
		s.carry = append(s.carry, b[:end]...)
		s.emit(s.carry)
		s.carry = s.carry[:0]
	case end > 0:
		s.emit(b[:end])
	}
	s.carry = append(s.carry, b[end:]...)
	for len(s.carry) > s.longest {
		cut := s.clean.cut(s.carry)
		s.emit(s.carry[:cut])
		s.carry = append(s.carry[:0], s.carry[cut:]...)
	}
}

func (s *stream) emit(b []byte) {
	if len(b) > 0 {
		s.sink.write(s.clean.lines(b))
	}
}

// sink receives a run's output: a log file, created on the first write, and its end for the record.
type sink struct {
	root      *os.Root
	path      string
	secrets   *Secrets // that no part of the output has, and the printable end must not have either
	logLimit  int
	tailLimit int

	mu      sync.Mutex // guards the fields below
	log     *os.File
	logged  int
	dropped int
	err     error // why the log could not be written
	tail    []byte
}

func (a *attempt) newSink() *sink {
	return &sink{
		root: a.runner.root, path: state.LogPath(a.job.effect.Key), secrets: a.runner.secrets,
		logLimit: a.runs.OutputLimit, tailLimit: a.runs.TailLimit,
	}
}

func (k *sink) write(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keepTail(b)
	if k.err != nil {
		return
	}
	fits := min(len(b), k.logLimit-k.logged)
	k.dropped += len(b) - fits
	if fits > 0 {
		k.logged += fits
		k.err = k.append(b[:fits])
	}
}

func (k *sink) append(b []byte) (err error) {
	if k.log == nil {
		if err = k.root.MkdirAll(path.Dir(k.path), 0o755); err != nil {
			return err
		}
		if k.log, _, err = regular.OpenFile(k.root, k.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
			return err
		}
	}
	_, err = k.log.Write(b)
	return err
}

// keepTail keeps at least the last 2·tailLimit bytes, because unprintable bytes are removed later, and at most twice as
// many.
func (k *sink) keepTail(b []byte) {
	keep := 2 * k.tailLimit
	if len(b) >= keep {
		k.tail = append(k.tail[:0], b[len(b)-keep:]...)
		return
	}
	if len(k.tail)+len(b) > 2*keep {
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-keep:]...)
	}
	k.tail = append(k.tail, b...)
}

// finish completes the log. It returns the printable end of the output, at most tailLimit bytes, the path of the log,
// "" without output, and why the log is incomplete. Logs are local and can be lost, so a failed write is not part of
// the record, which must be the same on every machine.
func (k *sink) finish() (tail, log, warning string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dropped > 0 && k.err == nil {
		_, k.err = fmt.Fprintf(k.log, "\n[reconcile: %d more bytes of output were dropped; the log's limit is %d bytes]\n",
			k.dropped, k.logLimit)
	}
	if k.err != nil {
		warning = fmt.Sprintf("log %s is not complete: %v", k.path, k.err)
	}
	if k.logged > 0 {
		log = k.path
	}
	return k.text(), log, warning
}

func (k *sink) close() {
	if k.log != nil {
		k.log.Close()
	}
}
