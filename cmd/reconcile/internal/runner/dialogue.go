package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/chat"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
)

// dialogue is the conversation of one run with a model at an HTTP endpoint, in this process. A run that is killed begins again.
type dialogue struct {
	a    *attempt
	task *settle.HTTPTurn
	log  *stream
	busy atomic.Bool // a tool runs, or it waits to ask again
	// deadline is when the turn is out of time; zero: never.
	deadline time.Time
	// The outcome, final when the conversation is over.
	reply *chat.Reply // the last one
	calls int         // of tools
	err   error       // why there is no further reply
}

// errRequests says that the model wanted to go on.
var errRequests = errors.New("the turn has used up its maxRequests")

// execute converses under the supervision that commands have, and returns when the conversation is over.
func (d *dialogue) execute() (exit, error) {
	a := d.a
	limit := a.limit()
	if limit != nil && limit.after <= 0 {
		return exit{stopped: &limit.cause}, nil
	}
	if limit != nil {
		d.deadline = time.Now().Add(limit.after)
	}
	a.heard.Store(time.Now().UnixNano())
	d.log = &stream{clean: a.runner.newFilter(), sink: a.sink, longest: lineLimit}
	a.record.StartedAt = schemas.NewTime(a.runner.reportStart(a.job, 0))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		d.converse(ctx)
	}()
	var end exit
	end.stopped = a.waitOrStop(over, limit)
	cancel()
	a.endpoint.Close()
	<-over
	return end, nil
}

// converse takes the turn.
func (d *dialogue) converse(ctx context.Context) {
	a, t := d.a, d.task
	tools := d.tools()
	files := &chat.Files{Root: a.place.root, Clean: a.runner.clean}
	c := chat.New(chat.Endpoint{URL: a.endpoint.URL(), Token: a.endpoint.Token(), Wire: t.Wire, Model: t.Model, MaxTokens: t.MaxTokens,
		Completion: strings.HasPrefix(t.Metering.Upstream, "https://api.openai.com/"), Client: &http.Client{CheckRedirect: stay}, Listener: d}, tools, a.command.stdin)
	for range t.MaxRequests {
		d.reply, d.err = d.ask(ctx, c)
		d.endLine()
		if d.err != nil {
			return
		}
		if d.reply.Stop != chat.StopToolUse || len(d.reply.Calls) == 0 {
			return
		}
		c.Add(d.work(ctx, files, tools))
		if d.err = ctx.Err(); d.err != nil {
			return
		}
	}
	d.err = errRequests
}

// Hear logs a part of an answer as it arrives.
func (d *dialogue) Hear(text string) {
	d.a.heard.Store(time.Now().UnixNano())
	d.log.feed([]byte(text))
}

// endLine ends a line of the log that has begun.
func (d *dialogue) endLine() {
	if len(d.log.carry) > 0 {
		d.log.feed([]byte("\n"))
	}
}

// stay keeps a client from following an endpoint elsewhere.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// tools are those that the model gets. It writes only in a workspace.
func (d *dialogue) tools() []chat.Tool {
	may := d.task.Tools
	if may == schemas.ToolsWrite && d.a.place.ws == nil {
		may = schemas.ToolsRead
		d.log.feed([]byte("[tools] write_file is not offered, since the run has no workspace of its own\n"))
	}
	return chat.Tools(may)
}

// work performs the calls of the last reply.
func (d *dialogue) work(ctx context.Context, files *chat.Files, tools []chat.Tool) (results []chat.Result) {
	d.busy.Store(true)
	defer d.busy.Store(false)
	for _, call := range d.reply.Calls {
		d.calls++
		d.a.meter.noteTool(call.Name)
		d.log.feed([]byte(fmt.Sprintf("[tool] %s %s\n", call.Name, d.a.brief(string(call.Args)))))
		if ctx.Err() != nil {
			return nil
		}
		results = append(results, files.Run(tools, call))
	}
	d.a.heard.Store(time.Now().UnixNano())
	return results
}

// turn is the record of the turn.
func (d *dialogue) turn() *schemas.Turn {
	t := &schemas.Turn{Runner: schemas.RunnerHTTP, ToolCalls: d.calls, Marks: d.a.meter.all()}
	d.a.addMetered(t)
	if t.Model == "" {
		t.Model = d.task.Model
	}
	if d.reply != nil {
		t.StopReason = d.a.brief(d.reply.Stop)
	}
	return t
}

// conclude fills in the record after the end of the conversation. An error fails the run.
func (d *dialogue) conclude(end exit, b *buffers) error {
	a := d.a
	if s := end.stopped; s != nil && s.silent == 0 && s.spent == "" {
		a.record.Outcome, a.record.Message = s.outcome, a.runner.clean(s.message)
		if s.outcome == schemas.OutcomeTimedOut {
			f := turns.Facts{Runner: schemas.RunnerHTTP, At: a.runner.o.Now(), Late: a.record.Message}
			a.addWire(&f)
			a.record.Message = lateMessage(a.record.Message, d.fail(turns.Judge(f), f.At))
		}
		return nil
	}
	f := turns.Facts{Runner: schemas.RunnerHTTP, At: a.runner.o.Now()}
	a.addWire(&f)
	switch {
	case end.stopped != nil:
		f.Silent, f.Spent = end.stopped.silent, end.stopped.spent
	case errors.Is(d.err, errRequests):
		f.StopReason = "max_turn_requests"
	case d.err != nil && f.Wire != nil:
		f.Error = f.Wire
	case d.err != nil && f.Over == "":
		f.Error = &turns.Error{Kind: schemas.FailureService, Message: d.err.Error()}
	}
	if d.err == nil && d.reply != nil {
		f.StopReason, f.Text = d.reply.Stop, d.reply.Text
		if one := int64(1); f.OutputTokens == nil && strings.TrimSpace(d.reply.Text) != "" {
			f.OutputTokens = &one // the text is the proof, where the endpoint counts nothing
		}
		b.capture = append(b.capture[:0], d.reply.Text[:min(len(d.reply.Text), a.runs.ResultLimit+1)]...)
		a.said = true
	}
	if v := turns.Judge(f); v != nil {
		return d.fail(v, f.At)
	}
	return a.fillRecord(end, b)
}

// fail records why the turn that ended at a time failed, and returns that as an error.
func (d *dialogue) fail(v *schemas.TurnFailure, at time.Time) error {
	v.Message = printable([]byte(d.a.runner.clean(v.Message)))
	d.a.record.Turn.Failure = v
	return errors.New(turns.Describe(v, at))
}
