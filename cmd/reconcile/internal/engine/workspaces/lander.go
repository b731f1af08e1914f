package workspaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/checking"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/worktree"
)

// Lander performs landings, one after the other, and verifications, as many as there are, and leaves all other effects to another
// performer, which also runs the checks. Its methods may be called from any goroutine.
type Lander struct {
	inner   loop.Performer
	m       *Manager
	notify  chan struct{} // one token while reports are pending
	stop    chan struct{} // closed by Close
	workers sync.WaitGroup

	mu       sync.Mutex // guards the fields below; locked before locks of inner
	queue    []settle.Effect
	busy     string // the key of the landing under way
	cancel   context.CancelFunc
	closed   bool
	checks   map[string]chan settle.Report // of checks under way, by their keys
	verifies map[string]*verifying         // the verifications under way, by their keys
	reviews  map[string]*settle.Review     // those by agents that inner performs, by their keys
	reports  []settle.Report
}

// NewLander returns a Lander in front of inner.
func NewLander(inner loop.Performer, m *Manager) *Lander {
	l := &Lander{inner: inner, m: m, notify: make(chan struct{}, 1), stop: make(chan struct{}), checks: map[string]chan settle.Report{},
		verifies: map[string]*verifying{}, reviews: map[string]*settle.Review{}}
	l.workers.Go(l.forward)
	return l
}

// forward collects the reports of agents whose work is to land, from inner.
func (l *Lander) forward() {
	for {
		select {
		case <-l.inner.Notify():
			l.mu.Lock()
			l.collect()
			l.mu.Unlock()
		case <-l.stop:
			return
		}
	}
}

// collect takes the reports of inner: those of checks belong to landings and verifications. A verification has started when its
// check has. l.mu is held.
func (l *Lander) collect() {
	for _, r := range l.inner.Drain() {
		done, ok := l.checks[r.Key]
		review := l.reviews[r.Key]
		switch of := strings.TrimSuffix(r.Key, checkSuffix); {
		case review != nil && r.Kind.Ends():
			delete(l.reviews, r.Key)
			l.workers.Go(func() { l.judge(r, review) })
		case !ok:
			l.report(r)
		case r.Kind.Ends():
			delete(l.checks, r.Key)
			done <- r
		case r.Kind == settle.Started && l.verifies[of] != nil:
			r.Key, r.Step = of, l.verifies[of].step
			l.report(r)
		}
	}
}

// report adds a report; l.mu is held.
func (l *Lander) report(r settle.Report) {
	l.reports = append(l.reports, r)
	select {
	case l.notify <- struct{}{}:
	default:
	}
}

// Submit queues a landing, begins a verification, and hands on everything else.
func (l *Lander) Submit(e settle.Effect) {
	switch t := e.Task.(type) {
	case *settle.Land:
	case *settle.Verify:
		l.submitVerify(e, t)
		return
	default:
		l.submitReview(&e)
		l.inner.Submit(e)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.release(e.Key, "reconcile is ending")
		return
	}
	for _, q := range l.queue {
		if q.Key == e.Key {
			return
		}
	}
	if l.busy == e.Key {
		return
	}
	l.queue = append(l.queue, e)
	l.start()
}

// start begins the next landing, if none is under way. l.mu is held.
func (l *Lander) start() {
	if l.busy != "" || len(l.queue) == 0 || l.closed {
		return
	}
	e := l.queue[0]
	l.queue = l.queue[1:]
	ctx, cancel := context.WithCancel(context.Background())
	l.busy, l.cancel = e.Key, cancel
	started := l.m.o.Now()
	l.report(settle.Report{Kind: settle.Started, Key: e.Key, At: started, Step: e.Step()})
	l.workers.Go(func() {
		r := l.land(ctx, e, started)
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy, l.cancel = "", nil
		l.report(r)
		l.start()
	})
}

// release reports that a landing is not performed now; l.mu is held.
func (l *Lander) release(key, why string) {
	l.report(settle.Report{Kind: settle.Released, Key: key, At: l.m.o.Now(), Why: why})
}

