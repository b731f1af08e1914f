package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/limits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// cause is why a run is stopped. Without an outcome it is an interruption: nothing is recorded.
type cause struct {
	outcome string
	message string
	silent  time.Duration // how long it had printed nothing; 0: not the cause
	spent   string        // what of its budget it had used up; "": not the cause
}

// attempt is one execution of a job.
type attempt struct {
	runner *Runner
	runs   *schemas.RunSettings // as they were at its start
	job    *job
	task   *settle.Command
	talk   *talk // with an agent that speaks a protocol; nil for a command
	// dialogue is the conversation with a model at an HTTP endpoint; nil for a program.
	dialogue *dialogue
	// delivery is the request to a webhook; nil for everything else.
	delivery *webhookDelivery
	endpoint Endpoint // of a run whose requests are metered; nil if they are not, and before they are
	record   schemas.Run
	lease    *lease
	sink     *sink
	work     []*workFile
	input    *os.File // feeds stdin in the background; may be nil
	command  command
	memory   string // the agent's recall of earlier work
	// observed are the observations that the agent reported.
	observed []schemas.ObservationEntry
	place    place
	read     []string         // the variables whose values were read at the start, "K=V"
	reader   *profiles.Reader // of an agent with a profile; else nil
	meter    meter            // of the use of an agent's context
	heard    atomic.Int64     // when the command last printed, in Unix nanoseconds
	said     bool             // the agent's output is complete
	spent    chan string      // gets what of its budget the turn has used up
	// continued says that the command continues a session, and resumes is the recorded turn that had it; nil: that of an interrupted run.
	continued bool
	resumes   *schemas.Turn
	prompt    string // what the agent reads
	token     string // of the run, which proves that a process belongs to it
	// policy is what the command may do; nil: it is not confined. confined is the program that was started last, scratch its folder for
	// temporary files, and broker does for it what the sandbox keeps it from.
	policy *sandbox.Policy
	// exposed says that the policy grants all of the tree, since its level knows no exceptions.
	exposed  bool
	confined *sandbox.Confined
	bound    *limits.Limit // what bounds the use of memory and processors; nil: nothing does
	scratch  string
	broker   *broker
	// interrupted is why the record is missing; "" if it exists.
	interrupted string
	warning     string // a note that is not part of the record
}

// noWait is how soon after it is queued an effect must start for its record to say that it did not wait.
const noWait = 10 * time.Millisecond

// run performs a job and returns its report.
func (r *Runner) run(j *job, b *buffers) settle.Report {
	report := settle.Report{Kind: settle.Released, Key: j.effect.Key}
	task, turn := j.effect.Command(), j.effect.Turn()
	if task == nil {
		report.Kind, report.At, report.Err = settle.Broken, r.o.Now(), fmt.Errorf("effect %s: a task of type %T cannot be performed here", j.effect.Key, j.effect.Task)
		return report
	}
	a := &attempt{runner: r, runs: r.runs.Load(), job: j, task: task, record: j.effect.Claim(), place: place{dir: r.dir, root: r.root}, spent: make(chan string, 1)}
	if turn != nil {
		a.talk = &talk{a: a, task: turn, done: make(chan struct{})}
	}
	if turn, ok := j.effect.Task.(*settle.HTTPTurn); ok {
		a.dialogue = &dialogue{a: a, task: turn}
	}
	if hook, ok := j.effect.Task.(*settle.Webhook); ok {
		a.delivery = &webhookDelivery{a: a, task: hook}
	}
	defer func() { r.secrets.reveal(a.token) }()
	a.record.Again = nil // only claims have it
	a.record.StartedAt = schemas.NewTime(r.o.Now())
	if a.record.StartedAt.Sub(j.effect.QueuedAt.Time) >= noWait {
		a.record.QueuedAt = j.effect.QueuedAt
	}
	err := a.hold()
	if err == nil && !a.givenUp() {
		if report.Missing = a.missing(); len(report.Missing) > 0 {
			a.job.end(cause{message: "the outputs that it needs are not here"})
			a.givenUp()
		} else {
			err = a.perform(b)
			if err != nil || a.record.Outcome != schemas.OutcomeSucceeded {
				a.removeTorn()
			}
		}
	}
	report.At = r.o.Now()
	if held := (*heldError)(nil); errors.As(err, &held) {
		report.Kind, report.Why = settle.Held, held.Error()
		return report
	}
	if a.interrupted != "" {
		report.Why = a.interrupted
		a.record.FinishedAt = schemas.NewTime(report.At)
		report.Run = settle.Interrupted(&a.record, r.marks.runner, a.interrupted)
		return report
	}
	if fault := faultIn(err); fault != nil {
		report.Kind, report.Err = settle.Broken, fault
		return report
	}
	if err != nil {
		a.record.Outcome, a.record.Message = schemas.OutcomeFailed, r.clean(err.Error())
	}
	a.record.FinishedAt = schemas.NewTime(report.At)
	a.learn(b)
	report.Kind, report.Run, report.Why = settle.Finished, &a.record, a.warning
	return report
}

