// Package metering connects the runner to the metering proxy: it reads the keys of agents where their specs say, and opens
// endpoints only for addresses that the user allows.
package metering

import (
	"context"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/meter"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Options configure a Meter. All fields are required.
type Options struct {
	Dir    string // of the tree
	Getenv func(string) string
	Policy egress.Policy
	Prices map[string]schemas.Price // of the settings
}

// Meter is a [runner.Meter]. It listens from the first run that needs it to Close.
type Meter struct {
	o     Options
	proxy *meter.Proxy
}

// New returns a Meter.
func New(o Options) *Meter {
	return &Meter{o: o, proxy: meter.New(meter.Options{Prices: o.Prices})}
}

// Close ends the proxy.
func (m *Meter) Close() error { return m.proxy.Close() }

// Open opens an endpoint for one run. The key is read now, so that a new one counts from the next run on.
func (m *Meter) Open(ctx context.Context, q *settle.Metering, budget *schemas.Budget, changed func()) (runner.Endpoint, error) {
	if q.Upstream == "" {
		return nil, &runner.KeyError{Why: fmt.Sprintf("%s says keyFrom, and no address of the model's service: write %s in the settings", q.In, q.Setting)}
	}
	if err := m.o.Policy.Check(q.Destination()); err != nil {
		if denied := (*egress.DeniedError)(nil); errors.As(err, &denied) {
			return nil, &runner.KeyError{Why: err.Error()}
		}
		return nil, err
	}
	key, err := m.key(ctx, q.Key)
	if err != nil {
		return nil, &runner.KeyError{Why: fmt.Sprintf("%s: keyFrom: %v", q.In, err)}
	}
	e, err := m.proxy.Open(meter.Request{Upstream: q.Upstream, Key: key, Budget: budget, Changed: changed})
	if err != nil {
		return nil, err
	}
	return e, nil
}
