package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Options configure a Runner; every field but Root has a usable zero value.
type Options struct {
	// Root is the directory of the tree.
	Root string
	// Now is the clock of the records. Default time.Now.
	Now func() time.Time
	// Runs are the settings of runs, until SetLimits gives others. Missing fields have their defaults.
	Runs schemas.RunSettings
	// Backoff is the time before a request to a model is sent again for the first time; it doubles. Default 1s.
	Backoff time.Duration
	// Slots is the number of effects that run at once, in addition to the groups' limits, until SetLimits says another one. Default: the
	// number of processors.
	Slots int
	// Environ is this process's environment: PATH, HOME and LANG are passed on. Default os.Environ().
	Environ []string
	// Secrets are removed from all output; keys that runs use are added. Default: FindSecrets of Environ.
	Secrets *Secrets
	// Redact removes secrets; it gets one or more whole lines, may change them in place, and is called concurrently.
	// Default: only what the package comment describes.
	Redact func([]byte) []byte
	// Durable makes this process's records of the submitted effects durable; no command starts before it has returned. It is
	// called concurrently. Default: no-op.
	Durable func() error
	// Memory recalls for agents, and learns from their output; nil: disabled.
	Memory Memory
	// Workspaces makes the folders of tasks that do not work in the tree; nil: such a task fails.
	Workspaces Workspaces
	// Sandbox confines the programs of agents; nil: it cannot. Only a program whose main function calls [sandbox.Main] and [Main] may
	// give one: programs of agents that are not confined have a supervisor then.
	Sandbox *sandbox.Host
	// WorkspacePorts is the number of ports that each workspace has.
	WorkspacePorts int
	// Permissions decide what agents may do. Default: nothing that they ask for.
	Permissions Permissions
	// Meter meters the requests of agents to their models; nil: a task that needs it fails.
	Meter Meter
	// Destinations says why notifications may not be sent to an address of the tree; nil: none may.
	Destinations interface {
		Check(d schemas.Destination) error
	}
	// Version is the version of this program, for agents.
	Version string
	// Specs is the folder of specs below Root. A run that wrote a question there owes no output. "": none.
	Specs string
	// State is the folder of observed state below Root; "": state.
	State string
}

// Memory is what agents know of earlier work. It is safe for concurrent use.
type Memory interface {
	// Recall returns what an agent is to know of earlier work, as a section of a prompt; "" for nothing.
	Recall(settle.Recall) string
	// Learn returns the observations in an agent's output, and the number of tokens of the output.
	Learn(settle.Lesson) (learned []schemas.ObservationEntry, sourceTokens int)
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Durable == nil {
		o.Durable = func() error { return nil }
	}
	if o.Permissions == nil {
		o.Permissions = refusal{}
	}
	if o.Backoff <= 0 {
		o.Backoff = time.Second
	}
	settings := schemas.SettingsSpec{Runs: o.Runs}
	settings.Default()
	o.Runs = settings.Runs
	o.Slots = orDefault(o.Slots, runtime.NumCPU())
	return o
}

func orDefault(n, standard int) int {
	if n <= 0 {
		return standard
	}
	return n
}

// Runner runs effects. It is safe for concurrent use.
type Runner struct {
	o     Options
	root  *os.Root // the tree
	null  *os.File // stdin of commands without input
	dir   string   // its absolute path, without symlinks
	marks marks
	// roster lists the processes of the machine.
	roster roster
	// programs are the caches of confined programs; guarded by mu.
	programs    programs
	supervisors supervisors
	found       foundPrograms
	base        []string // environment that every command starts from
	secrets     *Secrets
	leases      *leases
	files       *workFiles
	buffers     sync.Pool // of *buffers

	// inTree counts the runs that have worked in the tree itself, inTreeNow those that do now.
	inTree, inTreeNow atomic.Int64

	runs atomic.Pointer[schemas.RunSettings] // the current ones; a run keeps to the limits that it began with

	settleFor time.Duration // settleTime, but in tests

	closing chan struct{} // closed by Close
	workers sync.WaitGroup
	notify  chan struct{} // one token while reports wait

	mu        sync.Mutex // guards the fields below
	closed    bool
	ran       bool            // something was started
	leftovers []string        // keys whose files could not be removed
	queue     []*job          // in no order
	jobs      map[string]*job // queued and running, by key
	running   int
	starting  []*job         // those of the running ones that have yet to start, in their turn
	used      map[string]int // places taken by this process, by group
	foreign   map[string]int // places taken by other processes
	limits    map[string]int // the limits of groups as the latest effect of each says: others were queued under former settings
	load      load
	waits     bool // dispatch will be called when the load may have changed
	reports   []settle.Report
	resumable []string // keys of ended runs whose files of sessions are kept, oldest first
}

