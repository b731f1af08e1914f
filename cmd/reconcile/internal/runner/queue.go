package runner

import (
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/settle"
)

// All functions here require r.mu.

func (r *Runner) enqueue(j *job) {
	r.queue = append(r.queue, j)
	for _, g := range j.effect.Groups {
		r.limits[g.Name] = g.Limit
	}
}

func (r *Runner) unqueue(j *job) {
	if i := slices.Index(r.queue, j); i >= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
}

// preparing bounds how many jobs have had their turn and not yet started: while one starts, which takes as long as to prepare the start,
// another one prepares.
const preparing = 2

// nextInTurn is next. Programs start in turn: their jobs await the start of those that had their turn before. That costs little, since a
// process starts one program at a time. Jobs that prepare a folder first, or start no program, do not delay others: that may take long.
func (r *Runner) nextInTurn() *job {
	if len(r.starting) == preparing {
		return nil
	}
	j := r.next()
	if j == nil {
		return nil
	}
	if c := j.effect.Command(); c != nil && len(c.Argv) > 0 && c.Workspace == nil {
		j.turn = make(chan struct{})
		if r.starting = append(r.starting, j); len(r.starting) == 1 {
			close(j.turn)
		}
	}
	return j
}

// begun lets the next one start after j.
func (r *Runner) begun(j *job) {
	i := slices.Index(r.starting, j)
	if i < 0 {
		return
	}
	if r.starting = slices.Delete(r.starting, i, i+1); i == 0 && len(r.starting) > 0 {
		close(r.starting[0].turn)
	}
	r.dispatch()
}

// awaitTurn returns when all jobs that had their turn before have started.
func (j *job) awaitTurn() {
	if j.turn != nil {
		<-j.turn
	}
}

// next removes the job whose turn it is of those whose groups all have room from the queue, and occupies its places.
func (r *Runner) next() *job {
	if r.closed || len(r.queue) == 0 {
		return nil
	}
	first, now := -1, r.o.Now()
	for i, j := range r.queue {
		if (first < 0 || admission.Compare(&j.effect, &r.queue[first].effect, now) < 0) && r.room(j.effect.Groups) {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	j := r.queue[first]
	r.queue = slices.Delete(r.queue, first, first+1)
	r.running++
	r.take(j.effect.Groups, 1)
	r.load.free--
	j.running, j.since = true, r.o.Now()
	return j
}

// room reports whether another effect of these groups may run. A limit of 0 is the number of slots, as is that of all tasks.
func (r *Runner) room(groups []settle.Group) bool {
	for _, g := range groups {
		limit := r.o.Slots
		if g.Name != settle.TasksGroup {
			limit = orDefault(r.limits[g.Name], limit)
		}
		if r.used[g.Name]+r.foreign[g.Name] >= limit {
			return false
		}
		if g.Load > 0 && r.used[g.Name] > 0 && !r.load.allows(g.Load, r.dispatchLater) {
			return false
		}
	}
	return true
}

func (r *Runner) take(groups []settle.Group, n int) {
	for _, g := range groups {
		if r.used[g.Name] += n; r.used[g.Name] == 0 {
			delete(r.used, g.Name)
		}
	}
}

// settle reports the end of j and returns the next job that can start, or nil.
func (r *Runner) settle(j *job, e settle.Report) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.take(j.effect.Groups, -1)
	delete(r.jobs, j.effect.Key)
	if e.Kind == settle.Finished && j.effect.HasSession() {
		r.forgetSession(j.effect.Key)
	}
	r.post(e)
	following := r.nextInTurn()
	r.begun(j)
	r.dispatch()
	return following
}

// job is one submitted effect. since, running, starting and started are guarded by Runner.mu.
type job struct {
	effect  settle.Effect
	since   time.Time
	running bool            // it has a slot
	turn    chan struct{}   // closed when those that had their turn before have started; nil: it does not wait for them
	started bool            // and a command has started
	stop    chan cause      // at most one: the first reason to end the run
	hurry   chan struct{}   // closed when the time of grace of the run is over
	hurried sync.Once       // closes hurry
	told    map[string]bool // the messages that were put into tell, by their names
	tell    chan settle.Message
}

func newJob(e settle.Effect, now time.Time) *job {
	return &job{effect: e, since: now, stop: make(chan cause, 1), hurry: make(chan struct{}), told: map[string]bool{}, tell: make(chan settle.Message, messagesWait)}
}

// hurryUp ends the time of grace of a job.
func (j *job) hurryUp() { j.hurried.Do(func() { close(j.hurry) }) }

// end requests the end of a running job; the first cause counts.
func (j *job) end(c cause) {
	select {
	case j.stop <- c:
	default:
	}
}
