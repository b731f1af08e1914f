package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ReplyVerb is a kind of reply in a thread.
type ReplyVerb struct {
	Name, Short string
	Type        string   // one of the Turn constants
	States      []string // the states with a transition for it (agentx-architecture 6.1)
	DefaultText string   // the text if none is given; "" if one is required
	letter      string   // of the type, in the names of replies
}

// ReplyVerbs lists the kinds of replies; the first one continues a thread.
var ReplyVerbs = []ReplyVerb{
	{
		Name: "question", Short: "Ask on after an answer: the next round", Type: schemas.TurnQuestion, letter: "q",
		States: []string{schemas.ClarificationAnswered},
	},
	{
		Name: "answer", Short: "Answer a question", Type: schemas.TurnAnswer, letter: "a",
		States: []string{schemas.ClarificationPending, schemas.ClarificationStale},
	},
	{
		Name: "resolve", Short: "Settle a matter that was answered or escalated", Type: schemas.TurnResolution, letter: "r",
		States: []string{schemas.ClarificationAnswered, schemas.ClarificationEscalated},
	},
	{
		Name: "escalate", Short: "Hand a matter to a human", Type: schemas.TurnEscalation, letter: "e",
		States:      []string{schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationStale},
		DefaultText: "A human is asked to decide.",
	},
	{
		Name: "abandon", Short: "Drop a question that nobody has answered", Type: schemas.TurnAbandonment, letter: "x",
		States:      []string{schemas.ClarificationPending},
		DefaultText: "The answer is not needed any more.",
	},
}

// When returns the states in which a reply with the verb is possible, joined as "a, b or c".
func (r *ReplyVerb) When() string {
	last := len(r.States) - 1
	if last == 0 {
		return r.States[0]
	}
	return strings.Join(r.States[:last], ", ") + " or " + r.States[last]
}

// ReplyRequest is a reply in a thread.
type ReplyRequest struct {
	Verb  string // the name of one of ReplyVerbs
	ID    string // of the clarification, or the name of its request
	Text  string // "": the verb's default text
	From  string // the author; "": the caller
	NoRun bool   // only write the reply
}

// Reply writes a Reply to a clarification's thread, with the verb, text and author of a ReplyRequest, and runs the tree
// to apply it. A reply that a run would refuse is refused before it is written; repeating a call returns the same
// reply. The result is nil if the thread was not changed, and valid even with an error.
func Reply(ctx context.Context, env Env, q ReplyRequest) (*ThreadResult, error) {
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
	text := r.DefaultText
	if q.Text != "" {
		text = env.redact("the text", q.Text)
	}
	from, err := env.Caller.Speaker("--from", q.From)
	if err == nil && !utf8.ValidString(from.Name) {
		err = badField("from", " is not UTF-8")
	}
	if err == nil {
		err = specs.CheckSecret("--from", from.Name)
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

// reply writes a reply to a thread, applies it, and returns the outcome.
func (e Env) reply(ctx context.Context, o *openTree, m *threads.Thread, r *ReplyVerb, from caller.Acting, text string, noRun bool) (*ThreadResult, error) {
	spec := &schemas.ReplySpec{Clarification: m.Request, Type: r.Type, From: from.Name, Proof: from.Proof, Body: text}
	if m.Entry == nil {
		spec.Clarification = m.ID
	}
	if r.Type == schemas.TurnQuestion {
		spec.Run = e.runOf(m)
	}
	name, ok := r.findReply(o.tree, m, spec)
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
		err = r.replyError(&after, name)
	}
	if err != nil {
		return nil, typed(err)
	}
	said := e.threadResult(after)
	said.Before, said.Reply = m, r
	if r.Type == schemas.TurnQuestion {
		said.Open, err = true, agentError(&after)
	}
	return said, typed(err)
}

// findReply finds an equal reply, in this round or, for a reply that starts the next round, in the previous one: a
// repeated call, for example after a kill, is the same reply. Otherwise name is the name for a new reply.
func (r *ReplyVerb) findReply(t *state.Tree, m *threads.Thread, spec *schemas.ReplySpec) (name string, ok bool) {
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
func replyName(m *threads.Thread, spec *schemas.ReplySpec, letter string, round int) string {
	base := m.Request
	if m.Entry == nil {
		base = strings.ToLower(m.ID)
	}
	return specs.FitName(base, "-"+letter+"-"+specs.NameDigest(3, spec.Clarification, spec.Type, spec.From, spec.Body, round))
}

// check returns an error for what a run would refuse, before anything is written: a reply without a transition in the
// present state, an answer by another agent, and an empty answer.
func (r *ReplyVerb) check(t *state.Tree, m *threads.Thread, spec *schemas.ReplySpec) error {
	switch {
	case m.Refused():
		return fmt.Errorf("%s was not taken: %s", m.Title(), m.Why)
	case m.Entry == nil && m.Why != "":
		return fmt.Errorf("%s cannot be changed: %s", m.Title(), m.Why)
	case r.Type == schemas.TurnAnswer && spec.From != m.To && isAgent(t, spec.From):
		return &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
			"agent '%s' cannot answer %s, which asks '%s'; a person may, under another name", spec.From, m.Title(), m.To)}
	case m.Status == "" && slices.Contains(r.States, schemas.ClarificationPending):
		return nil // it is pending once a run has accepted it
	case r.Type == schemas.TurnQuestion && m.Status == schemas.ClarificationEscalated && m.Round >= m.MaxRounds:
		return clarify.NewMaxRounds(m.Title(), m.MaxRounds)
	case !slices.Contains(r.States, m.Status):
		return fmt.Errorf("%s is %s; to %s it must be %s", m.Title(), threadState(m.Status), r.Name, r.When())
	}
	return r.objection(t, m, spec)
}

// objection returns the request's objection to a reply for which there is a transition.
func (r *ReplyVerb) objection(t *state.Tree, m *threads.Thread, spec *schemas.ReplySpec) error {
	request := requestSpec(m.Entry)
	if request == nil {
		return nil // the run imports the question first
	}
	st := *requestStatus(m.Entry)
	st.Phase = m.Status // another program may have changed it
	why := clarify.Objection(request, &st, clarify.Reply{Spec: spec, Agent: isAgent(t, spec.From)})
	switch {
	case why == "":
		return nil
	case r.Type == schemas.TurnAnswer:
		return fmt.Errorf("%s was not changed: %s", m.Title(), why)
	}
	return &clarify.Error{Kind: clarify.ScopeViolation, Message: why}
}

// replyError returns why a written reply was refused, or nil.
func (r *ReplyVerb) replyError(m *threads.Thread, name string) error {
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