// New returns a Runner for the tree in o.Root, which must exist. It starts and writes nothing yet.
func New(o Options) (*Runner, error) {
	o = o.withDefaults()
	dir, err := realPath(o.Root)
	if err != nil {
		return nil, fmt.Errorf("open tree: %w", err)
	}
	root, err := regular.Root(dir)
	if err != nil {
		return nil, fmt.Errorf("open tree: %w", err)
	}
	if o.Secrets == nil {
		o.Secrets = FindSecrets(o.Environ, dir)
	}
	keepPrivate()
	null, err := openNull()
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	r := &Runner{
		o: o, root: root, null: null, dir: dir,
		marks: newMarks(dir, o.Environ), base: baseEnv(o.Environ), secrets: o.Secrets,
		leases: &leases{root: root}, files: &workFiles{root: root}, closing: make(chan struct{}), notify: make(chan struct{}, 1),
		jobs: map[string]*job{}, used: map[string]int{}, limits: map[string]int{}, settleFor: settleTime,
	}
	r.runs.Store(&o.Runs)
	return r, nil
}

// grace is the time between SIGTERM and SIGKILL.
func (r *Runner) grace() time.Duration { return r.runs.Load().Grace.Std() }

func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// Submit queues an effect. It starts as soon as a slot is free and all its groups have room; among several, the smallest
// Rank, then Key, goes first. An effect that is already queued gets its new rank; a running one does not change. After
// Close it is released at once.
func (r *Runner) Submit(e settle.Effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.jobs[e.Key]
	switch {
	case r.closed:
		r.post(settle.Report{Kind: settle.Released, Key: e.Key, At: r.o.Now(), Why: "reconcile is ending"})
		return
	case old != nil && old.running:
		return
	case old != nil:
		r.unqueue(old)
	}
	j := newJob(e, r.o.Now())
	r.jobs[e.Key] = j
	r.enqueue(j)
	r.dispatch()
}

// SetLimits sets the settings of runs, the number of slots and the foreign usage of the runner's groups, how many places other processes hold, and
// dispatches. It does not change the map.
func (r *Runner) SetLimits(runs *schemas.RunSettings, slots int, foreign map[string]int) {
	r.runs.Store(runs)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.Slots, r.foreign = orDefault(slots, r.o.Slots), foreign
	r.dispatch()
}

// Withdraw cancels an effect that is queued: it is Released. A running one, and an unknown key, are ignored.
func (r *Runner) Withdraw(key, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[key]; j != nil && !j.running {
		r.withdraw(j, why)
	}
}

// Cancel cancels an effect. A queued one is Released; a running one is stopped, and Finished as Cancelled with why as its
// message. It does not wait. An unknown key is ignored.
func (r *Runner) Cancel(key, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[key]
	switch {
	case j == nil:
	case j.running:
		j.end(cause{outcome: schemas.OutcomeCancelled, message: why})
	default:
		r.withdraw(j, why)
	}
}

// withdraw releases a queued job; r.mu is held.
func (r *Runner) withdraw(j *job, why string) {
	r.unqueue(j)
	delete(r.jobs, j.effect.Key)
	r.post(settle.Report{Kind: settle.Released, Key: j.effect.Key, At: r.o.Now(), Why: why})
}

// Backlog returns the length of the runner's queue of effects.
func (r *Runner) Backlog() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

// status is a queued or running effect.
type status struct {
	Key     string
	Running bool
	Since   time.Time // start, or when it was queued
}

