package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// replyCommand is one command that writes a Reply.
type replyCommand struct {
	name, short string
	typ         string   // one of the Turn constants
	letter      string   // of the type, in the names of replies
	takes       []string // the states in which the picture has an edge for it (agentx-architecture 6.1)
	wordless    string   // what is said where no text is given; "" where one is needed
}

// questionReply is the reply that goes on with a matter.
var questionReply = replyCommand{
	name: "question", short: "Ask on after an answer: the next round", typ: schemas.TurnQuestion, letter: "q",
	takes: []string{schemas.ClarificationAnswered},
}

// replyCommands are the commands that take part in a matter.
var replyCommands = []replyCommand{
	questionReply,
	{
		name: "answer", short: "Answer a question", typ: schemas.TurnAnswer, letter: "a",
		takes: []string{schemas.ClarificationPending, schemas.ClarificationStale},
	},
	{
		name: "resolve", short: "Settle a matter that was answered or escalated", typ: schemas.TurnResolution, letter: "r",
		takes: []string{schemas.ClarificationAnswered, schemas.ClarificationEscalated},
	},
	{
		name: "escalate", short: "Hand a matter to a human", typ: schemas.TurnEscalation, letter: "e",
		takes: []string{
			schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationStale,
		},
		wordless: "A human is asked to decide.",
	},
	{
		name: "abandon", short: "Drop a question that nobody has answered", typ: schemas.TurnAbandonment, letter: "x",
		takes:    []string{schemas.ClarificationPending},
		wordless: "The answer is not needed any more.",
	},
}

func newReplyCmd(a *app, o *clarifyOptions, r replyCommand) *cobra.Command {
	from, use, least := "", r.name+" ID TEXT", 2
	if r.wordless != "" {
		use, least = r.name+" ID [TEXT]", 1
	}
	cmd := &cobra.Command{
		Use:   use,
		Short: r.short,
		Long: r.short + `.

Writes a Reply into specs/replies/ and runs the tree, so that it takes effect; while another run is at work, or inside
of one, it only writes. It is possible while the matter is ` + orList(r.takes) + `.
TEXT has at most 2000 characters; - reads it from standard input.`,
		Example: "  reconcile clarify " + r.name + " CLR-42-001 \"" + exampleTexts[r.typ] + "\"",
		Args:    matterArguments(least, 2, "an id and a text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.replyTo(cmd.Context(), r, args, from, *o)
		},
		ValidArgsFunction: a.completeMatters,
	}
	cmd.Flags().StringVar(&from, "from", "", "the `AGENT` or person that says so "+
		"(in a run: its agent; default: RECONCILE_AGENT, else the login name)")
	return cmd
}

var exampleTexts = map[string]string{
	schemas.TurnQuestion:    "And who sets the size of the pool?",
	schemas.TurnAnswer:      "Two layers, one adapter each.",
	schemas.TurnResolution:  "Clear: two layers.",
	schemas.TurnEscalation:  "This needs a budget.",
	schemas.TurnAbandonment: "The feature was dropped.",
}

// orList is "a, b or c".
func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (a *app) replyTo(ctx context.Context, r replyCommand, args []string, from string, o clarifyOptions) error {
	text := r.wordless
	if len(args) == 2 {
		var err error
		if text, err = a.textOf(args[1]); err != nil {
			return err
		}
		text = a.discreet("the text", text)
	}
	from, err := a.caller().Speaker("--from", from)
	if err != nil {
		return err
	}
	if !utf8.ValidString(from) {
		return badUsage("--from is not UTF-8")
	}
	if err := specs.CheckSecret("--from", from); err != nil {
		return err
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	m, err := ops.FindThread(t, args[0])
	if err != nil {
		return err
	}
	return a.reply(ctx, s, t, m, r, from, text, o.noRun)
}

// reply writes a reply to a matter, makes it take effect, and tells what came of it.
func (a *app) reply(
	ctx context.Context, s *state.Store, t *state.Tree, m controllers.Thread, r replyCommand, from, text string, noRun bool,
) error {
	spec := &schemas.ReplySpec{Clarification: m.Request, Type: r.typ, From: from, Body: text}
	if m.Entry == nil {
		spec.Clarification = m.ID
	}
	if r.typ == schemas.TurnQuestion {
		spec.Run = a.runOf(&m)
	}
	if name, ok := r.said(t, &m, spec); ok {
		a.note("already said")
		return a.awaitReply(ctx, s, t, m, r, name, noRun)
	}
	if err := r.check(t, &m, spec); err != nil {
		return err
	}
	name := replyName(&m, spec, r.letter, m.Round)
	where, err := specs.Write(s, t, schemas.ReplyKind, name, spec)
	if err != nil {
		return err
	}
	a.note("wrote %s", where)
	return a.awaitReply(ctx, s, t, m, r, name, noRun)
}

// runOf is the key of the run that this process is part of, if it is one of the node that asked: then the node waits
// for the answer.
func (a *app) runOf(m *controllers.Thread) string {
	if spec := ops.RequestSpec(m.Entry); spec != nil && sameTask(spec.Run, a.caller().RunKey()) {
		return a.caller().RunKey()
	}
	return ""
}

// said finds the reply that says the same, in this round or, where it took the matter to the next one, in the round before:
// a call that is repeated, because it was killed say, is the same reply.
func (r replyCommand) said(t *state.Tree, m *controllers.Thread, spec *schemas.ReplySpec) (name string, ok bool) {
	rounds := []int{m.Round}
	if r.typ == schemas.TurnQuestion || r.typ == schemas.TurnResolution {
		rounds = append(rounds, m.Round-1)
	}
	for _, round := range rounds {
		name = replyName(m, spec, r.letter, round)
		if e := t.Entry(schemas.Ref{Kind: schemas.ReplyKind.Name, Name: name}); e != nil && e.Object != nil {
			return name, true
		}
	}
	return "", false
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
// what is for another agent to say, and an answer that is none.
func (r replyCommand) check(t *state.Tree, m *controllers.Thread, spec *schemas.ReplySpec) error {
	switch {
	case m.Refused():
		return fmt.Errorf("%s was not taken: %s", m.Title(), m.Why)
	case m.Entry == nil && m.Why != "":
		return fmt.Errorf("%s cannot be changed: %s", m.Title(), m.Why)
	case r.typ == schemas.TurnAnswer && spec.From != m.To && isAgent(t, spec.From):
		return &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
			"agent '%s' cannot answer %s, which asks '%s'; a person may, under another name", spec.From, m.Title(), m.To)}
	case m.Status == "" && slices.Contains(r.takes, schemas.ClarificationPending):
		return nil // it is pending as soon as a run has taken it
	case r.typ == schemas.TurnQuestion && m.Status == schemas.ClarificationEscalated && m.Round >= m.MaxRounds:
		return clarify.NewMaxRounds(m.Title(), m.MaxRounds)
	case !slices.Contains(r.takes, m.Status):
		return fmt.Errorf("%s is %s; to %s it must be %s", m.Title(), stateWord(m.Status), r.name, orList(r.takes))
	}
	return r.objection(t, m, spec)
}

