package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
)

const (
	// cancelWait is how long an agent may take to end a turn that is cancelled; interruptWait, when reconcile itself ends.
	cancelWait    = 10 * time.Second
	interruptWait = time.Second
	// reportEvery is the minimum time between two reports about the use of a context.
	reportEvery = 5 * time.Second
)

// resumedPrompt precedes the prompt of a session that was interrupted.
const resumedPrompt = "Your turn was interrupted. What you did so far is kept. Check where you are, and go on with this task:\n\n"

// talk is the conversation of one run with an agent, over the Agent Client Protocol.
type talk struct {
	a       *attempt
	task    *settle.AgentTurn
	servers []acp.Server // that the agent starts
	from    *os.File     // the agent's standard output
	client  *acp.Client
	log     *stream // what the agent says, for the log

	stop context.CancelFunc // of the conversation
	done chan struct{}      // closed when the conversation is over; the fields below are final then
	// answer is the agent's answer to the prompt, err why it is missing.
	answer *acp.Answer
	err    error

	mu          sync.Mutex // guards the fields below
	session     string
	model       string
	permissions []*asked
	waited      time.Duration // for answers of people to those that are decided
	unanswered  bool          // a person did not answer in time
	steered     []schemas.Delivery
}

// abandon closes the resources of an agent that was not started; t may be nil.
func (t *talk) abandon() {
	if t == nil {
		return
	}
	t.from.Close()
	if t.a.input != nil {
		t.a.input.Close()
	}
}

// begin begins the conversation with the started agent.
func (t *talk) begin() {
	r := t.a.runner
	t.log = &stream{clean: r.newFilter(), sink: t.a.sink, longest: lineLimit}
	client := acp.New(t.from, t.a.input, acp.Options{TextLimit: t.a.runs.ResultLimit + 1, Host: t})
	t.mu.Lock()
	t.client = client
	t.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	go t.watch(ctx)
	go func() {
		defer close(t.done)
		t.answer, t.err = t.converse(ctx)
	}()
}

// converse takes the turn.
func (t *talk) converse(ctx context.Context) (*acp.Answer, error) {
	agent, err := t.client.Initialize(ctx, "reconcile", t.a.runner.o.Version)
	if err != nil {
		return nil, err
	}
	session, resumed, err := t.open(ctx, agent)
	if err != nil {
		return nil, err
	}
	if err := t.configure(ctx, session); err != nil {
		return nil, err
	}
	if err := t.a.runner.saveSession(t.a, session.ID); err != nil {
		return nil, asFault(err)
	}
	t.report()
	if agent.AcceptsSteering() {
		go t.steer(ctx, session.ID)
	}
	prompt := t.a.command.stdin
	if resumed {
		prompt = resumedPrompt + prompt
	}
	return t.client.Prompt(ctx, session.ID, prompt)
}

// open continues the session of an interrupted run of this effect, or the one that the task names, else begins a new one.
func (t *talk) open(ctx context.Context, agent *acp.Agent) (s *acp.Session, resumed bool, err error) {
	dir := t.a.command.dir
	saved, _ := t.a.runner.savedSession(t.a)
	id := cmp.Or(saved, t.task.Resume)
	if id != "" && (agent.Resumes() || agent.Loads()) {
		s, err = t.client.Resume(ctx, agent, id, dir, t.servers)
		resumed = err == nil
	}
	if wire := (*acp.Error)(nil); s == nil || errors.As(err, &wire) { // the agent may have lost it
		s, err = t.client.NewSession(ctx, dir, t.servers)
	}
	if err == nil {
		t.mu.Lock()
		t.session = s.ID
		t.mu.Unlock()
	}
	return s, resumed, err
}

// configure sets the mode and the model that the agent's spec names. Without a choice of models the agent has its own.
func (t *talk) configure(ctx context.Context, s *acp.Session) error {
	mode := t.task.Mode
	if t.a.policy != nil {
		mode = cmp.Or(t.task.Sandbox.Confined.ACPMode, mode)
	}
	if mode != "" {
		if err := t.client.SetMode(ctx, s, mode); err != nil {
			return fmt.Errorf("mode %s: %w", mode, err)
		}
	}
	model := t.task.Model
	if model == "" {
		return nil
	}
	err := t.client.SetModel(ctx, s, model)
	switch {
	case errors.Is(err, acp.ErrModel):
		return nil
	case err != nil:
		return fmt.Errorf("model %s: %w", model, err)
	}
	t.mu.Lock()
	t.model = model
	t.mu.Unlock()
	return nil
}

