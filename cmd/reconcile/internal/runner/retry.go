package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/chat"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
)

const (
	// retriesMost bounds how often a request to a model is sent again.
	retriesMost = 3
	// retryLongest bounds the wait before that. After a limit with a later end the node waits, without a turn.
	retryLongest = 30 * time.Second
)

// ask asks the model to go on, and again after a failure that passes, as long as the turn has time.
func (d *dialogue) ask(ctx context.Context, c *chat.Conversation) (*chat.Reply, error) {
	for tries := 0; ; tries++ {
		reply, err := c.Next(ctx)
		if err == nil || tries == retriesMost || ctx.Err() != nil || errors.Is(err, chat.ErrFinal) {
			return reply, err
		}
		wait, why := d.passes(tries)
		if why == nil {
			return nil, err
		}
		d.endLine()
		d.log.feed([]byte(fmt.Sprintf("[retry] %s; again in %s\n", d.a.runner.clean(turns.Describe(why, d.a.runner.o.Now())), wait.Round(time.Millisecond))))
		if !d.pause(ctx, wait) {
			return nil, err
		}
	}
}

// passes returns how long to wait before the request that failed last is sent again, and why it failed; nil if it is not.
func (d *dialogue) passes(tries int) (wait time.Duration, why *schemas.TurnFailure) {
	m, now := d.a.endpoint.Read(), d.a.runner.o.Now()
	if m.Failed == nil || m.Over != "" {
		return 0, nil
	}
	why = turns.Judge(turns.Facts{Runner: schemas.RunnerHTTP, At: now,
		Error: &turns.Error{Status: m.Failed.Status, Kind: m.Failed.Kind, Message: m.Failed.Message, RetryAfter: m.Failed.RetryAfter}})
	switch {
	case m.Failed.Status == 429, why.Class == schemas.FailureService, why.Class == schemas.FailureConnection:
	default:
		return 0, nil
	}
	wait = d.a.runner.o.Backoff << tries
	if !why.Until.IsZero() {
		wait = max(why.Until.Sub(now), 0)
	}
	if wait > retryLongest || !d.deadline.IsZero() && time.Now().Add(wait).After(d.deadline) {
		return 0, nil
	}
	return wait, why
}

// pause waits, which is not silence, and returns false if the turn ended meanwhile.
func (d *dialogue) pause(ctx context.Context, wait time.Duration) bool {
	d.busy.Store(true)
	defer d.busy.Store(false)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		d.a.heard.Store(time.Now().UnixNano())
		return true
	}
}