// givenUp reports whether the job was cancelled before its command started. Then the lease is released.
func (a *attempt) givenUp() bool {
	select {
	case c := <-a.job.stop:
		a.interrupted = c.message
		a.lease.free() //nolint:errcheck // nobody else has it
		return true
	default:
		return false
	}
}

// hold takes the lease; processes of an earlier run that still hold it are ended first.
func (a *attempt) hold() (err error) {
	if err = checkKey(a.job.effect.Key); err != nil {
		return err
	}
	a.lease, err = a.runner.leases.take(a.job.effect.Key)
	if !errors.Is(err, errLeaseTaken) {
		return asFault(err)
	}
	a.runner.mu.Lock()
	a.runner.begun(a.job) // this may take long
	a.runner.mu.Unlock()
	if err = a.runner.reap(a.runner.closing, []*tree{a.runner.treeOf(a.job.effect.Key, 0)}); err != nil {
		return err
	}
	a.lease, err = a.runner.leases.take(a.job.effect.Key)
	if errors.Is(err, errLeaseTaken) {
		return &heldError{Keys: []string{a.job.effect.Key}}
	}
	return asFault(err)
}

// perform runs the command under the held lease, and fills in the record. An error means that the command could not be
// run, or that its declared results are missing.
func (a *attempt) perform(b *buffers) error {
	a.sink = a.newSink()
	defer a.sink.close()
	err := a.openWorkspace()
	if a.interrupted != "" {
		a.lease.free() //nolint:errcheck // nothing was started
		return nil
	}
	defer a.closeWorkspace()
	defer a.closeMeter()
	defer a.unconfine()
	defer func() { a.bound.Close() }()
	if err == nil {
		err = a.prepare()
	}
	if err == nil {
		err = asFault(a.runner.o.Durable())
	}
	if err == nil {
		err = a.executeWatched(b)
	}
	a.removeWork()
	a.record.Output, a.record.Log, a.warning = a.sink.finish()
	err = a.endLimits(err)
	a.noteChanges()
	a.showText(b)
	a.estimate(b)
	if (a.talk != nil || a.dialogue != nil) && a.record.Turn != nil {
		a.record.Turn.Transcript = a.record.Log
	}
	if !a.lease.freed { // no command was started, or it could not be ended
		a.lease.free() //nolint:errcheck // at the latest it ends with this process and the command's
	}
	return err
}

// exit is how a command ended.
type exit struct {
	stopped *cause // the reason why it was stopped; nil: it ended on its own
	status  exitStatus
	left    int   // remaining processes that were ended
	lost    error // why the status is unknown
	stuck   error // processes that could not be ended
}

// limit is when a run is out of time.
type limit struct {
	cause
	after time.Duration
	work  bool // the time in which a person is waited for does not count
}

// limit returns the earliest of the task's timeout, the time of its budget and its deadline; nil if it has none.
func (a *attempt) limit() *limit {
	var l *limit
	if t := a.task.Timeout; t > 0 {
		l = &limit{cause{outcome: schemas.OutcomeTimedOut, message: fmt.Sprintf("timed out after %s", t)}, t, true}
	}
	if b := a.budgetLimit(); b != nil && (l == nil || b.after < l.after) {
		l = b
	}
	if a.task.Deadline.IsZero() {
		return l
	}
	if d := a.task.Deadline.Sub(a.runner.o.Now()); l == nil || d < l.after {
		l = &limit{cause{outcome: schemas.OutcomeTimedOut, message: fmt.Sprintf("the time for the whole of %s is over; this run was "+
			"ended after %s", a.job.effect.Owner, max(d, 0).Round(time.Millisecond))}, d, false}
	}
	return l
}

// quickRun is the duration up to which the process table is not searched for a run's tree, which costs milliseconds, if its
// lease is free and its group is empty. Close ends processes that evade both.
const quickRun = 200 * time.Millisecond