// watch notes when the agent was heard, and reports the use of the context.
func (t *talk) watch(ctx context.Context) {
	var reported time.Time
	var shown, counted int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.client.Changed():
		}
		now := time.Now()
		t.a.heard.Store(now.UnixNano())
		if turn := t.turn(); turn.UsageFrom != schemas.UsageFromProxy { // the proxy lets the last request end
			if why := overBudget(t.task.Budget, turn); why != "" {
				t.a.spend(why)
			}
		}
		s, used := t.client.State(), int64(0)
		if n := turnTokens(&s); n != nil {
			used = n.Input() + n.OutputTokens
		}
		if t.a.describeMarks() || used != counted || s.ContextUsed != shown && now.Sub(reported) >= reportEvery {
			reported, shown, counted = now, s.ContextUsed, used
			t.report()
		}
	}
}

// idle reports whether the agent waits for nothing that it has announced. Silence is normal while a tool runs, or a permission is
// awaited.
func (t *talk) idle() bool {
	s := t.client.State()
	return s.Idle()
}

// cancel cancels the turn and waits for its end. It returns with the conversation over.
func (t *talk) cancel(wait time.Duration) {
	t.mu.Lock()
	session := t.session
	t.mu.Unlock()
	if session != "" && t.client.Cancel(session) == nil {
		waitFor(t.done, t.a.job.hurry, wait)
	}
	t.stop()
	<-t.done
}

// over returns a channel that is closed when the conversation is over. That of an agent that has ended is, once its output
// is read.
func (t *talk) over(ended <-chan struct{}) <-chan struct{} {
	go func() {
		select {
		case <-t.done:
			return
		case <-ended:
		}
		if !waitFor(t.client.Done(), nil, drainTime) { // another process has its output open
			t.stop()
		}
	}()
	return t.done
}

// hangUp ends the conversation and closes the agent's input, which asks it to end. c is why the turn was stopped; nil: it was
// over. It waits for the agent's end, and returns true, unless reconcile itself ends.
func (t *talk) hangUp(ended <-chan struct{}, c *cause) bool {
	switch {
	case c != nil && c.outcome == "":
		t.cancel(interruptWait)
		t.client.Close()
		return false
	case c != nil:
		t.cancel(cancelWait)
	}
	t.client.Close()
	timer := time.NewTimer(t.a.runner.grace())
	defer timer.Stop()
	select {
	case <-ended:
	case <-t.a.runner.closing:
	case <-timer.C:
	}
	return true
}

// finish returns when everything that the agent wrote is read. Its processes are gone.
func (t *talk) finish() {
	if t.from.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		t.from.Close() // no deadlines here: cut it off at once
	}
	<-t.client.Done()
	t.stop()
	<-t.done
	t.from.Close()
	t.endLine()
}

// Observe writes what happens to the log. The client calls it one after the other.
func (t *talk) Observe(e acp.Event) {
	if e.Kind == acp.EventUsage {
		t.mu.Lock()
		session := t.session
		t.mu.Unlock()
		t.a.noteContext(&schemas.Usage{ContextUsed: e.Used, ContextWindow: e.Size}, session, e.Text)
		return
	}
	if e.Kind == acp.EventText {
		t.log.feed([]byte(e.Text))
		return
	}
	t.endLine()
	if e.Kind == acp.EventTool {
		t.a.meter.noteTool(e.Text)
	}
	if e.Text != "" {
		t.log.feed([]byte("[" + e.Kind + "] " + e.Text + "\n"))
	}
}

// endLine ends a line that has begun.
func (t *talk) endLine() {
	if len(t.log.carry) > 0 {
		t.log.feed([]byte("\n"))
	}
}

// report reports the state of the running turn.
func (t *talk) report() {
	t.a.runner.progress(t.a.job.effect.Key, t.turn())
}

