package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ReplyVerb is one way to take part in a thread.
type ReplyVerb struct {
	Name, Short string
	Type        string   // one of the Turn constants
	Takes       []string // the states in which the picture has an edge for it (agentx-architecture 6.1)
	Wordless    string   // what is said where no text is given; "" where one is needed
	letter      string   // of the type, in the names of replies
}

// ReplyVerbs lists the ways to take part in a thread; the first one goes on with it.
var ReplyVerbs = []ReplyVerb{
	{
		Name: "question", Short: "Ask on after an answer: the next round", Type: schemas.TurnQuestion, letter: "q",
		Takes: []string{schemas.ClarificationAnswered},
	},
	{
		Name: "answer", Short: "Answer a question", Type: schemas.TurnAnswer, letter: "a",
		Takes: []string{schemas.ClarificationPending, schemas.ClarificationStale},
	},
	{
		Name: "resolve", Short: "Settle a matter that was answered or escalated", Type: schemas.TurnResolution, letter: "r",
		Takes: []string{schemas.ClarificationAnswered, schemas.ClarificationEscalated},
	},
	{
		Name: "escalate", Short: "Hand a matter to a human", Type: schemas.TurnEscalation, letter: "e",
		Takes:    []string{schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationStale},
		Wordless: "A human is asked to decide.",
	},
	{
		Name: "abandon", Short: "Drop a question that nobody has answered", Type: schemas.TurnAbandonment, letter: "x",
		Takes:    []string{schemas.ClarificationPending},
		Wordless: "The answer is not needed any more.",
	},
}

// When names the states in which the reply is possible: "a, b or c".
func (r *ReplyVerb) When() string {
	last := len(r.Takes) - 1
	if last == 0 {
		return r.Takes[0]
	}
	return strings.Join(r.Takes[:last], ", ") + " or " + r.Takes[last]
}

// ReplyRequest is what somebody says in a thread.
type ReplyRequest struct {
	Verb  string // the name of one of ReplyVerbs
	ID    string // of the clarification, or the name of its request
	Text  string // "": what the verb says without words
	From  string // who says so; "": the caller
	NoRun bool   // only write the reply
}