// Withdraw releases a landing that is queued, or withdraws an effect from inner. A verification is cancelled, which leaves nothing.
func (l *Lander) Withdraw(key, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy != key && !l.endOwn(key, why) {
		l.inner.Withdraw(key, why)
	}
}

// Cancel cancels a landing, or an effect of inner.
func (l *Lander) Cancel(key, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy == key {
		l.cancel()
		return
	}
	if !l.endOwn(key, why) {
		l.inner.Cancel(key, why)
	}
}

// endOwn releases a landing that is queued, or cancels a verification; false for a key of neither. l.mu is held.
func (l *Lander) endOwn(key, why string) bool {
	for i, q := range l.queue {
		if q.Key == key {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			l.release(key, why)
			return true
		}
	}
	v := l.verifies[key]
	if v != nil {
		v.cancel()
	}
	return v != nil
}

// Hurry delegates to inner: a landing is cancelled at once.
func (l *Lander) Hurry(key string) { l.inner.Hurry(key) }

// Tell delegates to inner: a landing has no one to tell.
func (l *Lander) Tell(key string, all []settle.Message) { l.inner.Tell(key, all) }

// SetLimits delegates to inner.
func (l *Lander) SetLimits(runs *schemas.RunSettings, slots int, foreign map[string]int) {
	l.inner.SetLimits(runs, slots, foreign)
}

// ReapAll delegates to inner, which also ends what checks of killed landings and verifications left.
func (l *Lander) ReapAll(ctx context.Context, orphans []state.Orphan) error {
	all := slices.Clip(orphans)
	for _, o := range orphans {
		if !o.IsWork() {
			o.Key += checkSuffix
			all = append(all, o)
		}
	}
	return l.inner.ReapAll(ctx, all)
}

// Notify returns the channel that has a token while there are reports to drain.
func (l *Lander) Notify() <-chan struct{} { return l.notify }

// Drain returns the reports since the last call, without those of checks.
func (l *Lander) Drain() []settle.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.collect()
	out := l.reports
	l.reports = nil
	return out
}

// Backlog counts the landings that have not started.
func (l *Lander) Backlog() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inner.Backlog() + len(l.queue)
}

// Close ends everything: queued landings are released, and one under way stops before it moves the branch, or completes.
func (l *Lander) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.inner.Close(ctx)
	}
	l.closed = true
	for _, e := range l.queue {
		l.release(e.Key, "reconcile is ending")
	}
	l.queue = nil
	if l.cancel != nil {
		l.cancel()
	}
	for _, v := range l.verifies {
		v.cancel()
	}
	l.mu.Unlock()
	err := l.inner.Close(ctx) // ends the checks
	l.mu.Lock()
	l.collect()
	l.mu.Unlock()
	close(l.stop)
	l.workers.Wait()
	return errors.Join(err, l.m.leaveChecks())
}

// land performs a landing that has started, and returns its report.
func (l *Lander) land(ctx context.Context, e settle.Effect, started time.Time) settle.Report {
	task := e.Task.(*settle.Land)
	log := ""
	o, err := l.m.land(ctx, task, func(ctx context.Context, commit, onto string) (string, string, error) {
		message, output, path, err := l.check(ctx, e, task, commit, onto)
		log = path
		return message, output, err
	})
	r := settle.Report{Kind: settle.Finished, Key: e.Key, At: l.m.o.Now()}
	switch {
	case ctx.Err() != nil && (err != nil || o.commit == ""):
		r.Kind, r.Why = settle.Released, "interrupted"
		return r
	case err != nil:
		r.Kind, r.Err = settle.Broken, fmt.Errorf("land the commit of %s of %s: %w", e.Node, e.Owner, err)
		return r
	case o.waits != "":
		r.Kind, r.Why, r.Waits = settle.Released, o.waits, o.waits
		return r
	}
	run := e.Claim()
	run.StartedAt, run.FinishedAt = schemas.NewTime(started), schemas.NewTime(r.At)
	run.Outcome, run.Message, run.Output, run.Log = schemas.OutcomeFailed, o.message, o.output, log
	run.Workspace = &schemas.RunWorkspace{Kind: "land", Name: task.Workspace, Base: o.base, Commit: cmp.Or(o.commit, o.tests), Branch: task.Target, Reason: o.reason}
	if o.commit != "" {
		run.Outcome = schemas.OutcomeSucceeded
		run.Message = "landed as " + o.commit[:min(10, len(o.commit))]
		if _, err := l.m.change(task.Workspace, landed); err != nil && !gone(err) {
			l.m.o.Warn(err.Error())
		}
	}
	r.Run = &run
	return r
}