// turn is the record of the turn so far.
func (t *talk) turn() *schemas.Turn {
	t.mu.Lock()
	client := t.client
	t.mu.Unlock()
	if client == nil {
		return nil
	}
	s := client.State()
	t.mu.Lock()
	defer t.mu.Unlock()
	clean := t.a.runner.clean
	turn := &schemas.Turn{Runner: schemas.RunnerACP, Profile: t.task.ProfileName, SessionID: clean(t.session),
		Model: clean(cmp.Or(s.Model, t.model)), ToolCalls: s.ToolCalls, CostUSD: s.Cost, Permissions: t.askedFor(),
		Marks: t.a.meter.all(), Steered: slices.Clone(t.steered)}
	turn.SessionCostUSD = s.Cost
	if b := t.task.Resumes; b != nil && b.SessionID == t.session {
		turn.CostUSD = turns.SessionCost(s.Cost, b)
	}
	turn.Usage = usageOf(&s)
	if turn.Usage != nil {
		turn.UsageFrom = schemas.UsageFromAgent
	}
	t.a.addMetered(turn)
	return turn
}

// usageOf returns what the agent reported; nil for nothing.
func usageOf(s *acp.State) *schemas.Usage {
	u := schemas.Usage{ContextUsed: s.ContextUsed, ContextWindow: s.ContextSize}
	if n := turnTokens(s); n != nil {
		u.InputTokens, u.OutputTokens = n.Input(), n.OutputTokens
		u.CachedInputTokens, u.CacheWriteTokens = n.CachedReadTokens, n.CachedWriteTokens
	}
	if u == (schemas.Usage{}) {
		return nil
	}
	return &u
}

// turnTokens are those of the turn's answer, else of the parts of its messages; nil if the agent counted none.
func turnTokens(s *acp.State) *acp.Usage {
	if s.Usage != nil {
		return s.Usage
	}
	return s.Chunks
}

// concludeTurn fills in the record after the end of an agent. An error fails the run.
func (a *attempt) concludeTurn(end exit, b *buffers) error {
	t := a.talk
	if t.isUnanswered() {
		return a.notPermitted("")
	}
	if f := (*fault)(nil); errors.As(t.err, &f) {
		return f
	}
	s := t.client.State()
	b.capture = append(b.capture[:0], s.Text...)
	a.said = t.answer != nil
	at := a.runner.o.Now()
	facts := t.facts(&s, at)
	a.addWire(&facts)
	if end.stopped != nil {
		facts.Silent, facts.Spent = end.stopped.silent, end.stopped.spent
	}
	turn := a.record.Turn
	if turn.StopReason = a.runner.clean(facts.StopReason); facts.StopReason == "" && facts.Dead && end.lost == nil {
		facts.Text = describeExit(end.status)
	}
	if f := turns.Judge(facts); f != nil {
		f.Message = a.runner.clean(f.Message)
		turn.Failure = f
		return errors.New(turns.Describe(f, at) + t.hint(facts))
	}
	return a.fillRecord(end, b)
}

// hint adds to a failure what the user can know of its cause.
func (t *talk) hint(f turns.Facts) string {
	switch {
	case f.Dead && f.Text != "":
		return " (" + f.Text + ")"
	case f.Error != nil || f.Silent > 0:
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range slices.Backward(t.permissions) {
		if p.Decision == acp.RejectOnce || p.Decision == acp.RejectAlways {
			return fmt.Sprintf("; it was refused %q", p.Title)
		}
	}
	return ""
}

// facts are the observations of the turn's end.
func (t *talk) facts(s *acp.State, at time.Time) turns.Facts {
	f := turns.Facts{Runner: schemas.RunnerACP, At: at, Text: s.Text}
	if n := turnTokens(s); n != nil {
		f.OutputTokens = &n.OutputTokens
	}
	if t.answer != nil {
		f.StopReason = t.answer.StopReason
	}
	wire := (*acp.Error)(nil)
	switch {
	case errors.As(t.err, &wire):
		d := wire.Details()
		f.Error = &turns.Error{Kind: d.Kind, Code: wire.Code, Status: d.Status, Message: cmp.Or(d.Message, wire.Message), RetryAfter: d.RetryAfter}
	case errors.Is(t.err, acp.ErrClosed), errors.Is(t.err, context.Canceled):
		f.Dead = true
	case t.err != nil:
		f.Error = &turns.Error{Kind: schemas.FailureRequest, Message: t.err.Error()}
	case s.Failure != nil:
		f.Error = &turns.Error{Kind: s.Failure.Category, Message: cmp.Or(s.Failure.Title, s.Failure.Message)}
		if more := s.Failure.Details; more != "" {
			f.Error.Message += ": " + more
		}
	}
	return f
}
