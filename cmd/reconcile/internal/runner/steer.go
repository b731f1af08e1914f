package runner

import (
	"context"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// messagesWait bounds the texts that wait until a running agent gets them. A later turn has those that do not fit.
const messagesWait = 64

// Tell gives texts of people to the running turn of an effect, each once. It does not wait. Which of them arrived, the record of
// the turn tells; an agent that takes no texts while it works gets none.
func (r *Runner) Tell(key string, all []settle.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[key]
	if j == nil || !j.running {
		return
	}
	for _, m := range all {
		if j.told[m.Action] {
			continue
		}
		select {
		case j.tell <- m:
			j.told[m.Action] = true
		default:
		}
	}
}

// untell makes a later Tell give a text again.
func (r *Runner) untell(j *job, action string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(j.told, action)
}

// steer gives the texts of people to the running turn. The agent has a text before that is on record: any other is repeated with the next prompt.
func (t *talk) steer(ctx context.Context, session string) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-t.a.job.tell:
			injected, err := t.client.Steer(ctx, session, m.Text)
			if err != nil {
				continue
			}
			if !injected { // no turn runs: perhaps not yet
				t.a.runner.untell(t.a.job, m.Action)
				continue
			}
			t.mu.Lock()
			t.steered = append(t.steered, schemas.Delivery{Action: m.Action, At: schemas.NewTime(t.a.runner.o.Now())})
			t.mu.Unlock()
			t.report()
		}
	}
}
