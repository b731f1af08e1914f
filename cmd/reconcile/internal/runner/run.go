package runner

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// job is one submitted effect. since, running and started are guarded by Runner.mu.
type job struct {
	effect  settle.Effect
	since   time.Time
	running bool       // it has a slot
	started bool       // and a command has started
	stop    chan cause // at most one: the first reason to end the run
}

// cause is why a run is stopped. Without an outcome it is an interruption: nothing is recorded.
type cause struct {
	outcome string
	message string
	silent  time.Duration // how long it had printed nothing; 0: not the cause
}

func newJob(e settle.Effect, now time.Time) *job {
	return &job{effect: e, since: now, stop: make(chan cause, 1)}
}

// end requests the end of a running job; the first cause counts.
func (j *job) end(c cause) {
	select {
	case j.stop <- c:
	default:
	}
}

// attempt is one execution of a job.
type attempt struct {
	runner *Runner
	*job
	task    *settle.Command
	talk    *talk // with an agent that speaks a protocol; nil for a command
	record  schemas.Run
	lease   *lease
	sink    *sink
	work    []*workFile
	input   *os.File // feeds stdin in the background; may be nil
	command command
	memory  string // the agent's recall of earlier work
	// observed are the observations that the agent reported.
	observed []schemas.ObservationEntry
	place    place
	reader   *profiles.Reader // of an agent with a profile; else nil
	heard    atomic.Int64     // when the command last printed, in Unix nanoseconds
	said     bool             // the agent's output is complete
	// interrupted is the reason why there is no record; "" if there is one.
	interrupted string
	warning     string // a note that is not part of the record
}

// run performs a job and returns its report.
func (r *Runner) run(j *job, b *buffers) settle.Report {
	report := settle.Report{Kind: settle.Released, Key: j.effect.Key}
	task, turn := j.effect.Command(), j.effect.Turn()
	if task == nil {
		report.Kind, report.At, report.Err = settle.Broken, r.o.Now(), fmt.Errorf("effect %s: a task of type %T cannot be performed here", j.effect.Key, j.effect.Task)
		return report
	}
	a := &attempt{runner: r, job: j, task: task, record: j.effect.Claim(), place: place{dir: r.dir, root: r.root}}
	if turn != nil {
		a.talk = newTalk(a, turn)
	}
	a.record.Again = nil // only claims have it
	a.record.StartedAt = schemas.NewTime(r.o.Now())
	err := a.hold()
	if err == nil && !a.givenUp() {
		if report.Missing = a.missing(); len(report.Missing) > 0 {
			a.end(cause{message: "the outputs that it needs are not here"})
			a.givenUp()
		} else {
			err = a.perform(b)
			if err != nil || a.record.Outcome != schemas.OutcomeSucceeded {
				a.removeTorn()
			}
		}
	}
	report.At = r.o.Now()
	if held := (*HeldError)(nil); errors.As(err, &held) {
		report.Kind, report.Why = settle.Held, held.Error()
		return report
	}
	if a.interrupted != "" {
		report.Why = a.interrupted
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
	case c := <-a.stop:
		a.interrupted = c.message
		a.lease.free() //nolint:errcheck // nobody else has it
		return true
	default:
		return false
	}
}

