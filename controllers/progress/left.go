package progress

import (
	"time"

	"reconcile.dev/reconcile/schemas"
)

// rest is how much work is left of a DAG: sum is all of it, chain the longest part that has to be done in sequence.
type rest struct {
	known      bool          // and does not change with time
	guess      time.Duration // the estimate that was used for nodes without a record
	guessed    bool          // there are such
	sum, chain time.Duration
	least      bool // some of it is of unknown length
}

// estimate estimates the remaining time: at least the longest chain, and at least all of it divided by the slots. A node
// without a record is assumed to take as long as the successes of this run on average.
func (t *Tracker) estimate(v *View, now time.Time) {
	guess := t.mean()
	places := t.CPUs
	if t.tree != nil && t.tree.Settings().Limits.ConcurrentTasks > 0 {
		places = t.tree.Settings().Limits.ConcurrentTasks
	}
	var sum, chain time.Duration
	for _, d := range t.board.sorted() {
		d.remaining(now, guess)
		sum += d.rest.sum
		chain = max(chain, d.rest.chain)
		v.Least = v.Least || d.rest.least
	}
	v.Left = max(chain, sum/time.Duration(max(places, 1)))
}

// mean returns roughly the average time of the successes of this run. It changes in steps, because each change
// recomputes every estimate that uses it.
func (t *Tracker) mean() time.Duration {
	if t.count == 0 {
		return 0
	}
	if now := t.sum / time.Duration(t.count); (now - t.guess).Abs() > t.guess/10 {
		t.guess = now
	}
	return t.guess
}

// remaining computes the rest of a DAG, unless nothing of it has changed. Nodes that wait for a person, and those that
// need them, are left out, because their time is unknown.
func (d *dag) remaining(now time.Time, guess time.Duration) {
	if d.rest.known && (!d.rest.guessed || d.rest.guess == guess) {
		return
	}
	d.rest = rest{known: d.running == 0, guess: guess}
	ends := make([]time.Duration, len(d.nodes))
	stuck := make([]bool, len(d.nodes))
	for _, i := range d.tasks {
		var start time.Duration
		for _, to := range d.plan[i].needs {
			start = max(start, ends[to])
			stuck[i] = stuck[i] || stuck[to]
		}
		left, open := d.left(int(i), now, guess)
		if stuck[i] = stuck[i] || d.states[i] == schemas.NodeBlocked; stuck[i] || !open {
			continue
		}
		ends[i] = start + left
		d.rest.sum += left
		d.rest.chain = max(d.rest.chain, ends[i])
	}
}

// left returns how long node i may still take, once the nodes that it needs are done.
func (d *dag) left(i int, now time.Time, guess time.Duration) (left time.Duration, open bool) {
	n := &d.nodes[i]
	switch d.states[i] {
	case schemas.NodeRunning, schemas.NodeQueued, schemas.NodePending, "":
	default:
		return 0, false
	}
	usual := n.Usual
	if usual == 0 {
		usual, d.rest.guessed = guess, true
	}
	d.rest.least = d.rest.least || usual == 0
	switch {
	case d.states[i] == schemas.NodeRunning:
		return max(usual-now.Sub(n.Since), 0), true
	case n.Due.After(now):
		usual += n.Due.Sub(now)
		d.rest.known = false
	}
	return usual, true
}
