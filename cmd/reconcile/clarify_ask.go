package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// askOptions are the flags of ask.
type askOptions struct {
	*clarifyOptions
	request     string
	issue       issueFlag // not given: that of the run
	from, to    string
	topic       string
	question    string
	nonBlocking bool
	artifacts   []string
}

func newAskCmd(a *app, shared *clarifyOptions) *cobra.Command {
	o := &askOptions{clarifyOptions: shared}
	cmd := &cobra.Command{
		Use:   "ask --from AGENT --to AGENT --topic TOPIC --question QUESTION",
		Short: "Ask an agent",
		Long: `Ask an agent: writes a ClarificationRequest, runs the tree, and prints what came of it.

What may not be asked is refused, and nothing is written. The same question asked again is the same request: its thread
is shown. Inside of a run, as an agent calls it, the command only writes; the run's agent is who asks and its issue is
what is asked about, where the flags say nothing. The answer comes when the run is over: end it, and the node runs again
with the answer. A question to an agent that has answered the node already is the next round of that matter.`,
		Example: "  reconcile clarify ask --issue 42 --from engineer --to architect --topic \"Database layer\" \\\n" +
			"    --question \"Dual layer or migrate?\" --artifact docs/adr/ADR-42.md",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.ask(cmd.Context(), *o) },
	}
	f := cmd.Flags()
	f.Var(&o.issue, "issue", "the issue `N` that the question is about (default: RECONCILE_ISSUE)")
	f.StringVar(&o.from, "from", "", "the `AGENT` that asks (in a run: its agent)")
	f.StringVar(&o.to, "to", "", "the `AGENT` that is asked")
	f.StringVar(&o.topic, "topic", "", "the subject, a `TEXT` of at most 200 characters")
	f.StringVar(&o.question, "question", "", "what is asked, a `TEXT` of at most 2000 characters; - reads standard input")
	f.BoolVar(&o.nonBlocking, "non-blocking", false, "the agent can go on without the answer")
	f.StringArrayVar(&o.artifacts, "artifact", nil, "a `FILE` of the tree that the other agent should see; may be repeated")
	f.StringVar(&o.request, "request", "", "the `NAME` of the request (default: made from the question)")
	for _, name := range []string{"from", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(name, a.completeNamesOf(schemas.AgentKind))
	}
	return cmd
}

