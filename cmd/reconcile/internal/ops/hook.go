package ops

import (
	"context"
	"errors"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// HookRequest reports that an agent starts or ends work outside of reconcile.
type HookRequest struct {
	Agent  string // in a run of an agent: that agent
	Issue  *int   // the issue of the work; 0: none
	Finish bool
	Note   string // for the record
	NoRun  bool   // only write the record

	Transcript *Text  // the conversation of the finished work; nil: none
	Session    string // of the conversation; "": the one that it names
}

// HookResult is the information for the agent.
type HookResult struct {
	Agent string `json:"agent"`
	Issue int    `json:"issue"`
	// Outcome is Started or Done, Record the key of the record.
	Outcome string `json:"outcome"`
	Record  string `json:"record"`
	// Memory is the recall of earlier work, at a start: the section "## Memory Recall", or "".
	Memory string `json:"memory,omitempty"`
	// Learned is the capture at the end; absent without a conversation.
	Learned *Learned `json:"learned,omitempty"`
	threads.Brief

	Verdict Code `json:"-"` // Busy if the capture is written and not yet in the memory
}

// Hook records that an agent starts or ends its work on an issue, and runs the tree once. It returns what blocks the
// agent, answers to its questions, and questions that wait for it. An end releases what the agent claimed for the issue
// with [Claim].
func Hook(ctx context.Context, env Env, q HookRequest) (r HookResult, err error) {
	if r.Agent, err = env.Caller.Worker(q.Agent); err != nil {
		return r, typed(err)
	}
	if r.Outcome = schemas.OutcomeStarted; q.Finish {
		r.Outcome = schemas.OutcomeDone
	}
	if err := q.check(r.Agent); err != nil {
		return r, typed(err)
	}
	r.Issue = *q.Issue
	env.Tree.Collector.Aim(process.GCLatency)
	var said *conversation
	if q.Transcript != nil {
		if said, err = readConversation(*q.Transcript, q.Session); err != nil {
			return r, typed(err)
		}
	}
	o, err := env.openChanged(ctx)
	if err != nil {
		return r, typed(err)
	}
	defer o.store.Close()
	note := env.redact("--note", q.Note)
	if q.Finish { // before the work counts as done, so that the capture is not lost
		if _, err = findAgent(o.tree, r.Agent); err == nil {
			r.Learned, err = env.learnSession(ctx, o.store, r.Agent, r.Issue, said)
		}
		if err != nil {
			return r, typed(err)
		}
	}
	var since schemas.Time
	var left []schemas.Clarification
	err = o.recordHook(ctx, func(t *state.Tree) (*schemas.Run, error) {
		agent, err := findAgent(t, r.Agent)
		if err != nil {
			return nil, err
		}
		if last := agents.LastHook(agent); last != nil {
			since = last.FinishedAt
		}
		if !q.Finish {
			left = threads.LeftBehind(t, r.Agent, r.Issue)
		}
		run := agents.NewHook(agent, r.Outcome, r.Issue, env.Tree.Now())
		run.Message, r.Record = note, run.Key
		return &run, nil
	})
	if err != nil {
		return r, typed(err)
	}
	whole, err := env.update(ctx, o, q.NoRun, engine.Request{})
	if err != nil {
		return r, typed(err)
	}
	if r.Learned != nil && r.Learned.Held && whole {
		env.noteSettled(ctx, o.store, r.Issue, r.Learned)
	}
	if r.Learned != nil && r.Learned.Held {
		r.Verdict = Busy
	}
	r.Brief = threads.NewBrief(o.tree, r.Agent, r.Issue, since, left)
	if !q.Finish {
		r.Memory = env.recallFor(ctx, o.store, o.tree, r.Agent, r.Issue)
	}
	return r, nil
}

func (q *HookRequest) check(agent string) error {
	word := "start"
	if q.Finish {
		word = "finish"
	}
	if err := specs.CheckSecret("--session", q.Session); err != nil {
		return err
	}
	const most = 1000
	switch {
	case agent == "" || q.Issue == nil:
		return badRequest("reconcile hook %s needs --agent and --issue; for example: "+
			"reconcile hook %[1]s --agent engineer --issue 42", word)
	case len(q.Note) > most:
		return badField("note", " has %d bytes, at most %d are allowed", len(q.Note), most)
	case q.Session != "" && schemas.CheckName(q.Session) != nil:
		return badField("session", " %q: %v", q.Session, schemas.CheckName(q.Session))
	case q.Session != "" && q.Transcript == nil:
		return badField("session", " says whose conversation --transcript is, and there is none; add --transcript FILE")
	}
	return nil
}

// recordHook writes the hook record that decide returns for the tree, which is read under its lock: concurrent
// decisions see each other's records. If decide returns nil, nothing is written.
func (o *openTree) recordHook(ctx context.Context, decide func(*state.Tree) (*schemas.Run, error)) (err error) {
	lock, err := o.store.Lock(ctx)
	if err != nil {
		return lockTimeout(err, "nothing was recorded, try again")
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := o.refresh(ctx, nil); err != nil {
		return err
	}
	r, err := decide(o.tree)
	if err != nil || r == nil {
		return err
	}
	data, err := state.EncodeRun(r)
	if err != nil {
		return err
	}
	_, err = o.store.Write(ctx, []state.Change{{Path: o.store.RunPath(r.Key), Data: data}})
	return err
}