// objection is what the request itself would have against a reply for which there is an edge.
func (r replyCommand) objection(t *state.Tree, m *controllers.Thread, spec *schemas.ReplySpec) error {
	request := ops.RequestSpec(m.Entry)
	if request == nil {
		return nil // the run takes the question up first
	}
	st := *ops.RequestStatus(m.Entry)
	st.Phase = m.Status // another program may have moved it
	why := clarify.Objection(request, &st, clarify.Reply{Spec: spec, Agent: isAgent(t, spec.From)})
	switch {
	case why == "":
		return nil
	case r.typ == schemas.TurnAnswer:
		return fmt.Errorf("%s was not changed: %s", m.Title(), why)
	}
	return &clarify.Error{Kind: clarify.ScopeViolation, Message: why}
}

func isAgent(t *state.Tree, name string) bool {
	e := t.Entry(ops.AgentRef(name))
	return e != nil && !e.Gone()
}

// stateWord is the state of a matter for a message.
func stateWord(status string) string {
	if status == "" {
		return "not taken by a run yet"
	}
	return status
}

// awaitReply makes a reply take effect, and tells what became of the matter.
func (a *app) awaitReply(
	ctx context.Context, s *state.Store, t *state.Tree, before controllers.Thread, r replyCommand, name string, noRun bool,
) error {
	t, err := a.monitor(ctx, s, t, noRun)
	if err != nil {
		return err
	}
	word := before.ID
	if before.Entry != nil {
		word = before.Request // its id can still change, until it is pushed
	}
	m, err := ops.FindThread(t, word)
	if err != nil {
		return err
	}
	if err := r.judge(t, &m, name); err != nil {
		return err
	}
	return a.printOutcome(&before, &m, r)
}

// judge is what went wrong with a reply that was written.
func (r replyCommand) judge(t *state.Tree, m *controllers.Thread, name string) error {
	st := &schemas.ClarificationRequestStatus{}
	if m.Entry != nil {
		st = ops.RequestStatus(m.Entry)
	}
	for _, x := range st.Refused {
		if x.Name == name {
			return fmt.Errorf("%s was not changed: %s", m.Title(), x.Message)
		}
	}
	taken := slices.ContainsFunc(m.Thread, func(e schemas.ThreadEntry) bool {
		return e.Source == "reply/"+name && e.Type == r.typ
	})
	exhausted := m.Escalation != nil && m.Escalation.Reason == schemas.EscalatedMaxRounds
	if r.typ == schemas.TurnQuestion && !taken && exhausted {
		return clarify.NewMaxRounds(m.Title(), m.MaxRounds)
	}
	return nil
}

// printOutcome prints the thread after a question, and else a line: CLR-42-001: pending → answered.
func (a *app) printOutcome(before, m *controllers.Thread, r replyCommand) error {
	switch {
	case r.typ == schemas.TurnQuestion:
		return cmp.Or(a.printMatter(m, true), agentError(m))
	case a.global.output != formatTable:
		return a.printThread(*m)
	}
	a.hint(m)
	line := stateWord(m.Status)
	if m.Round > before.Round && m.Open() {
		line += fmt.Sprintf(" (round %d)", m.Round) // the asking agent went on at once
	}
	if before.Status != "" && (before.Status != m.Status || before.Round != m.Round) {
		line = before.Status + " → " + line
	}
	_, err := fmt.Fprintln(a.stdout, clean(m.Title()+": "+line))
	return err
}
