package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/budget"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

// BudgetRequest requests the size of an agent's context.
type BudgetRequest struct {
	Agent        string
	Issue        int   // the issue that memory is recalled for; 0: none
	Conversation *Text // nil: the log of the agent's last run
	FailOn       int   // percentage of the window from which on the result is an error; 0: never
}

// Budget counts the tokens of an agent's context against its window, and fails at the share of a BudgetRequest. The
// result is valid even with an error, if it names an agent.
func Budget(ctx context.Context, env Env, q BudgetRequest) (b render.Budget, err error) {
	switch {
	case q.Agent == "":
		return b, badRequest("reconcile budget needs --agent; for example: reconcile budget --agent engineer")
	case schemas.CheckName(q.Agent) != nil:
		return b, badField("agent", " %q: %v", q.Agent, schemas.CheckName(q.Agent))
	case q.FailOn < 0 || q.FailOn > 100:
		return b, badField("fail-on", " %d: write a share of the window in percent, 1 to 100", q.FailOn)
	}
	s, t, err := env.load(ctx)
	if err != nil {
		return b, typed(err)
	}
	defer s.Close()
	if e := t.Entry(agentRef(q.Agent)); e != nil && e.Broken() { // a broken spec may not have its intended content
		var all []error
		for _, p := range e.Problems {
			all = append(all, &Error{Code: Invalid, Err: errors.New(p.Error())})
		}
		return b, errors.Join(append(all, &Error{Code: Invalid,
			Err: fmt.Errorf("%s cannot be used as it is, so that nothing can be said of its context", e.Ref)})...)
	}
	m := env.memory(s)
	b, err = budget.Count(ctx, s, t, m, budget.Request{Agent: q.Agent, Issue: q.Issue, Conversation: (*budget.Text)(q.Conversation)})
	if errors.Is(err, budget.ErrNoAgent) {
		err = notFound(t, agentRef(q.Agent))
	}
	if err = errors.Join(err, m.Close()); err != nil {
		return render.Budget{}, typed(err)
	}
	if q.FailOn > 0 && b.Percent >= float64(q.FailOn) {
		err = fmt.Errorf("the context of %s is filled to %.1f %%, and --fail-on %d was asked for: shorten what it is "+
			"given, or give the agent a larger contextWindow", q.Agent, b.Percent, q.FailOn)
	}
	return b, typed(err)
}

// contextOf reads the description of the agent's next task.
func contextOf(from Text) (string, error) {
	const most = 64 << 10
	if from.Reader == nil {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > most:
		return "", badRequest("%s has more than %d bytes", from.Name, most)
	case !utf8.Valid(text):
		return "", badRequest("%s is not UTF-8", from.Name)
	}
	return strings.TrimSpace(string(text)), nil
}
