package runner

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// alive reports whether a process lives; a zombie does not.
func alive(pid int) bool {
	_, ok := readMember(pid)
	return ok
}

// stage runs a tree of players and returns the numbers of those that wait.
func (g *rig) stage(e settle.Effect, pids *pipe, players []string) []int {
	g.t.Helper()
	g.Submit(e)
	return numbersOf(pids, players)
}

func numbersOf(pids *pipe, players []string) (out []int) {
	for _, p := range players {
		if !strings.Contains(p, "forker") {
			out = append(out, pids.number())
		}
	}
	return out
}

func assertGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d survived", pid)
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// trees are process trees of all the ways to hide that are found; the first process comes first.
var trees = [][]string{
	{"polite"},
	{"stubborn"},
	{"polite", "polite", "stubborn"},
	{"stubborn", "stubborn", "stubborn", "stubborn"},
	{"polite", "forker", "stubborn"},
	{"polite", "forker+session", "stubborn+session"},
	{"polite", "session+nolease", "stubborn"},
	{"polite", "forker", "session+stubborn+nolease"},
	{"polite", "forker", "session+stubborn+noenv"},
	{"stubborn", "noenv+nolease+session"},
	{"polite", "noenv+nolease"},
	{"stubborn", "stubborn+noenv+nolease+session"},
	{"polite", "stubborn+noenv+nolease+session"},
}

func TestWholeTreeEnds(t *testing.T) {
	hiding := trees[len(trees)-5:]
	for _, c := range []struct {
		name    string
		end     func(g *rig, key string)
		outcome string // empty: released
		trees   [][]string
	}{
		{"cancel", func(g *rig, key string) { g.Cancel(key, "no longer wanted") }, schemas.OutcomeCancelled, trees},
		{"timeout", (*rig).timeOut, schemas.OutcomeTimedOut, hiding},
		{"close", func(g *rig, _ string) { g.Close(context.Background()) }, "", hiding},
		{"close in a hurry", func(g *rig, _ string) { g.end() }, "", hiding},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, players := range c.trees {
				g := newRig(t, Options{Runs: graceOf(20 * time.Millisecond)})
				e := actor(append([]string{"tree"}, players...)...)
				pids := g.stage(e, g.fifo("pids"), players)
				c.end(g, e.Key)
				rep := g.await(e.Key)
				if rep.Kind == settle.Finished && rep.Run.Outcome != c.outcome ||
					rep.Kind == settle.Released && c.outcome != "" {
					t.Errorf("%q: got %+v", players, rep)
				}
				assertGone(t, pids)
			}
		})
	}
}

// timeOut makes the time of a run be over now. That a timer does it is another test.
func (g *rig) timeOut(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.jobs[key].end(cause{outcome: schemas.OutcomeTimedOut, message: "timed out"})
}

// What a command leaves in the background does not outlive it, and its success counts.
func TestLeftovers(t *testing.T) {
	for _, players := range [][]string{
		{"exits", "polite"},
		{"exits", "stubborn"},
		{"exits", "forker", "stubborn+session"},
		{"exits", "forker", "polite+session+noenv"},
		{"exits", "nolease"},
	} {
		g := newRig(t, Options{Runs: graceOf(30 * time.Millisecond)})
		e := actor(append([]string{"tree"}, players...)...)
		gate := g.fifo("gate")
		pids := g.stage(e, g.fifo("pids"), players)
		gate.release()
		run := g.record(e.Key)
		if run.Outcome != schemas.OutcomeSucceeded || !strings.Contains(run.Message, "left 1 of its processes running") {
			t.Errorf("%q: %s %q", players, run.Outcome, run.Message)
		}
		assertGone(t, pids)
	}
}

// A process that has only the mark left is found by Close, or before if the run took long enough to look for it.
func TestCloseSweeps(t *testing.T) {
	g := newRig(t, Options{})
	players := []string{"exits", "forker", "session+stubborn+nolease"}
	e := actor(append([]string{"tree"}, players...)...)
	gate := g.fifo("gate")
	pids := g.stage(e, g.fifo("pids"), players)
	gate.release()
	g.record(e.Key)
	g.end()
	assertGone(t, pids)
}

// Nobody finds a ghost: own session, no lease, no environment, no parent. The run ends nevertheless, although the ghost
// holds its output open.
func TestGhostDoesNotHoldTheRun(t *testing.T) {
	g := newRig(t, Options{})
	players := []string{"exits", "forker+noenv+nolease+session", "polite+session"}
	e := actor(append([]string{"tree"}, players...)...)
	gate := g.fifo("gate")
	pids := g.stage(e, g.fifo("pids"), players)
	gate.release()
	if run := g.record(e.Key); run.Outcome != schemas.OutcomeSucceeded {
		t.Errorf("got %s %q", run.Outcome, run.Message)
	}
	for _, pid := range pids {
		unix.Kill(pid, unix.SIGKILL)
	}
}

