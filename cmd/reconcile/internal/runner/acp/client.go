package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// Options configure a [Client]. Every field has a usable zero value.
type Options struct {
	// LineLimit is the length of the longest line that is read. Default 64 MiB.
	LineLimit int
	// TextLimit bounds the text of a message that is kept. Default 1 MiB.
	TextLimit int
	// Host is whom the agent works for. Default: one that permits nothing.
	Host Host
}

// Host is whom an agent works for.
type Host interface {
	// Permit chooses one of the options of a request, by its id; "" cancels it. It is called concurrently; ctx ends when the
	// answer is of no use any more.
	Permit(ctx context.Context, r PermissionRequest) (optionID string)
	// Observe receives the events, in order. It must return soon, and not call the client.
	Observe(Event)
}

// nobody permits nothing.
type nobody struct{}

func (nobody) Permit(context.Context, PermissionRequest) string { return "" }
func (nobody) Observe(Event)                                    {}

const (
	lineLimit    = 64 << 20
	textLimit    = 1 << 20
	outgoing     = 1024 // messages that wait for the agent to read
	earlyLimit   = 1024 // messages before the session is known
	earlyBytes   = 8 << 20
	openRequests = 64 // of the agent, at once
)

// ErrClosed reports that the connection is closed: the agent has ended, or closed its output.
var ErrClosed = errors.New("the agent closed the connection")

// errNotReading reports that the agent lets messages pile up.
var errNotReading = errors.New("the agent does not read its input")

// Client is a connection to an agent, for one session. It is safe for concurrent use.
type Client struct {
	o       Options
	in      *lines
	out     io.WriteCloser
	send    chan []byte
	changed chan struct{}
	done    chan struct{} // closed when the connection is
	quit    chan struct{} // closed by Close
	closing sync.Once

	mu      sync.Mutex // guards the fields below
	err     error      // why the connection is closed
	calls   map[string]*call
	last    int // number of requests
	session string
	early   []json.RawMessage // updates before the session is known
	size    int               // of early, in bytes
	asked   int               // open requests of the agent
	give    context.CancelFunc
	giveUp  context.Context // of the requests of the agent
	fold    updateFold
}

// call is a request that waits for its answer.
type call struct {
	answer chan *message
	taken  func(json.RawMessage) // called by the reader before it reads on; may be nil
}

// New returns a client that reads from r and writes to w, and starts to read. Close must be called. The reader ends when r
// does.
func New(r io.Reader, w io.WriteCloser, o Options) *Client {
	if o.LineLimit <= 0 {
		o.LineLimit = lineLimit
	}
	if o.TextLimit <= 0 {
		o.TextLimit = textLimit
	}
	if o.Host == nil {
		o.Host = nobody{}
	}
	c := &Client{o: o, in: newLines(r, o.LineLimit), out: w, send: make(chan []byte, outgoing), changed: make(chan struct{}, 1),
		done: make(chan struct{}), quit: make(chan struct{}), calls: map[string]*call{}, fold: newFold(o)}
	c.giveUp, c.give = context.WithCancel(context.Background())
	go c.read()
	go c.write()
	return c
}

// Changed returns the channel that has a token after messages arrived.
func (c *Client) Changed() <-chan struct{} { return c.changed }

// Done returns the channel that is closed when the agent has closed the connection and everything it sent is read.
func (c *Client) Done() <-chan struct{} { return c.done }

// State returns the present state.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fold.snapshot()
}

// Close closes the agent's input, which asks it to end, and cancels the agent's open requests. What the agent still sends is
// read.
func (c *Client) Close() {
	c.closing.Do(func() {
		c.cancelRequests()
		close(c.quit)
		_ = c.out.Close() // the agent may have closed it before
	})
}

// read reads until the end of the agent's output.
func (c *Client) read() {
	err := c.readAll()
	c.mu.Lock()
	c.err = err
	c.give()
	c.mu.Unlock()
	close(c.done)
	c.tell()
}

