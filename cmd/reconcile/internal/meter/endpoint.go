package meter

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"sync"

	"reconcile.dev/reconcile/controllers/prices"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Endpoint is what one run sends its requests to. It is safe for concurrent use.
type Endpoint struct {
	proxy    *Proxy
	token    string
	upstream *url.URL
	key      string
	budget   schemas.Budget
	changed  func()
	ctx      context.Context // ends with the run
	cancel   context.CancelFunc

	mu       sync.Mutex // guards the fields below
	sum      settle.Metered
	cost     float64 // of the requests whose price is known
	unpriced bool    // the price of one is not known
	// open has the known usage of the requests that a model works on.
	open map[*exchange]part
}

// part is what a request used, and its cost. A part without tokens costs nothing.
type part struct {
	tokens
	cost   float64
	priced bool // the price is known
}

// URL is the address of the proxy.
func (e *Endpoint) URL() string { return e.proxy.url }

// Token is what a run sends in place of a key.
func (e *Endpoint) Token() string { return e.token }

// Secret is the key.
func (e *Endpoint) Secret() string { return e.key }

// Close ends the use of the endpoint, and the requests that still run.
func (e *Endpoint) Close() {
	e.proxy.remove(e.token)
	e.cancel()
}

// Read returns the usage of the run so far.
func (e *Endpoint) Read() settle.Metered {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, cost, unpriced := e.sum, e.cost, e.unpriced
	for _, p := range e.open {
		m.Usage.InputTokens += p.input
		m.Usage.OutputTokens += p.output
		m.Usage.CachedInputTokens += p.cached
		m.Usage.CacheWriteTokens += p.written
		m.Usage.Uncounted++
		cost, unpriced = cost+p.cost, unpriced || !p.priced
	}
	if !unpriced && m.Usage.InputTokens+m.Usage.OutputTokens > 0 {
		cost = math.Round(cost*1e9) / 1e9 // without the noise of sums
		m.CostUSD = &cost
	}
	if f := m.Failed; f != nil {
		failed := *f
		m.Failed = &failed
	}
	return m
}

// admit counts a request to a model that is about to start, unless the budget is used up: then it returns of what. Other
// requests are not counted.
func (e *Endpoint) admit(w wire) (over string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if over = e.over(); over != "" {
		if w != other {
			e.sum.Over = over
		}
		return over
	}
	if w != other {
		e.sum.Usage.Requests++
	}
	return ""
}

// over says which part of the budget is used up; "" for none.
func (e *Endpoint) over() string {
	u, b := &e.sum.Usage, &e.budget
	used := u.InputTokens + u.OutputTokens
	switch {
	case b.Requests > 0 && u.Requests >= b.Requests:
		return fmt.Sprintf("%d of %d requests", u.Requests, b.Requests)
	case b.Tokens > 0 && used >= b.Tokens:
		return fmt.Sprintf("%d of %d tokens", used, b.Tokens)
	case b.CostUSD > 0 && e.cost >= b.CostUSD:
		return "$" + dollars(e.cost) + " of $" + dollars(b.CostUSD)
	}
	return ""
}

func dollars(c float64) string { return strconv.FormatFloat(c, 'f', 4, 64) }

// note keeps the usage of a request while a model works on it, and reports its beginning and its input.
func (e *Endpoint) note(x *exchange) {
	p := e.price(x)
	e.mu.Lock()
	was, known := e.open[x]
	if e.open == nil {
		e.open = map[*exchange]part{}
	}
	e.open[x] = p
	e.mu.Unlock()
	if (!known || was.input != p.input) && e.changed != nil {
		e.changed()
	}
}

// settle adds what a request used.
func (e *Endpoint) settle(x *exchange) {
	e.add(x)
	if e.changed != nil {
		e.changed()
	}
}

func (e *Endpoint) add(x *exchange) {
	p := e.price(x)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, x)
	u := &e.sum.Usage
	u.InputTokens += p.input
	u.OutputTokens += p.output
	u.CachedInputTokens += p.cached
	u.CacheWriteTokens += p.written
	if x.uncounted() {
		u.Uncounted++
	}
	e.sum.Failed = x.failed
	e.sum.Model = cmp.Or(x.model, x.asked, e.sum.Model)
	if p.input+p.output == 0 {
		return
	}
	u.ContextUsed = p.input
	e.cost, e.unpriced = e.cost+p.cost, e.unpriced || !p.priced
}

// price returns what a request used and costs, by the price of the model that answered, else of the one that was asked.
func (e *Endpoint) price(x *exchange) part {
	p := part{tokens: x.tokens, priced: true}
	if p.input+p.output == 0 {
		return p
	}
	price, known := prices.Find(e.proxy.o.Prices, x.model)
	if !known {
		price, known = prices.Find(e.proxy.o.Prices, x.asked)
	}
	if p.priced = known; known {
		p.cost = prices.Cost(price, schemas.Usage{InputTokens: x.input, OutputTokens: x.output, CachedInputTokens: x.cached, CacheWriteTokens: x.written})
	}
	return p
}
