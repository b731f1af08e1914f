package embedhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/vectors/embed"
)

// Options configure an Embedder. Endpoint, Model and Dimensions are required; the others have a default.
type Options struct {
	Endpoint   string // the base URL of /embeddings
	Model      string
	Dimensions int
	// Key is sent as a bearer token; "" sends none.
	Key string
	// Refused, unless nil, is the reason to send nothing: only cached vectors are returned.
	Refused error
	// Batch is the number of texts in a request. Default 64.
	Batch int
	// Parallel is the number of concurrent requests. Default 4.
	Parallel int
	// RequestsPerMinute limits the requests that this process starts per minute; 0 means no limit.
	RequestsPerMinute int
	// Timeout is the time limit of one request. Default 1m.
	Timeout time.Duration
	// Patience is the time limit for a single text, with all tries: it is the query of a waiting user, who then gets lexical
	// results only. Default 10s.
	Patience time.Duration
	// Cache stores vectors; nil stores none.
	Cache *Cache
	// Warn, unless nil, is called once if vectors cannot be stored.
	Warn func(error)
	// UserAgent is sent with each request.
	UserAgent string

	// now and wait replace the clock in tests.
	now  func() time.Time
	wait func(context.Context, time.Duration) error
}

// Embedder computes vectors with an endpoint. It is safe for concurrent use.
type Embedder struct {
	Options
	client *http.Client
	slots  chan struct{} // one for each concurrent request
	pace   pace
	lost   sync.Once // warned about the cache
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns an embedder. It sends nothing yet. The error names an invalid option.
func New(o Options) (*Embedder, error) {
	switch {
	case !schemas.IsEndpoint(o.Endpoint):
		return nil, fmt.Errorf("index.endpoint: %q is neither an https address nor an http address of this machine", o.Endpoint)
	case o.Model == "":
		return nil, fmt.Errorf("index.model: the endpoint has to be asked for a model; name one")
	case o.Dimensions < 1 || o.Dimensions > embed.MaxDimensions:
		return nil, fmt.Errorf("index.dimensions: %d is not between 1 and %d", o.Dimensions, embed.MaxDimensions)
	case strings.ContainsAny(o.Key, "\r\n"):
		return nil, fmt.Errorf("index.apiKeyEnv: the key has a line break in it")
	}
	o.Endpoint = strings.TrimRight(o.Endpoint, "/")
	o.Batch = max(1, cmp.Or(o.Batch, 64))
	o.Parallel = max(1, cmp.Or(o.Parallel, 4))
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	if o.now == nil {
		o.now, o.wait = time.Now, sleep
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e := &Embedder{Options: o, slots: make(chan struct{}, o.Parallel)}
	e.client = &http.Client{Timeout: o.Timeout, CheckRedirect: stay}
	if o.RequestsPerMinute > 0 {
		e.pace.every = time.Minute / time.Duration(o.RequestsPerMinute)
	}
	return e, nil
}

// Model returns the model, its endpoint (two may run different weights under one name), and the dimensions.
func (e *Embedder) Model() string {
	return fmt.Sprintf("openai %s %s %d", e.Endpoint, e.Options.Model, e.Dimensions)
}

// Embed embeds texts: it returns their vectors from the cache, and asks the server for the missing ones, each text
// once.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	missing := map[string][]int{} // the indexes of each text
	var ask []string              // in the order of the texts
	for i, text := range texts {
		if embed.Blank(text) {
			out[i] = embed.Nothing(e.Dimensions)
			continue
		}
		if _, there := missing[text]; !there {
			ask = append(ask, text)
		}
		missing[text] = append(missing[text], i)
	}
	put := func(text string, v []float32) {
		for n, i := range missing[text] {
			if n > 0 {
				v = slices.Clone(v)
			}
			out[i] = v
		}
	}
	ask = e.kept(ask, put)
	if e.Refused != nil && len(ask) > 0 {
		return nil, fmt.Errorf("%w: %w", embed.ErrUnavailable, e.Refused)
	}
	if len(texts) == 1 {
		late := e.unavailable(fmt.Errorf("it did not answer within %v", e.Patience))
		limited, stop := context.WithTimeoutCause(ctx, e.Patience, late)
		defer stop()
		ctx = limited
	}
	if err := e.askAll(ctx, ask, put); err != nil {
		return nil, err
	}
	return out, nil
}

// kept calls put for the cached vectors, and returns the missing texts.
func (e *Embedder) kept(texts []string, put func(string, []float32)) (left []string) {
	if e.Cache == nil {
		return texts
	}
	e.Cache.refresh()
	for i, v := range e.Cache.get(e.keys(texts), e.Dimensions) {
		if v != nil {
			put(texts[i], v)
		} else {
			left = append(left, texts[i])
		}
	}
	return left
}

// askAll requests the vectors of texts, and calls put for each, serially. The first failure stops it; earlier vectors are
// stored.
func (e *Embedder) askAll(ctx context.Context, texts []string, put func(string, []float32)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	var mu sync.Mutex
	for batch := range slices.Chunk(texts, e.Batch) {
		if !e.takeSlot(ctx) {
			break
		}
		group.Go(func() {
			defer func() { <-e.slots }()
			vectors, err := e.askBatch(ctx, batch)
			if err != nil {
				stop(err)
				return
			}
			e.keep(batch, vectors)
			mu.Lock()
			defer mu.Unlock()
			for i, text := range batch {
				put(text, vectors[i])
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// keep adds vectors to the cache. A failed write only costs a later request.
func (e *Embedder) keep(texts []string, vectors [][]float32) {
	if e.Cache == nil {
		return
	}
	e.Cache.add(e.keys(texts), vectors)
	if err := e.Cache.Err(); err != nil && e.Warn != nil {
		e.lost.Do(func() {
			e.Warn(fmt.Errorf("what %s answers cannot be kept, and is asked for again next time: %w", e.Endpoint, err))
		})
	}
}

func (e *Embedder) keys(texts []string) []key {
	out := make([]key, len(texts))
	for i, text := range texts {
		out[i] = keyOf(e.Model(), text)
	}
	return out
}

// askBatch requests the vectors of a batch. A refused batch is halved.
func (e *Embedder) askBatch(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := e.ask(ctx, texts)
	var refused *refusal
	switch {
	case !errors.As(err, &refused):
		return vectors, err
	case len(texts) > 1:
		half := len(texts) / 2
		first, err := e.askBatch(ctx, texts[:half])
		if err != nil {
			return nil, err
		}
		second, err := e.askBatch(ctx, texts[half:])
		return append(first, second...), err
	case len(texts[0]) > leastText:
		shorter := shorten.Bytes(texts[0], max(leastText, len(texts[0])/2))
		if !embed.Blank(shorter) {
			return e.askBatch(ctx, []string{shorter})
		}
	}
	return nil, err
}

// unavailable adds the endpoint to err, and wraps embed.ErrUnavailable.
func (e *Embedder) unavailable(err error) error {
	return fmt.Errorf("%w: %s, model %s: %w", embed.ErrUnavailable, e.Endpoint, e.Options.Model, e.plain(err))
}
