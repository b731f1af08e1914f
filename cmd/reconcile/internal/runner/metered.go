package runner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
)

// Meter meters the requests of agents to their models, and keeps their budgets. It is safe for concurrent use.
type Meter interface {
	// Open opens an endpoint for one run. A request that exceeds the budget is refused; nil has no bounds. changed is called after
	// each request, from any goroutine, and must not block. The error is a *KeyError if a person has to do something first.
	Open(ctx context.Context, m *settle.Metering, budget *schemas.Budget, changed func()) (Endpoint, error)
}

// KeyError says why an agent's requests cannot be sent, and what a person has to do.
type KeyError struct{ Why string }

func (e *KeyError) Error() string { return e.Why }

// Endpoint is the address that one run sends its requests to. It is safe for concurrent use.
type Endpoint interface {
	// URL is the address, on this machine, and Token is sent there in place of a key.
	URL() string
	Token() string
	// Secret is the key itself, which must appear nowhere; "" for none.
	Secret() string
	// Read returns the usage of the run so far.
	Read() settle.Metered
	// Close ends the use of the endpoint, and the requests that still run.
	Close()
}

// openMeter opens the endpoint of a run whose requests are metered, and points the command at it.
func (a *attempt) openMeter() error {
	m := a.task.Metering
	if m == nil {
		return nil
	}
	if a.runner.o.Meter == nil {
		return errors.New("its requests have to be metered, and this program cannot do that")
	}
	ctx, cancel := a.untilStopped()
	defer cancel()
	e, err := a.runner.o.Meter.Open(ctx, m, a.task.Budget, a.metered)
	if key := (*KeyError)(nil); errors.As(err, &key) {
		f := &schemas.TurnFailure{Class: schemas.FailureAccess, Message: a.runner.clean(key.Why)}
		a.record.Turn = &schemas.Turn{Runner: a.runnerWord(), Profile: a.task.ProfileName, Failure: f}
		return errors.New(turns.Describe(f, a.runner.o.Now()))
	}
	if err != nil {
		return err
	}
	a.endpoint = e
	a.runner.secrets.hide(e.Secret())
	for _, kv := range m.Env {
		a.command.env = set(a.command.env, a.pointed(kv))
	}
	return nil
}

// runnerWord is how the agent is run, one of the schemas.Runner constants.
func (a *attempt) runnerWord() string {
	switch {
	case a.talk != nil:
		return schemas.RunnerACP
	case a.dialogue != nil:
		return schemas.RunnerHTTP
	}
	return schemas.RunnerCommand
}

// pointed replaces the address of the endpoint and the token of the run in a variable or an argument.
func (a *attempt) pointed(s string) string {
	return strings.NewReplacer(schemas.ArgURL, a.endpoint.URL(), schemas.ArgToken, a.endpoint.Token()).Replace(s)
}

// pointArguments is pointed for the arguments that its profile adds.
func (a *attempt) pointArguments() {
	if a.endpoint == nil || a.task.Profile == nil {
		return
	}
	a.command.argv = slices.Clone(a.command.argv)
	for i, arg := range a.command.argv {
		if slices.Contains(a.task.Profile.Proxy.Args, arg) {
			a.command.argv[i] = a.pointed(arg)
		}
	}
}

// closeMeter ends the endpoint of the run.
func (a *attempt) closeMeter() {
	if a.endpoint != nil {
		a.endpoint.Close()
	}
}

// metered reports the usage of the turn after each request, so that it is on record if this process is killed.
func (a *attempt) metered() {
	a.heard.Store(time.Now().UnixNano())
	turn := &schemas.Turn{Runner: a.runnerWord(), Profile: a.task.ProfileName}
	if a.talk != nil {
		if turn = a.talk.turn(); turn == nil {
			return
		}
	} else {
		a.addMetered(turn)
	}
	if turn.Usage != nil { // for agents that do not report their context themselves, or only at the end
		a.noteContext(turn.Usage, turn.SessionID, "")
		a.describeMarks()
		turn.Marks = a.meter.all()
	}
	r := a.runner
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs[a.job.effect.Key] != a.job {
		return // the run has ended meanwhile
	}
	r.post(settle.Report{Kind: settle.Progressed, Key: a.job.effect.Key, At: r.o.Now(), Turn: turn})
}

// addMetered adds to a turn what the proxy knows of it, which counts more than what the agent says. An agent that has sent no
// request through the proxy counts alone.
func (a *attempt) addMetered(t *schemas.Turn) {
	if t.CostUSD != nil {
		t.CostFrom = schemas.CostFromAgent
	}
	if a.endpoint == nil {
		return
	}
	m := a.endpoint.Read()
	if m.Usage.Requests == 0 {
		return
	}
	if old := t.Usage; old != nil {
		m.Usage.ContextWindow = old.ContextWindow
		m.Usage.ContextUsed = cmp.Or(old.ContextUsed, m.Usage.ContextUsed)
	}
	t.Usage, t.UsageFrom = &m.Usage, schemas.UsageFromProxy
	t.Model = cmp.Or(t.Model, a.brief(m.Model))
	if m.CostUSD != nil {
		t.CostUSD, t.CostFrom = m.CostUSD, schemas.CostFromPrices
	}
}

// addWire adds to the facts of a turn what the proxy saw of its end.
func (a *attempt) addWire(f *turns.Facts) {
	if a.endpoint == nil {
		return
	}
	m := a.endpoint.Read()
	f.Over = m.Over
	if e := m.Failed; e != nil {
		f.Wire = &turns.Error{Status: e.Status, Kind: e.Kind, Message: e.Message, RetryAfter: e.RetryAfter}
		return
	}
	if n := m.Usage.OutputTokens; f.OutputTokens == nil && n > 0 && m.Over == "" {
		f.OutputTokens = &n
	}
}
