package runner

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

const (
	toolsNoted = 20   // tool calls in a mark
	filesNoted = 100  // changed files in one
	saidNoted  = 2000 // bytes of the last message
	// changesTime bounds how long the changed files of a workspace are looked for.
	changesTime = 10 * time.Second
)

// meter notes the shares of an agent's context that its turn reaches. Its zero value is ready; it is safe for concurrent use.
type meter struct {
	mu    sync.Mutex
	tools []string // the latest tool calls
	marks []schemas.ContextMark
	// described counts the marks that have the changed files.
	described int
}

// noteTool notes a tool call by its title.
func (m *meter) noteTool(title string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tools = append(m.tools, title); len(m.tools) > toolsNoted {
		m.tools = slices.Delete(m.tools, 0, 1)
	}
}

// all returns the marks so far.
func (m *meter) all() []schemas.ContextMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.marks)
}

// reaches returns the highest share of a plan that the usage has reached, and no mark has yet; 0: none.
func (m *meter) reaches(plan *settle.Context, u *schemas.Usage) int {
	if plan == nil {
		return 0
	}
	share, reached := (&schemas.Turn{Usage: u}).ContextShare(plan.Window), 0
	for _, at := range plan.Marks {
		if at <= share {
			reached = at
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.marks); n > 0 && m.marks[n-1].Percent >= reached {
		return 0
	}
	return reached
}

// noteContext notes the highest share of its context that an agent has reached, once, with the state of its work. It does not
// wait.
func (a *attempt) noteContext(u *schemas.Usage, session, said string) {
	reached := a.meter.reaches(a.task.Context, u)
	if reached == 0 {
		return
	}
	clean := a.runner.clean
	mark := schemas.ContextMark{Percent: reached, At: schemas.NewTime(a.runner.o.Now()), Used: u.ContextUsed,
		Window: cmp.Or(u.ContextWindow, int64(a.task.Context.Window)), Session: clean(session), Said: clean(ending(said, saidNoted))}
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	for _, title := range a.meter.tools {
		mark.Tools = append(mark.Tools, clean(title))
	}
	a.meter.marks = append(a.meter.marks, mark)
}

// describeMarks adds the changed files to the marks that are new since its last call, and reports whether there are any.
func (a *attempt) describeMarks() bool {
	m := &a.meter
	m.mu.Lock()
	fresh := len(m.marks) > m.described
	m.mu.Unlock()
	if !fresh {
		return false
	}
	files := a.changedFiles()
	m.mu.Lock()
	defer m.mu.Unlock()
	for ; m.described < len(m.marks); m.described++ {
		m.marks[m.described].Files = files
	}
	return true
}

// changedFiles are the first files that differ in the workspace; nil where that is not known.
func (a *attempt) changedFiles() []string {
	if a.place.ws == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), changesTime)
	defer cancel()
	files, _, err := a.place.ws.Changes(ctx)
	if err != nil {
		return nil
	}
	files = files[:min(len(files), filesNoted)]
	for i, name := range files {
		files[i] = a.runner.clean(name)
	}
	return files
}

// noteChanges adds what differs in the workspace to the record of a turn that was ended, or handed the rest of the task off.
func (a *attempt) noteChanges() {
	ended := a.record.Outcome == schemas.OutcomeCancelled || a.record.Outcome == schemas.OutcomeHandedOff
	if !ended || a.place.ws == nil || !a.isAgent() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), changesTime)
	defer cancel()
	_, diff, err := a.place.ws.Changes(ctx)
	if err != nil {
		return // the record does without
	}
	a.record.Changes = preview.Changes(string(diff))
	for i := range a.record.Changes {
		c := &a.record.Changes[i]
		c.Path, c.Summary = a.runner.clean(c.Path), a.runner.clean(c.Summary)
	}
}

// liveReader reads the output of an agent's program as it comes, and reports the use of its context.
type liveReader struct {
	sessionWriter
	reported time.Time
	shown    int64 // of its context
	used     int64 // tokens
}

// Write implements io.Writer. It never fails.
func (l *liveReader) Write(p []byte) (int, error) {
	n, err := l.sessionWriter.Write(p)
	turn := l.a.reader.Turn()
	u := turn.Usage
	if u == nil {
		u = turn.SessionUsage
	}
	if u == nil {
		return n, err
	}
	now := time.Now()
	l.a.noteContext(u, turn.SessionID, l.a.reader.LastText())
	used := u.InputTokens + u.OutputTokens
	if l.a.describeMarks() || used != l.used || u.ContextUsed != l.shown && now.Sub(l.reported) >= reportEvery {
		l.reported, l.shown, l.used = now, u.ContextUsed, used
		if turn.Usage, turn.Marks = u, l.a.meter.all(); turn.SessionUsage != nil {
			turn.Usage = profiles.TurnUsage(turn.SessionUsage, l.a.resumes)
		}
		l.a.addMetered(&turn)
		turn.Profile, turn.Runner = l.a.task.ProfileName, schemas.RunnerCommand
		turn.Model, turn.SessionID, turn.StopReason = l.a.brief(turn.Model), l.a.brief(turn.SessionID), ""
		l.a.runner.progress(l.a.job.effect.Key, &turn)
	}
	return n, err
}

// progress reports the state of a running turn.
func (r *Runner) progress(key string, turn *schemas.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.post(settle.Report{Kind: settle.Progressed, Key: key, At: r.o.Now(), Turn: turn})
}
