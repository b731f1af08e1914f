package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// AskRequest is a question to an agent.
type AskRequest struct {
	From, To    string // agents; in a run, From is the run's agent
	Topic       string
	Question    string
	Issue       *int // nil: the issue of the run, or none
	NonBlocking bool // the agent can continue without the answer
	Artifacts   []string
	Request     string // the name of the request; "": derived from the question
	NoRun       bool   // only write the request
}

// ThreadResult is a clarification thread after a question or reply was added.
type ThreadResult struct {
	Thread threads.Thread
	Before *threads.Thread // the thread before a reply; nil after the first question
	Reply  *ReplyVerb      // nil after the first question
	Open   bool            // the answer is pending
	Inside bool            // the caller is a run of the tree
	Waits  bool            // the node of a run waits for the answer, and runs again with it
	Seen   bool            // nothing was written: the question was answered before
	// Verdict is NotReady if the run refused the question.
	Verdict Code
}

// NextInRun tells an agent that asked during its run how to continue.
func (r *ThreadResult) NextInRun() string {
	if r.Waits {
		return "end this run now; the node waits for the answer, and runs again with it"
	}
	return "go on; the answer comes with a later run"
}

// Line is the result of a reply, as "CLR-42-001: pending → answered".
func (r *ThreadResult) Line() string {
	m, was := &r.Thread, r.Before
	line := threadState(m.Status)
	if m.Round > was.Round && m.Open() {
		line += fmt.Sprintf(" (round %d)", m.Round) // the asking agent continued at once
	}
	if was.Status != "" && (was.Status != m.Status || was.Round != m.Round) {
		line = was.Status + " → " + line
	}
	return m.Title() + ": " + line
}

// Ask asks a question: it writes the ClarificationRequest of an AskRequest, and runs the tree to apply it. Repeating a
// question returns the same request; a question of a node to an agent that has already answered it is the next round of
// that thread. Questions that are not allowed are not written. The result is nil if there is no thread, and valid even
// with an error.
func Ask(ctx context.Context, env Env, q AskRequest) (*ThreadResult, error) {
	spec, err := env.question(q)
	if err != nil {
		return nil, typed(err)
	}
	o, err := env.open(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer o.store.Close()
	if err := checkRequest(o.store, o.tree, spec); err != nil {
		return nil, typed(err)
	}
	name := cmp.Or(q.Request, freshName(o.tree, spec))
	if e := o.tree.Entry(requestRef(name)); e != nil && !e.Gone() {
		if err := sameRequest(e, spec); err != nil {
			return nil, typed(err)
		}
		env.note("already asked: %s", cmp.Or(requestStatus(e).ID, e.Name))
	} else if m := env.nextRoundOf(o.tree, spec); m != nil {
		return env.askNextRound(ctx, o, m, spec, q.NoRun)
	} else {
		where, err := specs.Write(o.store, o.tree, schemas.ClarificationRequestKind, name, spec)
		if err != nil {
			return nil, typed(err)
		}
		env.note("wrote %s", where)
	}
	if _, err := env.update(ctx, o, q.NoRun, engine.Request{}); err != nil {
		return nil, typed(err)
	}
	m, err := findThread(o.tree, name)
	if err != nil {
		return nil, typed(err)
	}
	said := env.threadResult(m)
	said.Open = m.Status == "" || m.Waiting()
	if m.Refused() {
		said.Verdict = NotReady
	}
	return said, typed(agentError(&m))
}

// question returns the spec of a request. In a run it adds the asking agent, the issue, and the waiting node.
func (e Env) question(q AskRequest) (spec *schemas.ClarificationRequestSpec, err error) {
	spec = &schemas.ClarificationRequestSpec{From: q.From, To: q.To, Topic: q.Topic, Blocking: !q.NonBlocking, Artifacts: q.Artifacts,
		Proof: schemas.ProofClaimed}
	if q.Issue != nil {
		spec.Issue = *q.Issue
	}
	if e.Caller.InRun() {
		who, err := e.Caller.Speaker("--from", q.From)
		if spec.From, spec.Proof = who.Name, who.Proof; err != nil {
			return nil, err
		}
		spec.Run = e.Caller.RunKey()
		if n, err := strconv.Atoi(e.Tree.Getenv("RECONCILE_ISSUE")); err == nil && q.Issue == nil {
			spec.Issue = n
		}
	}
	for _, f := range []struct{ name, value string }{
		{"from", spec.From}, {"to", spec.To}, {"topic", spec.Topic}, {"question", q.Question},
	} {
		if f.value == "" {
			return nil, badField(f.name, " is missing; usage: reconcile clarify ask --issue N --from AGENT --to AGENT "+
				"--topic TOPIC --question QUESTION")
		}
		if !utf8.ValidString(f.value) {
			return nil, badField(f.name, " is not UTF-8")
		}
	}
	spec.Topic, spec.Question = e.redact("--topic", spec.Topic), e.redact("--question", q.Question)
	return spec, nil
}

// checkRequest returns an error for requests that the protocol does not allow (agentx-spec 6.3), before anything is
// written. Lengths, blank texts and paths are checked when the file is written, by the code that reads it.
func checkRequest(s *state.Store, t *state.Tree, spec *schemas.ClarificationRequestSpec) error {
	for _, name := range []string{spec.From, spec.To} {
		if !isAgent(t, name) {
			return &clarify.Error{Kind: clarify.NotFound, Message: notFound(t, agentRef(name)).Error()}
		}
	}
	if spec.From == spec.To {
		return badRequest("to: agent %q cannot ask itself", spec.To)
	}
	if err := clarifications.ScopeOf(t, spec.From, spec.Run).Check(spec); err != nil {
		return err
	}
	return checkArtifacts(s.Root(), spec.Artifacts)
}

// checkArtifacts returns an error for paths without a file in the tree: the asked agent could not read them.
func checkArtifacts(root *os.Root, paths []string) error {
	for _, p := range paths {
		info, err := root.Stat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return badField("artifact", " %s: there is no such file in the tree", p)
		case err != nil:
			return badField("artifact", " %s: %v; name a file below the root of the tree", p, regular.Cause(err))
		case !info.Mode().IsRegular():
			return badField("artifact", " %s is no file", p)
		}
	}
	return nil
}