// hold takes the lease; processes of an earlier run that still hold it are ended first.
func (a *attempt) hold() (err error) {
	if err = checkKey(a.effect.Key); err != nil {
		return err
	}
	a.lease, err = a.runner.leases.take(a.effect.Key)
	if !errors.Is(err, errLeaseTaken) {
		return asFault(err)
	}
	if err = a.runner.reap(a.runner.closing, []*tree{a.runner.treeOf(a.effect.Key, 0)}); err != nil {
		return err
	}
	a.lease, err = a.runner.leases.take(a.effect.Key)
	if errors.Is(err, errLeaseTaken) {
		return &HeldError{Keys: []string{a.effect.Key}}
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
	if err == nil {
		err = a.prepare()
	}
	if err == nil {
		err = asFault(a.runner.o.Durable())
	}
	if err == nil {
		var end exit
		if end, err = a.execute(b); err == nil {
			err = a.conclude(end, b)
		}
	}
	a.removeWork()
	a.record.Output, a.record.Log, a.warning = a.sink.finish()
	a.showText(b)
	if a.talk != nil && a.record.Turn != nil {
		a.record.Turn.Transcript = a.record.Log
	}
	if a.lease.file != nil { // no command was started, or it could not be ended
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

// execute starts the command, supervises it, and returns when its whole tree and its output have ended.
func (a *attempt) execute(b *buffers) (exit, error) {
	limit := a.limit()
	if limit != nil && limit.after <= 0 {
		return exit{stopped: &limit.cause}, nil
	}
	if a.task.Profile != nil {
		a.reader = profiles.NewReader(a.task.Profile)
	}
	a.heard.Store(time.Now().UnixNano())
	out, err := a.openOutput(b)
	if err != nil {
		return exit{}, asFault(err)
	}
	p, err := a.start(out)
	if err != nil {
		out.abandon()
		a.talk.abandon()
		return exit{}, a.explainStart(err)
	}
	a.record.StartedAt = schemas.NewTime(a.runner.reportStart(a.job, p.pid))
	out.pump(a.sink)
	if a.talk != nil {
		a.talk.begin()
	}
	end := a.supervise(p, limit)
	if a.input != nil {
		a.input.Close() // a remaining reader does not belong to the run
	}
	out.finish()
	if a.talk != nil {
		a.talk.finish()
	}
	return end, nil
}

// limit is when a run is out of time.
type limit struct {
	cause
	after time.Duration
}

// limit returns the earlier of the task's timeout and its deadline; nil if it has neither.
func (a *attempt) limit() *limit {
	var l *limit
	if t := a.task.Timeout; t > 0 {
		l = &limit{cause{outcome: schemas.OutcomeTimedOut, message: fmt.Sprintf("timed out after %s", t)}, t}
	}
	if a.task.Deadline.IsZero() {
		return l
	}
	if d := a.task.Deadline.Sub(a.runner.o.Now()); l == nil || d < l.after {
		l = &limit{cause{outcome: schemas.OutcomeTimedOut, message: fmt.Sprintf("the time for the whole of %s is over; this run was "+
			"ended after %s", a.effect.Owner, max(d, 0).Round(time.Millisecond))}, d}
	}
	return l
}

// quickRun is the duration up to which the process table is not searched for a run's tree, which costs milliseconds, if its
// lease is free and its group is empty. Close ends processes that evade both.
const quickRun = 200 * time.Millisecond

// supervise waits for the end of the command, or stops it, and then ends its tree.
func (a *attempt) supervise(p *process, l *limit) exit {
	ended := make(chan struct{})
	go func() {
		p.await()
		close(ended)
	}()
	var end exit
	began := time.Now()
	end.stopped = a.waitOrStop(ended, l)
	kill := time.Now().Add(a.runner.o.Grace)
	if a.talk != nil && a.talk.hangUp(ended, end.stopped) {
		kill = time.Now().Add(a.runner.o.Grace)
	}
	t := &tree{pid: p.pid, marks: a.runner.marks, key: a.effect.Key, lease: a.lease}
	h := a.runner.newHunt(t)
	if end.stopped != nil || !isClosed(ended) {
		if end.stuck = h.stopFirst(p.pid, ended, kill); end.stuck != nil {
			return end
		}
	}
	end.status, end.lost = p.reap()
	quick := end.stopped == nil && len(h.signalled) == 0 && time.Since(began) < quickRun
	if free, err := a.lease.free(); free && err == nil && quick && !t.groupLives() {
		return end
	}
	end.stuck = h.finish(a.runner.hurry, kill)
	end.left = len(h.signalled)
	return end
}

// isSilent reports whether the command has printed nothing for too long. While a tool of an agent runs, silence is normal.
func (a *attempt) isSilent(now time.Time) bool {
	if a.reader != nil && a.reader.ToolRuns() || a.talk != nil && !a.talk.idle() {
		return false
	}
	return now.Sub(time.Unix(0, a.heard.Load())) >= a.task.Silence
}

// waitOrStop returns nil if the command, or the turn of an agent, has ended on its own, else the reason to stop it.
func (a *attempt) waitOrStop(ended <-chan struct{}, l *limit) *cause {
	var late <-chan time.Time
	if l != nil {
		timer := time.NewTimer(l.after)
		defer timer.Stop()
		late = timer.C
	}
	over := ended
	if a.talk != nil {
		over = a.talk.over(ended)
	}
	var silent <-chan time.Time
	if a.task.Silence > 0 {
		tick := time.NewTicker(max(a.task.Silence/4, time.Millisecond))
		defer tick.Stop()
		silent = tick.C
	}
	var c cause
wait:
	for {
		select {
		case <-over:
			return nil
		case c = <-a.stop:
			break wait
		case <-late:
			c = l.cause
			break wait
		case now := <-silent:
			if a.isSilent(now) {
				c = cause{outcome: schemas.OutcomeFailed, silent: a.task.Silence}
				break wait
			}
		}
	}
	if isClosed(over) { // in the meantime
		return nil
	}
	return &c
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
