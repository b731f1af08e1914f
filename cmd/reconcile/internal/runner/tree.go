package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/state"
)

// settleTime is how long after SIGKILL a tree may take to be gone.
const settleTime = time.Second

// tree is the processes of one run.
type tree struct {
	pid   int // its first process, which leads its group and session; 0: not known
	marks marks
	key   string
	lease *lease
}

// hunt is the end of some trees, while it is brought about.
type hunt struct {
	*Runner
	trees []*tree
	// met are the processes that were seen, by number, with the time that they started: a descendant stays one when
	// its parents are gone.
	met  map[int]string
	told map[int]bool // processes that were told to end
}

func (r *Runner) newHunt(trees ...*tree) *hunt {
	return &hunt{Runner: r, trees: trees, met: map[int]string{}, told: map[int]bool{}}
}

// What a process is told: to end itself, or to be ended.
const (
	polite = false
	forced = true
)

// HeldError says that processes of earlier runs live on, so that these effects cannot start.
type HeldError struct {
	Keys []string
	Runs bool // another reconcile that lives runs them; otherwise they are orphans that could not be ended
}

func (e *HeldError) Error() string {
	keys := strings.Join(e.Keys, ", ")
	if e.Runs {
		return fmt.Sprintf("%s: another reconcile runs it; try again when that is done", keys)
	}
	return fmt.Sprintf("%s: a process of an earlier run lives on and could not be ended; end it, then try again", keys)
}

// Reap ends what is left of the run of a process that was killed: see ReapAll.
func (r *Runner) Reap(ctx context.Context, o state.Orphan) error {
	return r.ReapAll(ctx, []state.Orphan{o})
}

// ReapAll ends what is left of the runs of processes that were killed, all together: SIGTERM, grace, SIGKILL. When it
// returns nil, the effects can be run again. A *HeldError says which cannot: their processes could not be ended within
// the grace time plus one second or before ctx was done, or another reconcile that lives runs them.
func (r *Runner) ReapAll(ctx context.Context, orphans []state.Orphan) error {
	trees := make([]*tree, len(orphans))
	for i, o := range orphans {
		trees[i] = r.treeOf(o.Key, 0)
		if free, err := trees[i].lease.free(); err == nil && !free {
			trees[i].pid = orphanGroup(o.PID)
		}
	}
	hurry := make(chan struct{})
	defer context.AfterFunc(ctx, func() { close(hurry) })()
	return r.reap(hurry, trees)
}

func (r *Runner) treeOf(key string, pid int) *tree {
	return &tree{pid: pid, marks: r.marks, key: key, lease: r.leases.of(key)}
}

func (r *Runner) reap(hurry <-chan struct{}, trees []*tree) error {
	var busy []string
	for _, t := range trees {
		if t.lease.runs() || r.runsItself(t.key) {
			busy = append(busy, t.key)
		}
	}
	if len(busy) > 0 {
		return &HeldError{Keys: busy, Runs: true}
	}
	err := r.newHunt(trees...).finish(hurry, time.Now().Add(r.o.Grace))
	if err != nil {
		return err
	}
	for _, t := range trees {
		err = errors.Join(err, r.removeWorkOf(t.key))
	}
	return err
}

// runsItself reports whether this runner has got further with key than to look for its orphans.
func (r *Runner) runsItself(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[key]
	return j != nil && j.started
}

// stopFirst tells a whole tree to end and returns when its first process has; at kill it is forced to.
func (h *hunt) stopFirst(pid int, ended <-chan struct{}, kill time.Time) error {
	h.tellAll(pid, polite)
	if waitFor(ended, h.hurry, time.Until(kill)) {
		return nil
	}
	h.tellAll(pid, forced)
	if waitFor(ended, nil, settleTime) {
		return nil
	}
	return fmt.Errorf("process %d could not be ended", pid)
}

// tellAll looks for all processes before it tells the group of the first one, because those that left the group are
// orphans, which are harder to find, when that has ended.
func (h *hunt) tellAll(pid int, force bool) {
	all := members(h)
	signalGroup(pid, force)
	for _, m := range all {
		if m.group != pid {
			m.signal(force)
		}
		h.told[m.pid] = true
	}
}

// waitFor reports whether ended was closed before hurry was and before d had passed.
func waitFor(ended, hurry <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-hurry:
	case <-timer.C:
	}
	return false
}

// finish ends the trees, whose first processes are gone already. What still lives at kill is forced; a *HeldError names
// the keys of what survives that. When hurry is closed, kill is now.
func (h *hunt) finish(hurry <-chan struct{}, kill time.Time) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		held := h.held()
		left := members(h)
		if len(left) == 0 {
			left = holders(held)
		}
		if len(left) == 0 && len(held) == 0 {
			return nil
		}
		now := time.Now()
		if now.After(kill.Add(settleTime)) {
			return &HeldError{Keys: keysOf(h.trees, held)}
		}
		h.forgetGroups(left)
		h.tell(left, !now.Before(kill))
		select {
		case <-hurry:
			kill, hurry = now, nil
		case <-time.After(wait):
		}
	}
}

// held returns the trees whose leases are not free.
func (h *hunt) held() (out []*tree) {
	for _, t := range h.trees {
		if free, err := t.lease.freeNow(); err == nil && !free {
			out = append(out, t)
		}
	}
	return out
}

// forgetGroups takes groups that are empty out of the trees: the system may give their numbers to others.
func (h *hunt) forgetGroups(left []member) {
	for _, t := range h.trees {
		if !slices.ContainsFunc(left, func(m member) bool { return m.inGroup(t.pid) }) {
			t.pid = 0
		}
	}
}

// tell signals each process: politely once, with force always, and then whole groups, which cannot fork away from it.
func (h *hunt) tell(ps []member, force bool) {
	for _, t := range h.trees {
		if force {
			signalGroup(t.pid, force)
		}
	}
	for _, p := range ps {
		if force || !h.told[p.pid] {
			p.signal(force)
		}
		h.told[p.pid] = true
	}
}

// keysOf names the trees that are still held, or all of them if it is not known which.
func keysOf(all, held []*tree) []string {
	if len(held) == 0 {
		held = all
	}
	keys := make([]string, len(held))
	for i, t := range held {
		keys[i] = t.key
	}
	return keys
}

// sweepOwn ends every process that still carries a mark of this runner. There are none unless a process left its group
// and closed its lease.
func (r *Runner) sweepOwn(until time.Time) error {
	if !r.ran {
		return nil
	}
	for ; ; time.Sleep(time.Millisecond) {
		left := ownedBy(r.marks)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d processes of runs could not be ended, among them %d", len(left), left[0].pid)
		}
		for _, m := range left {
			m.signal(forced)
		}
	}
}