// requestName derives a name from the question, so that a repeated call is the same request (decision 12): the topic,
// and a digest. The same question of two nodes has two names, since each node waits for its own answer.
func requestName(spec *schemas.ClarificationRequestSpec) string {
	dag, node, _ := schemas.SplitRunKey(spec.Run)
	digest := specs.NameDigest(4, spec.Issue, spec.From, spec.To, spec.Topic, spec.Question, spec.Blocking,
		strings.Join(spec.Artifacts, "\n"), dag, node)
	const longest = 40
	topic := slug(spec.Topic)
	return specs.FitName(topic[:min(len(topic), longest)], "-"+digest)
}

// slug converts a text to lower-case letters, digits and hyphens; "question" if nothing remains.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
	})
	return cmp.Or(strings.Join(words, "-"), "question")
}

// freshName returns [requestName], or a name with a number if that question was abandoned, since an abandoned question
// gets no answer.
func freshName(t *state.Tree, spec *schemas.ClarificationRequestSpec) string {
	first := requestName(spec)
	name := first
	for n := 2; ; n++ {
		e := t.Entry(requestRef(name))
		if e == nil || e.Gone() || requestStatus(e).Phase != schemas.ClarificationAbandoned {
			return name
		}
		name = specs.FitName(first, "-"+strconv.Itoa(n))
	}
}

// sameRequest returns an error if a name belongs to another question, or to an abandoned one.
func sameRequest(e *state.Entry, spec *schemas.ClarificationRequestSpec) error {
	old := requestSpec(e)
	if old == nil || old.Issue != spec.Issue || old.From != spec.From || old.To != spec.To || old.Topic != spec.Topic ||
		old.Question != spec.Question || old.Blocking != spec.Blocking || !slices.Equal(old.Artifacts, spec.Artifacts) {
		return fmt.Errorf("%s is another question; nothing was written, choose another --request", e.Ref)
	}
	if requestStatus(e).Phase == schemas.ClarificationAbandoned {
		return fmt.Errorf("%s was abandoned, and nobody answers it any more; ask again under another --request, or without it",
			e.Ref)
	}
	return nil
}

// nextRoundOf returns the thread that a node's question continues: the same agent has answered it. nil without one. The status need not say so
// yet: who runs the node may write that later.
func (e Env) nextRoundOf(t *state.Tree, spec *schemas.ClarificationRequestSpec) *threads.Thread {
	if spec.Run == "" || !spec.Blocking {
		return nil // the run continues, and its success resolves the thread
	}
	for _, asked := range t.Entries(schemas.ClarificationRequestKind.Name) {
		old := requestSpec(asked)
		if old == nil || old.To != spec.To || old.From != spec.From || !old.Blocking || !sameTask(old.Run, spec.Run) {
			continue
		}
		now := e.decided(t, asked.Ref)
		if requestStatus(now.Entry(asked.Ref)).Phase == schemas.ClarificationAnswered {
			if m, err := findThread(now, asked.Name); err == nil {
				return &m
			}
			return nil
		}
	}
	return nil
}

// askNextRound asks the next question of a thread, unless it was answered already.
func (e Env) askNextRound(ctx context.Context, o *openTree, m *threads.Thread, spec *schemas.ClarificationRequestSpec, noRun bool) (*ThreadResult, error) {
	for _, turn := range m.Thread {
		if turn.Type == schemas.TurnQuestion && turn.Body == spec.Question {
			e.note("already asked: %s", m.Title())
			said := e.threadResult(*m)
			said.Seen = true
			return said, nil
		}
	}
	return e.reply(ctx, o, m, &ReplyVerbs[0], caller.Acting{Name: spec.From, Proof: spec.Proof}, spec.Question, noRun)
}

// agentError returns the failure of the asked agent if it caused the escalation of a thread to a human; otherwise nil.
func agentError(m *threads.Thread) error {
	e := m.Escalation
	if m.Status != schemas.ClarificationEscalated || e == nil || e.Reason != schemas.EscalatedAgent {
		return nil
	}
	return &clarify.Error{Kind: clarify.AgentError, Message: fmt.Sprintf(
		"agent '%s' failed twice on %s; it is escalated. %s", m.To, m.Title(), e.Action)}
}

// runOf returns the key of the run that this process is part of, if it is a run of the asking node, which then waits
// for the answer.
func (e Env) runOf(m *threads.Thread) string {
	if spec := requestSpec(m.Entry); spec != nil && sameTask(spec.Run, e.Caller.RunKey()) {
		return e.Caller.RunKey()
	}
	return ""
}

// sameTask reports whether two runs are attempts of the same version of a node: their keys differ only in the last
// number.
func sameTask(a, b string) bool {
	task := func(key string) string { return key[:max(strings.LastIndexByte(key, '-'), 0)] }
	return a != "" && task(a) == task(b)
}