func (a *app) ask(ctx context.Context, o askOptions) error {
	spec, err := a.requestFrom(&o)
	if err != nil {
		return err
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := checkRequest(s, t, spec); err != nil {
		return err
	}
	name := cmp.Or(o.request, freshName(t, spec))
	if e := t.Entry(ops.RequestRef(name)); e != nil && !e.Gone() {
		return a.askedAlready(ctx, s, t, e, spec, o)
	}
	if m, ok := nextRoundOf(t, spec); ok {
		return a.askOn(ctx, s, t, m, spec, o)
	}
	where, err := specs.Write(s, t, schemas.ClarificationRequestKind, name, spec)
	if err != nil {
		return err
	}
	a.note("wrote %s", where)
	return a.awaitMatter(ctx, s, t, name, o.noRun)
}

// requestFrom makes the request of flags and environment.
func (a *app) requestFrom(o *askOptions) (*schemas.ClarificationRequestSpec, error) {
	spec := &schemas.ClarificationRequestSpec{
		From: o.from, To: o.to, Topic: o.topic, Blocking: !o.nonBlocking, Artifacts: o.artifacts, Issue: o.issue.number,
	}
	if a.caller().InRun() {
		if err := a.fillFromRun(spec, !o.issue.given); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct{ flag, value string }{
		{"--from", spec.From}, {"--to", spec.To}, {"--topic", spec.Topic}, {"--question", o.question},
	} {
		if f.value == "" {
			return nil, badUsage("%s is missing; usage: reconcile clarify ask --issue N --from AGENT --to AGENT "+
				"--topic TOPIC --question QUESTION", f.flag)
		}
		if !utf8.ValidString(f.value) {
			return nil, badUsage("%s is not UTF-8", f.flag)
		}
	}
	var err error
	spec.Topic = a.discreet("--topic", spec.Topic)
	if spec.Question, err = a.textOf(o.question); err == nil {
		spec.Question = a.discreet("--question", spec.Question)
	}
	return spec, err
}

// fillFromRun adds what the run that this process is part of says: who asks, about which issue, and which node waits.
func (a *app) fillFromRun(spec *schemas.ClarificationRequestSpec, issue bool) (err error) {
	if spec.From, err = a.caller().Speaker("--from", spec.From); err != nil {
		return err
	}
	spec.Run = a.caller().RunKey()
	if n, err := strconv.Atoi(a.getenv("RECONCILE_ISSUE")); err == nil && issue {
		spec.Issue = n
	}
	return nil
}

// textOf is a text of the command line; "-" stands for what is on standard input.
func (a *app) textOf(word string) (string, error) {
	if !utf8.ValidString(word) {
		return "", badUsage("the text is not UTF-8")
	}
	if word != "-" {
		return word, nil
	}
	const most = 64 << 10 // far more than any text may have: it is refused for its length, not cut
	text, err := io.ReadAll(io.LimitReader(a.stdin, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the text from standard input: %w", err)
	case len(text) > most:
		return "", badUsage("the text on standard input has more than %d bytes, at most 2000 characters are allowed", most)
	}
	if !utf8.Valid(text) {
		return "", badUsage("the text on standard input is not UTF-8")
	}
	return strings.TrimSpace(string(text)), nil
}

// checkRequest refuses what the protocol does not allow (agentx-spec 6.3), before anything is written. Lengths, blank
// texts and paths are checked when the file is made, by the code that reads it.
func checkRequest(s *state.Store, t *state.Tree, spec *schemas.ClarificationRequestSpec) error {
	for _, name := range []string{spec.From, spec.To} {
		if err := checkAgent(t, name); err != nil {
			return err
		}
	}
	if spec.From == spec.To {
		return badUsage("to: agent %q cannot ask itself", spec.To)
	}
	var from *schemas.AgentSpec
	if e := t.Entry(ops.AgentRef(spec.From)); e.Object != nil {
		from = schemas.SpecAs[*schemas.AgentSpec](e.Object)
	}
	if err := clarify.NewScope(spec.From, from, controllers.WorkflowSteps(t)).Check(spec); err != nil {
		return err
	}
	return checkArtifacts(s.Root(), spec.Artifacts)
}

func checkAgent(t *state.Tree, name string) error {
	if e := t.Entry(ops.AgentRef(name)); e != nil && !e.Gone() {
		return nil
	}
	return &clarify.Error{Kind: clarify.NotFound, Message: ops.NotFound(t, ops.AgentRef(name)).Error()}
}

// checkArtifacts refuses paths that lead to no file of the tree: who is asked would not see them.
func checkArtifacts(root *os.Root, paths []string) error {
	for _, p := range paths {
		info, err := root.Stat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return badUsage("--artifact %s: there is no such file in the tree", p)
		case err != nil:
			return badUsage("--artifact %s: %v; name a file below the root of the tree", p, regular.Cause(err))
		case !info.Mode().IsRegular():
			return badUsage("--artifact %s is no file", p)
		}
	}
	return nil
}

// requestName is made from what is asked, so that a repeated call is the same request (decision 12): the topic, and a
// digest. Two nodes that ask the same ask twice, for each waits for its own answer.
func requestName(spec *schemas.ClarificationRequestSpec) string {
	dag, node, _ := schemas.SplitRunKey(spec.Run)
	digest := specs.NameDigest(4, spec.Issue, spec.From, spec.To, spec.Topic, spec.Question, spec.Blocking,
		strings.Join(spec.Artifacts, "\n"), dag, node)
	const longest = 40
	topic := slug(spec.Topic)
	return specs.FitName(topic[:min(len(topic), longest)], "-"+digest)
}

// freshName is [requestName], and a further name where the question was asked before and abandoned: nobody waits for the
// answer to that.
func freshName(t *state.Tree, spec *schemas.ClarificationRequestSpec) string {
	first := requestName(spec)
	name := first
	for n := 2; ; n++ {
		e := t.Entry(ops.RequestRef(name))
		if e == nil || e.Gone() || ops.RequestStatus(e).Phase != schemas.ClarificationAbandoned {
			return name
		}
		name = specs.FitName(first, "-"+strconv.Itoa(n))
	}
}

// slug writes a text with lower-case letters, digits and hyphens; "question" if nothing of it is left.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
	})
	if len(words) == 0 {
		return "question"
	}
	return strings.Join(words, "-")
}

// askedAlready shows how a question stands that is there already. A name that stands for another question is an error.
func (a *app) askedAlready(
	ctx context.Context, s *state.Store, t *state.Tree, e *state.Entry, spec *schemas.ClarificationRequestSpec,
	o askOptions,
) error {
	if old := ops.RequestSpec(e); old == nil || !sameQuestion(old, spec) {
		return fmt.Errorf("%s is another question; nothing was written, choose another --request", e.Ref)
	}
	if ops.RequestStatus(e).Phase == schemas.ClarificationAbandoned {
		return fmt.Errorf("%s was abandoned, and nobody answers it any more; ask again under another --request, or without it",
			e.Ref)
	}
	title := ops.RequestStatus(e).ID
	if title == "" {
		title = e.Name
	}
	a.note("already asked: %s", title)
	return a.awaitMatter(ctx, s, t, e.Name, o.noRun)
}