// snapshot returns the status of the runner's jobs, queued or running, sorted by the key of the effect.
func (r *Runner) snapshot() []status {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]status, 0, len(r.jobs))
	for _, j := range r.jobs {
		out = append(out, status{Key: j.effect.Key, Running: j.running, Since: j.since})
	}
	slices.SortFunc(out, func(a, b status) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Close releases queued effects, interrupts running ones, and returns when their processes are gone: after the grace time
// plus [settleTime] at the latest, and without grace once ctx is done. Interrupted effects are Released, too; Drain returns
// their reports. The error names processes that could not be ended. A second Close does nothing.
func (r *Runner) Close(ctx context.Context) error {
	if !r.shut() {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		r.workers.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		r.hurryAll()
		<-gone
	}
	r.supervisors.close()
	return errors.Join(r.sweepOwn(), r.removeLeftovers(), r.leases.close(), r.null.Close(), r.root.Close())
}

// hurryAll ends the time of grace of all jobs.
func (r *Runner) hurryAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs {
		j.hurryUp()
	}
}

// Hurry ends the time of grace of an effect that was cancelled: what still runs of it is killed.
func (r *Runner) Hurry(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[key]; j != nil {
		j.hurryUp()
	}
}

func (r *Runner) shut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.closed = true
	close(r.closing)
	for _, j := range r.queue {
		delete(r.jobs, j.effect.Key)
		r.post(settle.Report{Kind: settle.Released, Key: j.effect.Key, At: r.o.Now(), Why: "reconcile is ending"})
	}
	r.queue = nil
	for _, j := range r.jobs {
		j.end(cause{message: "interrupted: reconcile was told to end"})
	}
	return true
}

// Notify returns the channel on which the runner notifies that reports wait for Drain.
func (r *Runner) Notify() <-chan struct{} { return r.notify }

// Drain returns the reports of the runner since the last call, oldest first. Runs never block on it, and no report is
// lost.
func (r *Runner) Drain() []settle.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.reports
	r.reports = nil
	return out
}

// post queues a report; r.mu is held.
func (r *Runner) post(e settle.Report) {
	r.reports = append(r.reports, e)
	select {
	case r.notify <- struct{}{}:
	default:
	}
}

// checkKey refuses keys that are not valid in file names and environment values.
func checkKey(key string) error {
	if key == "" || len(key) > 1000 || !fs.ValidPath(key) || strings.ContainsAny(key, "\x00\n\r\\:") {
		return fmt.Errorf("%q cannot be the key of an effect", key)
	}
	return nil
}

// untilClosing returns a context that ends soon after the runner starts to close.
func (r *Runner) untilClosing() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-r.closing:
			time.AfterFunc(describeFor, cancel)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// dispatch starts a worker for each job that can start now.
func (r *Runner) dispatch() {
	for r.running < r.o.Slots {
		j := r.nextInTurn()
		if j == nil {
			return
		}
		r.workers.Add(1)
		go r.work(j)
	}
}

// work runs j, and then the jobs that can start in its place.
func (r *Runner) work(j *job) {
	defer r.workers.Done()
	b, _ := r.buffers.Get().(*buffers)
	if b == nil {
		b = new(buffers)
	}
	defer r.buffers.Put(b)
	for j != nil {
		j = r.settle(j, r.run(j, b))
	}
}

// Reap ends the processes of one orphan, the run of a killed process: see ReapAll.
func (r *Runner) Reap(ctx context.Context, o state.Orphan) error {
	return r.ReapAll(ctx, []state.Orphan{o})
}

// ReapAll ends the process trees of orphans, which are runs whose reconcile was killed, concurrently: SIGTERM, grace,
// SIGKILL. After nil, the effects can run again. A *HeldError names those that cannot: their processes could not be
// ended within the grace time plus [settleTime], without grace once ctx is done, or another live reconcile runs them.
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

func (r *Runner) reap(hurry <-chan struct{}, trees []*tree) error {
	var busy []string
	for _, t := range trees {
		if t.lease.runs() || r.runsItself(t.key) {
			busy = append(busy, t.key)
		}
	}
	if len(busy) > 0 {
		return &heldError{Keys: busy, Runs: true}
	}
	h := r.newHunt(trees...)
	h.killed = true
	err := h.finish(hurry, time.Now().Add(r.grace()))
	if err != nil {
		return err
	}
	for _, t := range trees {
		err = errors.Join(err, r.removeWorkOf(t.key))
	}
	return err
}

// runsItself reports whether this runner holds key beyond the search for its orphans.
func (r *Runner) runsItself(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[key]
	return j != nil && j.started
}
