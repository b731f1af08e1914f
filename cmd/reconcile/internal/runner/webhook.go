package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/webhook"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// webhookDelivery is the request of one run to a webhook, in this process. A run that is killed sends it again.
type webhookDelivery struct {
	a    *attempt
	task *settle.Webhook
	q    webhook.Request
	err  error // why it was not delivered
}

// prepare reads the address and the secret, which are hidden from now on, and asks whether the address may get anything. If it
// may not, no further attempt is made.
func (d *webhookDelivery) prepare() error {
	t, r := d.task, d.a.runner
	d.q = webhook.Request{URL: t.URL.Text, Delivery: t.Delivery, Body: t.Stdin, Agent: strings.TrimRight("reconcile/"+r.o.Version, "/")}
	var err error
	if t.URL.From != "" {
		if d.q.URL, err = d.read("webhook.url", t.URL.EnvSource); err != nil {
			return err
		}
		if !schemas.IsWebhook(d.q.URL) {
			return fmt.Errorf("webhook.url: what %s has is no URL with https or http", t.To)
		}
	}
	if d.q.Proxy, err = proxyOf(d.q.URL); err != nil {
		return err
	}
	if t.Secret != nil {
		if d.q.Secret, err = d.read("webhook.secret", *t.Secret); err != nil {
			return err
		}
	}
	if t.Destination == nil {
		return nil
	}
	if r.o.Destinations == nil {
		return errors.New("this program cannot send anything")
	}
	err = r.o.Destinations.Check(*t.Destination)
	d.a.record.Final = err != nil
	return err
}

// proxyOf is the proxy that the environment names for an address; nil for none.
func proxyOf(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the webhook is no URL with https or http")
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil {
		return nil, errors.New("the address of the proxy in the environment is no URL")
	}
	return proxy, nil
}

// read reads a value and hides it.
func (d *webhookDelivery) read(field string, from schemas.EnvSource) (string, error) {
	value, err := d.a.runner.variable(&settle.Variable{Variable: field, EnvSource: from})
	if err != nil {
		return "", err
	}
	d.a.runner.secrets.hideLines(value)
	if value = strings.TrimSpace(value); value == "" {
		return "", fmt.Errorf("%s: its value is empty", field)
	}
	return value, nil
}

// execute sends the request under the supervision that commands have.
func (d *webhookDelivery) execute() exit {
	a := d.a
	limit := a.limit()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a.heard.Store(time.Now().UnixNano())
	a.record.StartedAt = schemas.NewTime(a.runner.reportStart(a.job, 0))
	over := make(chan struct{})
	go func() {
		defer close(over)
		d.send(ctx)
	}()
	var end exit
	end.stopped = a.waitOrStop(over, limit)
	cancel()
	<-over
	return end
}

func (d *webhookDelivery) send(ctx context.Context) {
	answer, err := webhook.Send(ctx, d.q)
	if d.err = err; len(answer.Body) == 0 {
		return
	}
	log := &stream{clean: d.a.runner.newFilter(), sink: d.a.sink, longest: lineLimit}
	log.feed(append(answer.Body, '\n'))
}

// conclude fills in the record. An error fails the run.
func (d *webhookDelivery) conclude(end exit) error {
	switch r := &d.a.record; {
	case end.stopped != nil:
		r.Outcome, r.Message = end.stopped.outcome, d.a.runner.clean(end.stopped.message)
	case d.err != nil:
		return d.err
	default:
		r.Outcome, r.Message = schemas.OutcomeSucceeded, "sent to "+d.task.To
	}
	return nil
}
