package runner

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
)

// All functions here require r.mu.

func byTurn(a, b *job) int {
	return cmp.Or(cmp.Compare(a.effect.Rank, b.effect.Rank), strings.Compare(a.effect.Key, b.effect.Key))
}

func (r *Runner) enqueue(j *job) {
	i, _ := slices.BinarySearchFunc(r.queue, j, byTurn)
	r.queue = slices.Insert(r.queue, i, j)
}

func (r *Runner) unqueue(j *job) {
	if i, ok := slices.BinarySearchFunc(r.queue, j, byTurn); ok {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
}

// dispatch starts a worker for each job that can start now.
func (r *Runner) dispatch() {
	for r.running < r.o.Slots {
		j := r.next()
		if j == nil {
			return
		}
		r.workers.Add(1)
		go r.work(j)
	}
}

// next removes the first job whose groups all have room from the queue, and occupies its places.
func (r *Runner) next() *job {
	if r.closed {
		return nil
	}
	i := slices.IndexFunc(r.queue, func(j *job) bool { return r.room(j.effect.Groups) })
	if i < 0 {
		return nil
	}
	j := r.queue[i]
	r.queue = slices.Delete(r.queue, i, i+1)
	r.running++
	r.take(j.effect.Groups, 1)
	j.running, j.since = true, r.o.Now()
	return j
}

// room reports whether another effect of these groups may run. A limit of 0 is the number of slots.
func (r *Runner) room(groups []settle.Group) bool {
	for _, g := range groups {
		if r.used[g.Name]+r.foreign[g.Name] >= orDefault(g.Limit, r.o.Slots) {
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

// work runs j, and then the jobs that can start in its place.
func (r *Runner) work(j *job) {
	defer r.workers.Done()
	var b buffers
	for j != nil {
		j = r.settle(j, r.run(j, &b))
	}
}

// settle reports the end of j and returns the next job that can start, or nil.
func (r *Runner) settle(j *job, e settle.Report) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.take(j.effect.Groups, -1)
	delete(r.jobs, j.effect.Key)
	if e.Kind == settle.Finished && j.effect.Turn() != nil {
		r.forgetSession(j.effect.Key)
	}
	r.post(e)
	following := r.next()
	r.dispatch()
	return following
}

// reportStart reports that j runs, and since when: report and record agree, so that a status rebuilt from records is the
// same.
func (r *Runner) reportStart(j *job, pid int) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = true
	j.started, j.since = true, r.o.Now()
	r.post(settle.Report{Kind: settle.Started, Key: j.effect.Key, At: j.since, PID: pid})
	return j.since
}