func TestStoppedRunIsNeverASuccess(t *testing.T) {
	obliging := "trap 'exit 0' TERM; echo 1 > pids; while :; do read x < gate; done"
	t.Run("cancelled", func(t *testing.T) {
		g := newRig(t, Options{})
		g.fifo("gate")
		pids := g.fifo("pids")
		g.Submit(sh(obliging))
		pids.number()
		g.Cancel(theKey, "the session is suspended")
		run := g.record(theKey)
		if run.Outcome != schemas.OutcomeCancelled || run.Message != "the session is suspended" || run.ExitCode != nil {
			t.Errorf("got %+v", run)
		}
	})
	t.Run("timed out", func(t *testing.T) {
		g := newRig(t, Options{})
		g.fifo("gate")
		g.fifo("pids")
		e := sh(obliging)
		e.Command().Timeout = 50 * time.Millisecond
		run := g.do(e)
		if run.Outcome != schemas.OutcomeTimedOut || run.Message != "timed out after 50ms" || run.ExitCode != nil {
			t.Errorf("got %+v", run)
		}
	})
	t.Run("past its deadline", func(t *testing.T) {
		g := newRig(t, Options{})
		e := sh("touch started")
		e.Command().Deadline = time.Now().Add(-time.Second)
		run := g.do(e)
		if run.Outcome != schemas.OutcomeTimedOut || !strings.Contains(run.Message, "the whole of dag/checks is over") {
			t.Errorf("got %+v", run)
		}
		if _, err := os.Stat(filepath.Join(g.dir, "started")); err == nil {
			t.Error("it was started")
		}
	})
	t.Run("stopped by SIGSTOP", func(t *testing.T) {
		g := newRig(t, Options{Runs: graceOf(time.Minute)})
		e := sh("kill -STOP $$; exit 0")
		e.Command().Timeout = 50 * time.Millisecond
		if run := g.do(e); run.Outcome != schemas.OutcomeTimedOut {
			t.Errorf("got %+v", run)
		}
	})
}

// killedRunner stages players under a runner of its own process, and kills that.
func killedRunner(t *testing.T, dir, key string, pids *pipe, players []string) []int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"play", "runner", dir, key, exe, "play", "tree"}, players...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := numbersOf(pids, players)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	for _, pid := range started {
		if !alive(pid) {
			t.Fatalf("process %d died with its runner", pid)
		}
	}
	return started
}

// After kill -9 of the runner the next start of the key first ends what is left.
func TestOrphansEndBeforeTheNextRun(t *testing.T) {
	for _, players := range trees {
		g := newRig(t, Options{Runs: graceOf(30 * time.Millisecond)})
		old := killedRunner(t, g.dir, theKey, g.fifo("pids"), players)
		g.Submit(sh(":"))
		g.awaitStart(theKey)
		assertGone(t, old)
		g.record(theKey)
	}
}

func TestReapAll(t *testing.T) {
	g := newRig(t, Options{Runs: graceOf(30 * time.Millisecond)})
	pids := g.fifo("pids")
	var old []int
	var orphans []state.Orphan
	for _, key := range []string{"a", "b", "c"} {
		old = append(old, killedRunner(t, g.dir, key, pids, []string{"stubborn", "forker", "session+stubborn"})...)
		orphans = append(orphans, orphan(key))
	}
	other := killedRunner(t, g.dir, "other", pids, []string{"polite"})
	g.write(state.TokenFile("a"), "")
	if err := g.ReapAll(context.Background(), orphans); err != nil {
		t.Fatal(err)
	}
	assertGone(t, old)
	if _, err := os.Stat(filepath.Join(g.dir, filepath.FromSlash(state.TokenFile("a")))); err != nil {
		t.Errorf("that a run began is forgotten before it is on record: %v", err)
	}
	if !alive(other[0]) {
		t.Error("an orphan that was not asked for was ended")
	}
	if err := g.Reap(context.Background(), orphan("other")); err != nil {
		t.Fatal(err)
	}
	assertGone(t, other)
}

func orphan(key string) state.Orphan {
	var o state.Orphan
	o.Key = key
	return o
}

// An effect that another runner runs is neither started nor touched.
func TestLiveRunnerIsLeftAlone(t *testing.T) {
	first := newRig(t, Options{})
	second := newRig(t, Options{Root: first.dir})
	pids := first.stage(actor("tree", "polite"), first.fifo("pids"), []string{"polite"})
	second.Submit(sh(":"))
	rep := second.await(theKey)
	if rep.Kind != settle.Held || !strings.Contains(rep.Why, "another reconcile runs it") {
		t.Errorf("got %+v", rep)
	}
	for _, r := range []*rig{first, second} {
		held := (*heldError)(nil)
		if err := r.Reap(context.Background(), orphan(theKey)); !errors.As(err, &held) || !held.Runs {
			t.Errorf("Reap says %v", err)
		}
	}
	if !alive(pids[0]) {
		t.Error("the run of the other runner was ended")
	}
}

