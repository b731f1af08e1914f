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

// signal is what a process is told.
type signal int

const (
	polite signal = iota // end yourself
	force                // be ended
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
	trees := make([]tree, len(orphans))
	for i, o := range orphans {
		trees[i] = r.treeOf(o.Key, o.PID)
	}
	hurry := make(chan struct{})
	defer context.AfterFunc(ctx, func() { close(hurry) })()
	return r.reap(hurry, trees)
}

func (r *Runner) treeOf(key string, pid int) tree {
	return tree{pid: pid, marks: r.marks, key: key, lease: r.leases.of(key)}
}

func (r *Runner) reap(hurry <-chan struct{}, trees []tree) error {
	var busy []string
	for _, t := range trees {
		if t.lease.runs() {
			busy = append(busy, t.key)
		}
	}
	if len(busy) > 0 {
		return &HeldError{Keys: busy, Runs: true}
	}
	_, err := r.endTrees(hurry, trees, time.Now().Add(r.o.Grace))
	if err != nil {
		return err
	}
	for _, t := range trees {
		err = errors.Join(err, r.removeNeedsOf(t.key))
	}
	return err
}

// stopFirst tells a whole tree to end and returns when its first process has; at kill it is forced to.
func (r *Runner) stopFirst(t tree, ended <-chan struct{}, kill time.Time) error {
	signalGroup(t.pid, polite)
	for _, m := range members([]tree{t}) {
		if !m.inGroup(t.pid) {
			m.signal(polite)
		}
	}
	if waitFor(ended, r.hurry, time.Until(kill)) {
		return nil
	}
	signalGroup(t.pid, force)
	if waitFor(ended, nil, settleTime) {
		return nil
	}
	return fmt.Errorf("process %d could not be ended", t.pid)
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

// endTrees ends the trees, whose first processes are gone already, and returns how many processes it had to tell. What
// still lives at kill is forced; a *HeldError names what survives that.
func (r *Runner) endTrees(hurry <-chan struct{}, trees []tree, kill time.Time) (told int, err error) {
	seen := map[int]bool{}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		held := slices.DeleteFunc(slices.Clone(trees), func(t tree) bool {
			free, err := t.lease.free(&r.starting)
			return free || err != nil
		})
		left := members(trees)
		if len(left) == 0 {
			left = holders(held)
		}
		if len(left) == 0 && len(held) == 0 {
			return len(seen), nil
		}
		now := time.Now()
		if now.After(kill.Add(settleTime)) {
			return len(seen), &HeldError{Keys: keysOf(trees, held)}
		}
		tell(left, seen, !now.Before(kill))
		select {
		case <-hurry:
			kill, hurry = now, nil
		case <-time.After(wait):
		}
	}
}

// tell signals each process: politely once, with force always.
func tell(ps []member, seen map[int]bool, forced bool) {
	for _, p := range ps {
		switch {
		case forced:
			p.signal(force)
		case !seen[p.pid]:
			p.signal(polite)
		}
		seen[p.pid] = true
	}
}

// keysOf names the trees that are still held, or all of them if it is not known which.
func keysOf(all, held []tree) []string {
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
func (r *Runner) sweepOwn() error {
	if !r.ran {
		return nil
	}
	for until := time.Now().Add(settleTime); ; time.Sleep(time.Millisecond) {
		left := ownedBy(r.marks)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d processes of runs could not be ended, among them %d", len(left), left[0].pid)
		}
		tell(left, map[int]bool{}, true)
	}
}