func sameQuestion(a, b *schemas.ClarificationRequestSpec) bool {
	return a.Issue == b.Issue && a.From == b.From && a.To == b.To && a.Topic == b.Topic && a.Question == b.Question &&
		a.Blocking == b.Blocking && slices.Equal(a.Artifacts, b.Artifacts)
}

// nextRoundOf finds the matter that a node's question goes on with: the one in which the same agent has answered it.
func nextRoundOf(t *state.Tree, spec *schemas.ClarificationRequestSpec) (controllers.Thread, bool) {
	if spec.Run == "" || !spec.Blocking {
		return controllers.Thread{}, false // the run goes on, and its success settles the matter
	}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		old := ops.RequestSpec(e)
		if old == nil || old.To != spec.To || old.From != spec.From || !old.Blocking || !sameTask(old.Run, spec.Run) {
			continue
		}
		if ops.RequestStatus(e).Phase == schemas.ClarificationAnswered {
			m, err := ops.FindThread(t, e.Name)
			return m, err == nil
		}
	}
	return controllers.Thread{}, false
}

// sameTask reports whether two runs are of one node as it is defined: their keys differ in the last number only.
func sameTask(a, b string) bool {
	task := func(key string) string { return key[:max(strings.LastIndexByte(key, '-'), 0)] }
	return a != "" && task(a) == task(b)
}

// askOn asks the next question of a matter, unless it is one that was answered.
func (a *app) askOn(
	ctx context.Context, s *state.Store, t *state.Tree, m controllers.Thread, spec *schemas.ClarificationRequestSpec, o askOptions,
) error {
	for _, e := range m.Thread {
		if e.Type == schemas.TurnQuestion && e.Body == spec.Question {
			a.note("already asked: %s", m.Title())
			return a.printThread(m)
		}
	}
	return a.reply(ctx, s, t, m, questionReply, spec.From, spec.Question, o.noRun)
}

// awaitMatter makes a question that was written take effect, and shows what came of it.
func (a *app) awaitMatter(ctx context.Context, s *state.Store, t *state.Tree, name string, noRun bool) error {
	t, err := a.monitor(ctx, s, t, noRun)
	if err != nil {
		return err
	}
	m, err := ops.FindThread(t, name)
	if err != nil {
		return err
	}
	if err := a.printMatter(&m, m.Status == "" || m.Waiting()); err != nil || !m.Refused() {
		return cmp.Or(err, agentError(&m))
	}
	return exitWith(exitNotReady)
}

// agentError is the failure of the agent that was asked, if that is why a human has to decide; nil otherwise.
func agentError(m *controllers.Thread) error {
	e := m.Escalation
	if m.Status != schemas.ClarificationEscalated || e == nil || e.Reason != schemas.EscalatedAgent {
		return nil
	}
	return &clarify.Error{Kind: clarify.AgentError, Message: fmt.Sprintf(
		"agent '%s' failed twice on %s; it is escalated. %s", m.To, m.Title(), e.Action)}
}

// printMatter prints the thread after a question, and beside it what can be done next. An agent that asked inside of a
// run, where open says that the answer is still to come, is told only that.
func (a *app) printMatter(m *controllers.Thread, open bool) error {
	if a.caller().InRun() && open && a.global.output == formatTable {
		_, err := fmt.Fprintf(a.stdout, "%s asks %s: %s\n", m.Title(), clean(m.To), nextInRun(m))
		return err
	}
	a.hint(m)
	return a.printThread(*m)
}

// hint tells people, beside the results, what can be done next about a matter.
func (a *app) hint(m *controllers.Thread) {
	if next := nextFor(m); next != "" && !a.caller().InRun() {
		a.note("%s", next)
	}
}

func nextFor(m *controllers.Thread) string {
	switch {
	case m.Refused():
		return ""
	case m.Entry != nil && controllers.IsStalled(m.Entry):
		return fmt.Sprintf("nothing is taken until %s is put right: %s", m.Entry.Ref,
			controllers.ConditionOf(m.Entry, schemas.Stalled).Message)
	case m.Status == "":
		return "the next run takes it"
	case m.Status == schemas.ClarificationAnswered:
		return fmt.Sprintf("ask on or settle it: reconcile clarify question|resolve %s TEXT", m.Title())
	case m.Status == schemas.ClarificationEscalated:
		return fmt.Sprintf("a human decides: reconcile clarify resolve %s TEXT", m.Title())
	case m.Waiting() && m.Human:
		return fmt.Sprintf("%s answers by: reconcile clarify answer %s TEXT", m.To, m.Title())
	}
	return ""
}

// nextInRun is what an agent has to do that asks while it runs.
func nextInRun(m *controllers.Thread) string {
	if spec := ops.RequestSpec(m.Entry); spec != nil && spec.Blocking && spec.Run != "" {
		return "end this run now; the node waits for the answer, and runs again with it"
	}
	return "go on; the answer comes with a later run"
}