func (c *Client) readAll() error {
	for {
		line, err := c.in.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return ErrClosed
			}
			return fmt.Errorf("%w: %w", ErrClosed, err)
		}
		c.take(line)
		c.tell()
	}
}

// tell leaves a token in changed.
func (c *Client) tell() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// take handles one line.
func (c *Client) take(line []byte) {
	m, err := decode(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fold.Messages++
	c.fold.Skipped = c.in.skipped
	switch {
	case err != nil:
		c.fold.Noise++
		c.o.Host.Observe(Event{Kind: EventNoise, Text: string(line[:min(len(line), noiseShown)])})
	case m.isAnswer():
		c.answered(m)
	case m.Method == methodUpdate:
		c.update(m.Params)
	case m.Method == "":
		c.fold.Unmatched++ // an error without an id
	case len(m.ID) > 0:
		c.requested(m)
	default:
		c.fold.other("notification " + m.Method)
	}
}

// noiseShown bounds the forwarded part of a line that is not a message.
const noiseShown = 4 << 10

// answered passes an answer to who waits for it.
func (c *Client) answered(m *message) {
	waits := c.calls[string(m.ID)]
	if waits == nil {
		c.fold.Unmatched++
		return
	}
	delete(c.calls, string(m.ID))
	if waits.taken != nil && m.Error == nil {
		waits.taken(m.Result)
	}
	waits.answer <- m
}

// update folds an update, or keeps it while the session is not known.
func (c *Client) update(params json.RawMessage) {
	if c.session != "" {
		c.fold.update(c.session, params)
		return
	}
	if len(c.early) == earlyLimit || c.size+len(params) > earlyBytes {
		c.fold.Dropped++
		return
	}
	c.early, c.size = append(c.early, params), c.size+len(params)
}

// enter sets the session, and folds the updates that came before; c.mu is held.
func (c *Client) enter(session string) {
	c.session = session
	for _, p := range c.early {
		c.fold.update(session, p)
	}
	c.early, c.size = nil, 0
}

// write writes what is to be sent.
func (c *Client) write() {
	for {
		select {
		case line := <-c.send:
			if _, err := c.out.Write(line); err != nil {
				return // the reader meets the end of the connection
			}
		case <-c.quit:
			return
		}
	}
}

// post queues a message without waiting.
func (c *Client) post(m *message) error {
	line, err := m.encode()
	if err != nil {
		return err
	}
	select {
	case c.send <- line:
		return nil
	default:
		return errNotReading
	}
}

// call sends a request and decodes its answer into result. When ctx ends first, the client notifies the agent that the request is cancelled.
func (c *Client) call(ctx context.Context, method string, params, result any, taken func(json.RawMessage)) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	id, waits := c.register(taken)
	if err := c.post(&message{ID: json.RawMessage(id), Method: method, Params: raw}); err != nil {
		return err
	}
	select {
	case m := <-waits.answer:
		return m.into(method, result)
	case <-ctx.Done():
		_ = c.notify(methodCancelRequest, map[string]any{"requestId": json.RawMessage(id)})
		return ctx.Err()
	case <-c.done:
	}
	select {
	case m := <-waits.answer: // it was the last message
		return m.into(method, result)
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.err
	}
}

// register adds a request that waits for its answer.
func (c *Client) register(taken func(json.RawMessage)) (id string, waits *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id = strconv.Itoa(c.last)
	waits = &call{answer: make(chan *message, 1), taken: taken}
	c.calls[id] = waits
	return id, waits
}

func (m *message) into(method string, result any) error {
	if m.Error != nil {
		return m.Error
	}
	if result != nil && !decodeLoosely(m.Result, result) {
		return fmt.Errorf("the answer to %s is not an object", method)
	}
	return nil
}

func (c *Client) notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.post(&message{Method: method, Params: raw})
}
