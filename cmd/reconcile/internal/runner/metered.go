package runner

import (
	"context"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Meter meters the requests of agents to their models, and keeps their budgets. It is safe for concurrent use.
type Meter interface {
	// Open opens an endpoint for one run. A request that exceeds the budget is refused; nil has no bounds. changed is called after
	// each request, from any goroutine, and must not block.
	Open(ctx context.Context, m *settle.Metering, budget *schemas.Budget, changed func()) (Endpoint, error)
}

// Endpoint is the address that one run sends its requests to. It is safe for concurrent use.
type Endpoint interface {
	// URL is the address, on this machine, and Token what is sent there in place of a key.
	URL() string
	Token() string
	// Secret is the key itself, which must appear nowhere; "" for none.
	Secret() string
	// Read returns what is known of the run so far.
	Read() settle.Metered
	// Close ends the use of the endpoint, and the requests that still run.
	Close()
}