// A killed run that another runner begins again while its processes are being ended is left alone from then on.
func TestKilledRunBeginsElsewhere(t *testing.T) {
	first := newRig(t, Options{})
	second := newRig(t, Options{Root: first.dir})
	pids := first.stage(actor("tree", "polite"), first.fifo("pids"), []string{"polite"})
	h := second.newHunt(second.treeOf(theKey, 0))
	h.killed = true // as if second had looked before first began
	held := (*heldError)(nil)
	if err := h.finish(nil, time.Now()); !errors.As(err, &held) || !held.Runs {
		t.Errorf("the hunt says %v", err)
	}
	if !alive(pids[0]) {
		t.Error("the run of the other runner was ended")
	}
}

// A process that only its lease shows is still waited for when it ends, and has closed its lease already.
func TestHoldersAreMet(t *testing.T) {
	g := newRig(t, Options{})
	k, err := g.leases.take(theKey)
	if err != nil {
		t.Fatal(err)
	}
	defer k.release()
	pids := g.fifo("pids")
	cmd := exec.Command(os.Args[0], "play", "tree", "polite")
	cmd.Dir, cmd.Env, cmd.ExtraFiles = g.dir, []string{}, []*os.File{k.file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()         //nolint:errcheck // it was killed
	defer cmd.Process.Kill() //nolint:errcheck // see above
	pid := pids.number()
	h := g.newHunt(&tree{marks: g.marks, key: theKey, lease: k})
	is := func(m member) bool { return m.pid == pid }
	if slices.ContainsFunc(members(h), is) {
		t.Fatal("found without its lease")
	}
	if !slices.ContainsFunc(holders(h, h.trees), is) || !slices.ContainsFunc(members(h), is) {
		t.Error("it was found by its lease, and forgotten")
	}
}

// A process that ends loses its environment, and with it its mark, before it is gone. Close waits for it nevertheless.
func TestOwnedAreMet(t *testing.T) {
	g := newRig(t, Options{})
	pids := g.fifo("pids")
	cmd := exec.Command(os.Args[0], "play", "tree", "polite")
	cmd.Dir, cmd.Env = g.dir, []string{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()         //nolint:errcheck // it was killed
	defer cmd.Process.Kill() //nolint:errcheck // see above
	m, _ := readMember(pids.number())
	is := func(o member) bool { return o.pid == m.pid }
	if slices.ContainsFunc(ownedBy(g.marks, map[int]string{m.pid: "0"}), is) {
		t.Error("another process of that number was met")
	}
	if !slices.ContainsFunc(ownedBy(g.marks, map[int]string{m.pid: m.started}), is) {
		t.Error("it was met, and forgotten")
	}
}

// TestLeaseIsHandedOver: once a command runs, its lease is shared by its processes only. Another command that starts then has no copy of
// it, so it is free as soon as they have ended.
func TestLeaseIsHandedOver(t *testing.T) {
	g := newRig(t, Options{})
	gate := g.fifo("gate")
	g.Submit(sh("read x < gate"))
	g.awaitStart(theKey)
	if n := g.openLeases(); n != 1 {
		t.Errorf("the runner has %d open files of leases while a command runs, want its own one", n)
	}
	gate.release()
	g.record(theKey)
}

// openLeases counts the descriptors of this process for leases of the rig.
func (g *rig) openLeases() (n int) {
	for _, fd := range numbers("/proc/self/fd") {
		to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && filepath.Dir(to) == filepath.Join(g.dir, filepath.FromSlash(leaseDir)) {
			n++
		}
	}
	return n
}

// A lease that somebody holds who cannot be found, let alone ended, makes an effect Held, in bounded time.
func TestHeldByNobodyKnown(t *testing.T) {
	g := newRig(t, Options{Runs: graceOf(time.Millisecond)})
	g.settleFor = time.Millisecond
	k, err := g.leases.take(theKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := lockByte(g.leases.files[k.in], k.at+1, unix.F_UNLCK); err != nil { // as if its runner was gone
		t.Fatal(err)
	}
	g.Submit(sh(":"))
	if rep := g.await(theKey); rep.Kind != settle.Held || !strings.Contains(rep.Why, "could not be ended") {
		t.Errorf("got %+v", rep)
	}
	k.release()
	g.do(sh(":"))
}

// A process that an earlier version started holds its lease in the single file of that version: its effect waits for it.
func TestHeldInTheFormerFile(t *testing.T) {
	g := newRig(t, Options{Runs: graceOf(time.Millisecond)})
	g.settleFor = time.Millisecond
	k := g.leases.of(theKey)
	g.write(formerLeases, "")
	f, err := os.OpenFile(filepath.Join(g.dir, formerLeases), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at, runs := range map[int64]bool{k.at: false, k.at + 1: true} { // its processes, and its runner
		if err := lockByte(f, at, unix.F_WRLCK); err != nil {
			t.Fatal(err)
		}
		g.Submit(sh("echo ran >> ran"))
		if rep := g.await(theKey); rep.Kind != settle.Held || k.runs() != runs {
			t.Errorf("byte %d: %+v, another runner lives: %v", at-k.at, rep, k.runs())
		}
		if err := lockByte(f, at, unix.F_UNLCK); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g.do(sh("! test -e ran"))
}

// Leases are spread over files, because what a lock or a closed descriptor costs grows with the locks of its file.
func TestLeasesAreSpread(t *testing.T) {
	g := newRig(t, Options{})
	in := map[int]int{}
	for i := range 1000 {
		in[g.leases.of("dags/d/n-"+strconv.Itoa(i)).in]++
	}
	for file, n := range in {
		if n > 1000/leaseFiles*3/2 {
			t.Errorf("%d of 1,000 leases are in file %d", n, file)
		}
	}
}

// At most one command of a key lives, whatever is killed. Each agent takes a lock for as long as it lives; two of them
// at once are a violation. Without the lease, which is what another key amounts to, the same test must find it.
func TestOneLiveRunPerKey(t *testing.T) {
	violated := func(nextKey string) bool {
		g := newRig(t, Options{Runs: graceOf(30 * time.Millisecond)})
		pids := g.fifo("pids")
		old := killedRunner(t, g.dir, theKey, pids, []string{"stubborn", "forker", "session+stubborn+nolease"})
		g.Submit(effect(nextKey, "true"))
		g.awaitStart(nextKey)
		both := false
		for _, pid := range old {
			both = both || alive(pid)
		}
		g.record(nextKey)
		if err := g.Reap(context.Background(), orphan(theKey)); err != nil {
			t.Fatal(err)
		}
		assertGone(t, old)
		return both
	}
	if violated(theKey) {
		t.Error("two commands of one key lived at once")
	}
	if !violated("another") {
		t.Error("the test does not notice two commands that live at once")
	}
}

// startGroup starts a process that leads a group and a session of its own and has no mark, as any other program does.
func startGroup(t *testing.T) (member, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	m, ok := readMember(cmd.Process.Pid)
	if !ok {
		t.Fatal("the process has ended")
	}
	return m, cmd
}

// TestReusedGroups: the number of a run's group is that of a program which started after the run: it is left alone. Of one that had started
// before, the number cannot have been reused, and so it belongs to the run.
func TestReusedGroups(t *testing.T) {
	g := newRig(t, Options{})
	m, _ := startGroup(t)
	before, _ := strconv.Atoi(m.started)
	h := g.newHunt(&tree{pid: m.pid, reaped: member{started: strconv.Itoa(before - 1)}, marks: g.marks, key: theKey, lease: g.leases.of(theKey)})
	if err := h.finish(nil, time.Now()); err != nil || !alive(m.pid) {
		t.Errorf("a foreign group: alive %v, %v", alive(m.pid), err)
	}
	h = g.newHunt(&tree{pid: m.pid, reaped: startingNow(), marks: g.marks, key: theKey, lease: g.leases.of(theKey)})
	if err := h.finish(nil, time.Now()); err != nil || alive(m.pid) {
		t.Errorf("a group of the run: alive %v, %v", alive(m.pid), err)
	}
}

// TestLateKills: a hunt that could not look before its time was over, on a machine that has much else to do, kills before it gives up.
func TestLateKills(t *testing.T) {
	g := newRig(t, Options{})
	m, _ := startGroup(t)
	h := g.newHunt(&tree{pid: m.pid, reaped: startingNow(), marks: g.marks, key: theKey, lease: g.leases.of(theKey)})
	if err := h.finish(nil, time.Now().Add(-time.Hour)); err != nil || alive(m.pid) {
		t.Errorf("alive %v, %v", alive(m.pid), err)
	}
}

// TestReusedNumbers: a process that was seen has ended, and another one has its number.
func TestReusedNumbers(t *testing.T) {
	m, cmd := startGroup(t)
	seen := m
	seen.started = "1"
	seen.signal(forced)
	m.signal(graceful)
	cmd.Wait() //nolint:errcheck // its state has it
	if by := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); by != syscall.SIGTERM {
		t.Errorf("another process was signalled: %s", by)
	}
}