// check runs the checks on the commit, which is made onto another one, in a checkout of it.
func (l *Lander) check(ctx context.Context, e settle.Effect, task *settle.Land, commit, onto string) (message, output, log string, err error) {
	all, err := l.m.checksOf(ctx, task, commit, onto)
	if err != nil {
		return "", "", "", err
	}
	clean := false
	defer func() { err = errors.Join(err, l.m.freeCheck(checkName(e), clean)) }()
	for _, c := range all {
		if c.step != nil { // a check may have changed the files
			if err := l.m.freeCheck(checkName(e), clean); err != nil {
				return "", "", log, err
			}
		}
		r := l.run(ctx, checkEffect(e, commit, c.command, task.Sandbox))
		clean = c.step != nil && r.Kind == settle.Finished && r.Run.Outcome == schemas.OutcomeSucceeded
		if r.Run != nil {
			log = l.m.keepLog(r.Run.Log, e.Key)
		}
		switch {
		case r.Kind == settle.Broken:
			return "", "", log, r.Err
		case r.Kind != settle.Finished:
			return "", "", log, errors.Join(ctx.Err(), errors.New(r.Why))
		}
		if message, output = c.failure(r.Run); message != "" {
			return message, output, log, nil
		}
	}
	return "", "", log, nil
}

// landingCheck is a check of a landing; step is nil unless it verifies the commit again.
type landingCheck struct {
	command settle.Command
	step    *settle.Verification
}

// failure says how the check failed, shortly and in full; "" if it did not.
func (c *landingCheck) failure(run *schemas.Run) (message, output string) {
	what, why, found := fmt.Sprintf("check %q", strings.Join(c.command.Argv, " ")), run.Message, run.Output
	if c.step != nil {
		e := checks.EvidenceOf(run)
		if e.LetsBut(c.step.Taken, c.step.AllowNone) {
			return "", ""
		}
		what, why, found = c.step.Step+" of the pipeline", e.Summary, shorten.Text(e.Text(), conflictLimit)
	} else if run.Outcome == schemas.OutcomeSucceeded {
		return "", ""
	}
	return fmt.Sprintf("the %s failed on what the branch would become: %s", what, why), fmt.Sprintf("%s: %s\n%s", what, why, found)
}

// checksOf are the checks of a landing; those of its pipeline only if its commit has other files than were verified.
func (m *Manager) checksOf(ctx context.Context, task *settle.Land, commit, onto string) ([]landingCheck, error) {
	var all []landingCheck
	for _, argv := range task.Checks {
		all = append(all, landingCheck{command: settle.Command{Argv: argv, Env: m.readsCaches(task.Env, task.Sandbox), EnvFrom: task.EnvFrom, Timeout: checkTimeout, Sandbox: task.Sandbox}})
	}
	if len(task.Verify) == 0 {
		return all, nil
	}
	repo, err := m.repository()
	if err != nil {
		return nil, err
	}
	if tree, err := repo.TreeOf(ctx, commit); err != nil || tree == task.Tree {
		return all, err
	}
	for i := range task.Verify {
		step := &task.Verify[i]
		c, err := m.verifier(append(slices.Clip(step.Args), "--base", onto), task.Env, task.EnvFrom, task.Sandbox)
		if err != nil {
			return nil, err
		}
		all = append(all, landingCheck{c, step})
	}
	return all, nil
}