// Reply writes a Reply and runs the tree, so that it takes effect. What a run would refuse is refused before anything is
// written; the same call again is the same reply. The result is nil where the thread was not changed, and counts also with an
// error.
func Reply(ctx context.Context, env Env, q ReplyRequest) (*Said, error) {
	i := slices.IndexFunc(ReplyVerbs, func(r ReplyVerb) bool { return r.Name == q.Verb })
	if i < 0 {
		return nil, badRequest("nobody can %q a clarification", q.Verb)
	}
	if err := checkThreadWord(q.ID); err != nil {
		return nil, err
	}
	if !utf8.ValidString(q.Text) {
		return nil, badRequest("the text is not UTF-8")
	}
	r := &ReplyVerbs[i]
	text := r.Wordless
	if q.Text != "" {
		text = env.redact("the text", q.Text)
	}
	from, err := env.Caller.Speaker("--from", q.From)
	if err == nil && !utf8.ValidString(from) {
		err = badField("from", " is not UTF-8")
	}
	if err == nil {
		err = specs.CheckSecret("--from", from)
	}
	if err != nil {
		return nil, typed(err)
	}
	o, err := env.open(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer o.store.Close()
	m, err := findThread(o.tree, q.ID)
	if err != nil {
		return nil, typed(err)
	}
	return env.reply(ctx, o, &m, r, from, text, q.NoRun)
}

// reply writes a reply to a thread, makes it take effect, and tells the outcome.
func (e Env) reply(ctx context.Context, o *openTree, m *controllers.Thread, r *ReplyVerb, from, text string, noRun bool) (*Said, error) {
	spec := &schemas.ReplySpec{Clarification: m.Request, Type: r.Type, From: from, Body: text}
	if m.Entry == nil {
		spec.Clarification = m.ID
	}
	if r.Type == schemas.TurnQuestion {
		spec.Run = e.runOf(m)
	}
	name, ok := r.said(o.tree, m, spec)
	if ok {
		e.note("already said")
	} else {
		if err := r.check(o.tree, m, spec); err != nil {
			return nil, typed(err)
		}
		where, err := specs.Write(o.store, o.tree, schemas.ReplyKind, name, spec)
		if err != nil {
			return nil, typed(err)
		}
		e.note("wrote %s", where)
	}
	if _, err := e.update(ctx, o, noRun, engine.Request{}); err != nil {
		return nil, typed(err)
	}
	word := m.ID
	if m.Entry != nil {
		word = m.Request // its id can still change, until it is pushed
	}
	after, err := findThread(o.tree, word)
	if err == nil {
		err = r.judge(&after, name)
	}
	if err != nil {
		return nil, typed(err)
	}
	said := e.said(after)
	said.Before, said.Reply = m, r
	if r.Type == schemas.TurnQuestion {
		said.Open, err = true, agentError(&after)
	}
	return said, typed(err)
}

// runOf is the key of the run that this process is part of, if it is one of the node that asked: then the node waits
// for the answer.
func (e Env) runOf(m *controllers.Thread) string {
	if spec := requestSpec(m.Entry); spec != nil && sameTask(spec.Run, e.Caller.RunKey()) {
		return e.Caller.RunKey()
	}
	return ""
}

// said finds the reply that says the same, in this round or, where it took the thread to the next one, in the round before:
// a call that is repeated, because it was killed say, is the same reply. Without one, name is that of a new reply.
func (r *ReplyVerb) said(t *state.Tree, m *controllers.Thread, spec *schemas.ReplySpec) (name string, ok bool) {
	rounds := []int{m.Round}
	if r.Type == schemas.TurnQuestion || r.Type == schemas.TurnResolution {
		rounds = append(rounds, m.Round-1)
	}
	for _, round := range rounds {
		name = replyName(m, spec, r.letter, round)
		if e := t.Entry(schemas.Ref{Kind: schemas.ReplyKind.Name, Name: name}); e != nil && e.Object != nil {
			return name, true
		}
	}
	return replyName(m, spec, r.letter, m.Round), false
}

// replyName is <request>-<letter of the type>-<digest of content and round>: the same call in the same round is the
// same reply.
func replyName(m *controllers.Thread, spec *schemas.ReplySpec, letter string, round int) string {
	base := m.Request
	if m.Entry == nil {
		base = strings.ToLower(m.ID)
	}
	return specs.FitName(base, "-"+letter+"-"+specs.NameDigest(3, spec.Clarification, spec.Type, spec.From, spec.Body, round))
}

// check refuses what a run would refuse, before anything is written: what the picture of the states has no place for,
// what is for another agent to say, and an answer that says nothing.
func (r *ReplyVerb) check(t *state.Tree, m *controllers.Thread, spec *schemas.ReplySpec) error {
	switch {
	case m.Refused():
		return fmt.Errorf("%s was not taken: %s", m.Title(), m.Why)
	case m.Entry == nil && m.Why != "":
		return fmt.Errorf("%s cannot be changed: %s", m.Title(), m.Why)
	case r.Type == schemas.TurnAnswer && spec.From != m.To && isAgent(t, spec.From):
		return &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
			"agent '%s' cannot answer %s, which asks '%s'; a person may, under another name", spec.From, m.Title(), m.To)}
	case m.Status == "" && slices.Contains(r.Takes, schemas.ClarificationPending):
		return nil // it is pending as soon as a run has accepted it
	case r.Type == schemas.TurnQuestion && m.Status == schemas.ClarificationEscalated && m.Round >= m.MaxRounds:
		return clarify.NewMaxRounds(m.Title(), m.MaxRounds)
	case !slices.Contains(r.Takes, m.Status):
		return fmt.Errorf("%s is %s; to %s it must be %s", m.Title(), ThreadState(m.Status), r.Name, r.When())
	}
	return r.objection(t, m, spec)
}

// objection is what the request itself would have against a reply for which there is an edge.
func (r *ReplyVerb) objection(t *state.Tree, m *controllers.Thread, spec *schemas.ReplySpec) error {
	request := requestSpec(m.Entry)
	if request == nil {
		return nil // the run imports the question first
	}
	st := *requestStatus(m.Entry)
	st.Phase = m.Status // another program may have moved it
	why := clarify.Objection(request, &st, clarify.Reply{Spec: spec, Agent: isAgent(t, spec.From)})
	switch {
	case why == "":
		return nil
	case r.Type == schemas.TurnAnswer:
		return fmt.Errorf("%s was not changed: %s", m.Title(), why)
	}
	return &clarify.Error{Kind: clarify.ScopeViolation, Message: why}
}

// ThreadState is the state of a thread for a message.
func ThreadState(status string) string {
	if status == "" {
		return "not taken by a run yet"
	}
	return status
}

// judge is what went wrong with a reply that was written.
func (r *ReplyVerb) judge(m *controllers.Thread, name string) error {
	for _, x := range requestStatus(m.Entry).Refused {
		if x.Name == name {
			return fmt.Errorf("%s was not changed: %s", m.Title(), x.Message)
		}
	}
	taken := slices.ContainsFunc(m.Thread, func(e schemas.ThreadEntry) bool {
		return e.Source == "reply/"+name && e.Type == r.Type
	})
	exhausted := m.Escalation != nil && m.Escalation.Reason == schemas.EscalatedMaxRounds
	if r.Type == schemas.TurnQuestion && !taken && exhausted {
		return clarify.NewMaxRounds(m.Title(), m.MaxRounds)
	}
	return nil
}
