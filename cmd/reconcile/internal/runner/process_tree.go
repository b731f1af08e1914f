package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// settleTime is how long after SIGKILL a tree may take to end, on a machine that has much else to do, too.
const settleTime = 10 * time.Second

// tree is the processes of one run.
type tree struct {
	pid int // its first process, which leads its group and session; 0: not known
	// reaped is, as a start time, when the first process was about to be reaped; zero before. From then on the system may give the
	// number of its group to another one, once the group is empty.
	reaped member
	// adopter is the process that adopts those of the run whose parents are gone, and is none of them; 0: none does.
	adopter int
	marks   marks
	key     string
	lease   *lease
}

// hunt ends some process trees.
type hunt struct {
	runner *Runner
	trees  []*tree
	// met are the processes that were seen, by number, with their start times: a descendant stays one after its parents are
	// gone.
	met       map[int]string
	signalled map[int]bool // processes that were signalled
	// killed says that the runs are those of killed processes: another reconcile that has ended them, too, may begin them again.
	killed bool
}

func (r *Runner) newHunt(trees ...*tree) *hunt {
	return &hunt{runner: r, trees: trees, met: map[int]string{}, signalled: map[int]bool{}}
}

// The kinds of signals: SIGTERM or SIGKILL.
const (
	graceful = false
	forced   = true
)

// heldError reports that processes of earlier runs are alive, so that these effects cannot start.
type heldError struct {
	Keys []string
	Runs bool // another live reconcile runs them; otherwise they are orphans that could not be ended
}

func (e *heldError) Error() string {
	keys := strings.Join(e.Keys, ", ")
	if e.Runs {
		return fmt.Sprintf("%s: another reconcile runs it; try again when that is done", keys)
	}
	return fmt.Sprintf("%s: a process of an earlier run lives on and could not be ended; end it, then try again", keys)
}

func (r *Runner) treeOf(key string, pid int) *tree {
	return &tree{pid: pid, marks: r.marks, key: key, lease: r.leases.of(key)}
}

// stopFirst signals a whole tree and returns when its first process has ended; after kill, or once hurry is closed, it sends SIGKILL.
func (h *hunt) stopFirst(pid int, ended, hurry <-chan struct{}, kill time.Time) error {
	h.signalAll(pid, graceful)
	if waitFor(ended, hurry, time.Until(kill)) {
		return nil
	}
	h.signalAll(pid, forced)
	if waitFor(ended, nil, h.runner.settleFor) {
		return nil
	}
	return fmt.Errorf("process %d could not be ended", pid)
}

// signalAll lists all processes before it signals the group of the first one, because those that left the group become
// orphans, which are harder to find, when that one ends.
func (h *hunt) signalAll(pid int, force bool) {
	all := members(h)
	signalGroup(pid, force)
	for _, m := range all {
		if m.group != pid {
			m.signal(force)
		}
		h.signalled[m.pid] = true
	}
}

// waitFor reports whether ended was closed before hurry and before d had passed.
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

// finish ends the trees, whose first processes are gone. After kill it sends SIGKILL; a *HeldError names the keys of
// survivors. When hurry is closed, kill is now.
func (h *hunt) finish(hurry <-chan struct{}, kill time.Time) error {
	var killed time.Time // when SIGKILL was first sent, which may be long after kill
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		held := h.held()
		left := members(h)
		if len(left) == 0 {
			left = holders(h, held)
		}
		if len(left) == 0 && len(held) == 0 {
			return nil
		}
		if busy := h.begunElsewhere(); len(busy) > 0 { // asked after the look: whatever it saw had its lease by then
			return &heldError{Keys: busy, Runs: true}
		}
		now := time.Now()
		if !killed.IsZero() && now.Sub(killed) > h.runner.settleFor {
			return &heldError{Keys: keysOf(h.trees, held)}
		}
		h.forgetGroups(left)
		force := !now.Before(kill)
		h.signal(left, force)
		if force && killed.IsZero() {
			killed = now
		}
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

// begunElsewhere are the keys of killed runs that another live runner runs by now.
func (h *hunt) begunElsewhere() (keys []string) {
	for _, t := range h.trees {
		if h.killed && t.lease.runs() {
			keys = append(keys, t.key)
		}
	}
	return keys
}

// forgetGroups removes empty groups from the trees: the system may reuse their numbers.
func (h *hunt) forgetGroups(left []member) {
	for _, t := range h.trees {
		if !slices.ContainsFunc(left, func(m member) bool { return m.inGroup(t.pid) }) {
			t.pid = 0
		}
	}
}

// signal signals each process: SIGTERM once, SIGKILL always, and then to whole groups, which forks cannot escape.
func (h *hunt) signal(ps []member, force bool) {
	for _, t := range h.trees {
		if force {
			signalGroup(t.pid, force)
		}
	}
	for _, p := range ps {
		if force || !h.signalled[p.pid] {
			p.signal(force)
		}
		h.signalled[p.pid] = true
	}
}

// keysOf names the trees that are still held, or all of them if that is unknown.
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

// sweepOwn ends every process that still has a mark of this runner. There are some only if a process left its group and
// closed its lease.
func (r *Runner) sweepOwn() error {
	if !r.ran {
		return nil
	}
	var until time.Time // since the first signal
	for met := map[int]string{}; ; time.Sleep(time.Millisecond) {
		left := ownedBy(r.marks, met)
		if len(left) == 0 {
			return nil
		}
		switch now := time.Now(); {
		case until.IsZero():
			until = now.Add(r.settleFor)
		case now.After(until):
			return fmt.Errorf("%d processes of runs could not be ended, among them %d", len(left), left[0].pid)
		}
		for _, m := range left {
			m.signal(forced)
		}
	}
}