// verifier is the command that verifies a commit: this program, and its tools confined as the agent was that wrote the commit. It is not confined
// itself, so that nothing that they do can write a verdict.
func (m *Manager) verifier(args, env []string, from []settle.Variable, confined *settle.Sandbox) (settle.Command, error) {
	c := settle.Command{Argv: append([]string{m.o.Self}, args...), Env: env, EnvFrom: from, Timeout: verifyTimeout, Output: "json"}
	if confined == nil {
		return c, nil
	}
	level := confined.Level
	found, err := m.o.Sandbox.Choose(&confined.Sandbox)
	if err == nil {
		level = found.Level
	}
	if level == schemas.SandboxNone {
		return c, nil
	}
	cache := m.verifiedCache()
	c.Argv, c.Env = append(c.Argv, "--sandbox", level), append(slices.Clip(env), checking.CacheVar+"="+cache)
	if err == nil { // a probe in each step costs more than all else that a step does beside its tools
		c.Env = append(c.Env, found.Variable())
	}
	return c, errors.Join(os.MkdirAll(cache, 0o700), os.Chtimes(cache, time.Time{}, m.o.Now())) // one that no run has used for long is removed
}

func checkName(e settle.Effect) string { return "check." + nameOf(e.Key) }

// checkSuffix ends the keys of checks, which begin with that of the landing or verification. One of them runs at a time.
const checkSuffix = ".check"

// checkEffect is the private effect that runs a check in a checkout of a commit. confined confines the setup of that checkout.
func checkEffect(e settle.Effect, commit string, c settle.Command, confined *settle.Sandbox) settle.Effect {
	c.Workspace = &settle.Workspace{Kind: settle.CheckWorkspace, Declared: true, Commit: commit, Branch: "check", Attempts: checkName(e), Setup: confined}
	return settle.Effect{Key: e.Key + checkSuffix, Owner: e.Owner, Node: e.Node, NodeKey: e.NodeKey, Session: e.Session, Task: &c}
}

// verifying is a verification under way.
type verifying struct {
	cancel context.CancelFunc
	step   string
}

// submitVerify begins a verification.
func (l *Lander) submitVerify(e settle.Effect, task *settle.Verify) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		l.release(e.Key, "reconcile is ending")
		return
	case l.verifies[e.Key] != nil:
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.verifies[e.Key] = &verifying{cancel, task.Step}
	l.workers.Go(func() {
		r := l.verify(ctx, e, task)
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.verifies, e.Key)
		l.report(r)
	})
}

// verify performs a verification and returns its report.
func (l *Lander) verify(ctx context.Context, e settle.Effect, task *settle.Verify) settle.Report {
	commit, why, err := l.m.tipOf(ctx, task)
	if err != nil {
		return settle.Report{Kind: settle.Broken, Key: e.Key, At: l.m.o.Now(), Err: err}
	}
	if why != "" {
		run, now := e.Claim(), schemas.NewTime(l.m.o.Now())
		run.StartedAt, run.FinishedAt, run.Outcome, run.Message = now, now, schemas.OutcomeFailed, why
		return settle.Report{Kind: settle.Finished, Key: e.Key, At: now.Time, Run: &run}
	}
	c, err := l.m.verifier(task.Args, task.Env, task.EnvFrom, task.Sandbox)
	if err != nil {
		return settle.Report{Kind: settle.Broken, Key: e.Key, At: l.m.o.Now(), Err: err}
	}
	r := l.run(ctx, checkEffect(e, commit, c, task.Sandbox))
	r.Key = e.Key
	if err := l.m.freeCheck(checkName(e), r.Kind == settle.Finished && r.Run.Outcome == schemas.OutcomeSucceeded); err != nil {
		l.m.o.Warn(err.Error())
	}
	if r.Kind != settle.Finished {
		return r
	}
	run, done := e.Claim(), r.Run
	run.StartedAt, run.FinishedAt, run.Outcome, run.Message = done.StartedAt, done.FinishedAt, done.Outcome, done.Message
	run.ExitCode, run.Result, run.Output, run.Log = done.ExitCode, done.Result, done.Output, l.m.keepLog(done.Log, e.Key)
	if e.Owner.Kind == schemas.SessionKind.Name {
		run.Workspace = &schemas.RunWorkspace{Kind: settle.CheckWorkspace, Commit: commit, Branch: task.Branch}
	}
	if run.Outcome == schemas.OutcomeSucceeded {
		found := checks.EvidenceOf(&run)
		run.Message = fmt.Sprintf("%s %s: %s", task.Step, found.Outcome, found.Summary)
		run.Output = "" // the result has all of it
	}
	if run.Outcome == schemas.OutcomeCancelled {
		return settle.Report{Kind: settle.Released, Key: e.Key, At: r.At, Why: run.Message}
	}
	r.Run = &run
	return r
}