// isSilent reports whether the command has printed nothing for too long. While a tool of an agent runs, silence is normal, and begins after it.
func (a *attempt) isSilent(now time.Time) bool {
	if a.reader != nil && a.reader.ToolRuns() || a.talk != nil && !a.talk.idle() || a.dialogue != nil && a.dialogue.busy.Load() {
		a.heard.Store(now.UnixNano()) // what ends the tool may be heard later than it ends
		return false
	}
	return now.Sub(time.Unix(0, a.heard.Load())) >= a.task.Silence
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// prepare checks the preconditions of the start, and creates the files that the command reads.
func (a *attempt) prepare() (err error) {
	if a.delivery != nil {
		return a.delivery.prepare()
	}
	if a.dialogue == nil && (len(a.task.Argv) == 0 || a.task.Argv[0] == "") {
		return errors.New("no program is given")
	}
	if a.command.dir, err = a.workingDir(); err != nil {
		return err
	}
	if err = a.removeStaleResult(); err != nil {
		return err
	}
	if err = errors.Join(a.writeNeeds(), a.writeRecall(), a.issueToken()); err != nil {
		return asFault(err)
	}
	if err = a.readVariables(); err != nil {
		return err
	}
	a.command.env = a.environment()
	a.chooseProgram()
	if a.talk != nil {
		if err = a.talk.readServers(); err != nil {
			return err
		}
	}
	if err = a.openMeter(); err != nil {
		return err
	}
	if a.command.stdin, err = a.stdin(); err != nil {
		return err
	}
	if a.prompt = a.command.stdin; a.dialogue != nil {
		return nil
	}
	if err = a.confine(); err != nil {
		return err
	}
	a.beginLimits()
	a.setArguments()
	a.pointArguments()
	a.command.path, err = a.runner.found.find(a.task.Argv[0], a.command.dir, lookup(a.command.env, "PATH"))
	return err
}

// absolute returns the absolute path of a slash path below the root.
func (r *Runner) absolute(p string) string { return filepath.Join(r.dir, filepath.FromSlash(p)) }

// reportStart reports that j runs, and since when: report and record agree, so that a status rebuilt from records is the
// same.
func (r *Runner) reportStart(j *job, pid int) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = true
	j.started, j.since = true, r.o.Now()
	r.post(settle.Report{Kind: settle.Started, Key: j.effect.Key, At: j.since, PID: pid, Step: j.effect.Step()})
	r.begun(j)
	return j.since
}

// conclude fills in the record after the command's end. An error fails a run that seemed to succeed.
func (a *attempt) conclude(end exit, b *buffers) error {
	if a.dialogue != nil {
		a.record.Turn = a.dialogue.turn()
	}
	read := a.readTurn(b)
	if a.talk != nil {
		a.record.Turn = a.talk.turn()
	}
	switch {
	case end.stopped != nil && end.stopped.outcome == "":
		a.interrupted = end.stopped.message
		return nil
	case a.delivery != nil:
		return a.delivery.conclude(end)
	case a.dialogue != nil:
		return a.dialogue.conclude(end, b)
	}
	if t := a.record.Turn; t != nil {
		a.noteContext(t.Usage, t.SessionID, string(b.capture))
		a.describeMarks()
		t.Marks = a.meter.all()
	}
	switch {
	case a.talk != nil && (end.stopped == nil || end.stopped.silent > 0 || end.stopped.spent != "" ||
		end.stopped.outcome == schemas.OutcomeNotPermitted):
		return a.concludeTurn(end, b)
	case end.stopped != nil:
		a.concludeStopped(end, read)
		return nil
	case end.lost != nil:
		return fmt.Errorf("the system did not tell how the command ended: %w", end.lost)
	}
	a.said = true
	code := exitCode(end.status)
	a.record.ExitCode = &code
	if code != 0 && !a.isAgent() {
		return errors.New(describeExit(end.status))
	}
	if a.isAgent() {
		if err := a.judge(turns.Facts{ExitCode: &code, Exit: describeExit(end.status), Output: a.checkText(b.capture), Error: a.reportedError(b.capture)}, read); err != nil {
			if a.lostSession() {
				a.interrupted = "the agent does not have the session any more; it begins a new one"
				return a.runner.saveSession(a, "")
			}
			return err
		}
	}
	return a.fillRecord(end, b)
}

// executeWatched executes the attempt and fills in its record. A run that nothing confined fails if it wrote outside of its workspace, and
// one in the tree itself if it wrote there what only people and reconcile write.
func (a *attempt) executeWatched(b *buffers) error {
	if a.place.ws == nil {
		a.runner.inTreeNow.Add(1)
		a.runner.inTree.Add(1) // in this order, so that who counts them in the other one misses none that works
		defer a.runner.inTreeNow.Add(-1)
	}
	if a.unconfined() {
		if err := state.MarkUnconfined(a.runner.root, a.job.effect.Key); err != nil {
			return err
		}
	}
	others, shared := a.runner.inTree.Load(), a.runner.inTreeNow.Load() > 0 // before the first look
	changed, err := a.watch()
	if err != nil {
		return fmt.Errorf("watch what a run writes: %w", err)
	}
	end, err := a.execute(b)
	if changed != nil && err == nil {
		shared = shared || others != a.runner.inTree.Load()
		paths, err := changed(context.Background(), shared)
		if err != nil {
			return fmt.Errorf("find what a run wrote: %w", err)
		}
		if len(paths) > 0 {
			return a.failOutside(paths)
		}
	}
	if err != nil {
		return err
	}
	return a.conclude(end, b)
}

// watch records the state of the files that the attempt must not write and could; nil if its sandbox protects all of them.
func (a *attempt) watch() (changed func(context.Context, bool) ([]string, error), err error) {
	switch {
	case !a.exposed && a.record.Sandbox != schemas.SandboxNone:
		return nil, nil
	case a.place.ws != nil:
		return a.place.ws.Watch(context.Background())
	case a.runner.o.Workspaces != nil:
		return a.runner.o.Workspaces.WatchTree(context.Background())
	}
	return nil, nil
}