// tipOf is the commit that a verification is about; why says why no commit has all the work.
func (m *Manager) tipOf(ctx context.Context, task *settle.Verify) (commit, why string, err error) {
	if task.Commit != "" {
		return task.Commit, "", nil
	}
	repo, err := m.repository()
	if err != nil {
		return "", "there is nothing to check out: " + err.Error(), nil
	}
	if task.Branch != "" { // never what is checked out in its place
		if _, err := repo.Resolve(ctx, "refs/heads/"+task.Branch); err != nil {
			return "", fmt.Sprintf("the branch %s is not in this clone: %v", task.Branch, err), nil
		}
	}
	tip, err := repo.Base(ctx, task.Branch)
	if err != nil || tip.Hash == "" {
		return "", "the branch has no commit yet; commit the project", err
	}
	if !task.Clean {
		return tip.Hash, "", nil
	}
	l, err := worktree.Find(m.tree)
	if err != nil {
		return "", "", err
	}
	changed, gone, err := checking.Changed(ctx, l.Top)
	if err != nil {
		return "", "nobody knows what is not committed: " + err.Error(), nil
	}
	ours := m.o.Settings.Folders
	loose := slices.DeleteFunc(append(changed, gone...), func(f string) bool {
		rel, err := filepath.Rel(m.tree, filepath.Join(l.Top, filepath.FromSlash(f)))
		at := filepath.ToSlash(rel)
		return err == nil && (strings.HasPrefix(at, ours.Specs+"/") || strings.HasPrefix(at, ours.State+"/") || strings.HasPrefix(at, ".reconcile/"))
	})
	if len(loose) > 0 {
		why = "an agent works in the tree itself, and the branch lacks changes of it: " + schemas.Shorten(loose, 3) + "; commit them"
	}
	return tip.Hash, why, nil
}

// verifyTimeout ends a verification whose checks all hang.
const verifyTimeout = time.Hour

// keepLog makes the log of a check that of the landing, which has one: that of the last check that printed something. It returns
// its path.
func (m *Manager) keepLog(check, landing string) string {
	log := state.LogPath(landing)
	if check != "" {
		if err := os.Rename(filepath.Join(m.tree, filepath.FromSlash(check)), filepath.Join(m.tree, filepath.FromSlash(log))); err != nil {
			return check
		}
	}
	if !exists(filepath.Join(m.tree, filepath.FromSlash(log))) {
		return ""
	}
	return log
}

// checkTimeout ends a check.
const checkTimeout = 10 * time.Minute

// run has inner perform an effect that no one else knows of.
func (l *Lander) run(ctx context.Context, e settle.Effect) settle.Report {
	done := make(chan settle.Report, 1)
	l.mu.Lock()
	l.checks[e.Key] = done
	l.mu.Unlock()
	l.inner.Submit(e)
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		l.inner.Cancel(e.Key, "interrupted")
		return <-done
	}
}
