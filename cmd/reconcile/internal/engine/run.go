// Package engine runs the loop on a tree: it opens the tree, connects the loop to git, a remote, GitHub, the memory and
// the logs, and watches.
package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/commits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/doctor"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/eventlog"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/identities"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/metering"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/mirroring"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/outputs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/permissions"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/recall"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/share"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/workspaces"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/cmd/reconcile/internal/versions"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

// Sink receives the output of a run. Count, Warn and Note may be called from any goroutine.
type Sink interface {
	eventlog.Observer
	// Count reports the progress of long work: step is for example "read" or "write". It may be called often.
	Count(step string, done, total int)
	// Note reports an event as a permanent line.
	Note(text string)
	// Warn reports a problem that does not end the run.
	Warn(text string)
}

// Options configure a run. All fields except Inside and WarnIndex are required.
type Options struct {
	Tree tree.Config
	Sink Sink
	// Attended says that a person may answer the questions of agents during the run: it has a terminal.
	Attended bool
	// Inside is the run of this tree that this process is part of, or nil.
	Inside *runner.Inside
	// WarnIndex is called with errors of the endpoint for vectors.
	WarnIndex func(error)
	// Sandbox confines the programs of agents; nil: it cannot.
	Sandbox *sandbox.Host
}

// Request says what a run does.
type Request struct {
	Watch      bool              // keep running after each change
	Commit     bool              // commit the written files even if the settings do not ask for it
	Push       bool              // share the branch; implies Commit
	DecideOnly bool              // decide once; start nothing, wait for nothing, commit nothing
	Only       *settle.Selection // the effects to perform; nil: all
}

// Result is the outcome of a run.
type Result struct {
	// Unchanged says that nothing has changed since the last run. Tree is nil then, and Counts has the number of
	// objects of each kind.
	Unchanged   bool
	Counts      []state.Count
	Tree        *state.Tree       // at its fixed point
	Only        *settle.Selection // the selection of the run
	Verdict     readiness.Exit    // summary of the statuses
	Report      *readiness.Report // of a tree that is Unchanged and whose Verdict is not ready; nil: the tree must be loaded for it
	MemoryBusy  bool              // a lock was not available, so that the memory is incomplete
	LedgersBusy error             // ledgers whose locks were not available; nil if all were
	Waits       []string          // actions that people have to take, one per line
	Ran         int               // effects performed by this run
	Wrote       int               // written files: statuses, derived specs, and those of the memory
	Commit      string            // the new commit, or ""
	Pushed      bool              // all commits are on the remote
	Sent        bool              // this run pushed a commit
	Pulled      bool              // this run adopted commits of others
}

// nestedError says that a run was requested inside a run of the same tree.
type nestedError struct{ Key string } // of the outer run

func (e *nestedError) Error() string {
	return fmt.Sprintf("this is part of the run %s of the same tree; "+
		"a run inside a run would wait for itself: take the call out of the node, or point -C at another tree", e.Key)
}

// SettingsError says that a run was refused, since nothing in the file of settings can be used.
type SettingsError struct{ Problem error }

func (e *SettingsError) Error() string {
	return fmt.Sprintf("%v; nothing was run: without its settings a run could do what they forbid, or do again what is done", e.Problem)
}

// Run drives the tree to its fixed point. When ctx ends it stops and returns ctx.Err(), except for a watcher, for which
// this is the normal end. The error is a *NestedError, a *SettingsError or a *commits.NoRepositoryError if the run was refused
// before it began.
func Run(ctx context.Context, o Options, q Request) (Result, error) {
	if o.Inside != nil {
		return Result{}, &nestedError{o.Inside.Key}
	}
	store, err := o.Tree.Open()
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	sum, fresh := store.Fresh()
	tools := versions.Open(o.Tree.Dir, store.Root(), secrets.RedactBytes)
	fresh = fresh && !q.Watch && q.Only == nil && !tools.Changed() && (sum.Commit || !q.Commit) && !sum.Mirror
	unchanged := Result{Unchanged: true, Counts: sum.Counts, Verdict: readiness.Exit(sum.Exit), Waits: sum.Lines}
	if fresh && len(sum.Report) > 0 && json.Unmarshal(sum.Report, &unchanged.Report) != nil {
		unchanged.Report = nil // of another program; the tree tells the same
	}
	if fresh && (q.DecideOnly || !q.Push && !sum.Push) {
		return unchanged, nil
	}
	if wrong, unusable := store.CheckSettings(); unusable {
		return Result{}, &SettingsError{wrong}
	}
	if !q.Watch {
		o.Tree.Collector.Aim(process.GCLatency)
	}
	r := &engineRun{o: o, request: q, store: store, settings: store.Settings(), tools: tools}
	if q.DecideOnly {
		return r.decide(ctx)
	}
	if !q.Watch {
		store.Watch()
	}
	if err := r.openRemote(ctx); err != nil {
		return Result{}, err
	}
	if fresh {
		inSync := r.share == nil
		if r.share != nil {
			inSync, err = r.share.InSync(ctx)
		}
		if err != nil || inSync {
			unchanged.Pushed = inSync
			return unchanged, err
		}
	}
	return r.run(ctx)
}

// engineRun is one run of the loop with its connections.
type engineRun struct {
	o        Options
	request  Request
	store    *state.Store
	settings *schemas.SettingsSpec
	commits  *commits.Committer // nil: nothing is committed
	share    *share.Share       // nil: nothing is pushed
	mirror   *mirroring.Runner  // nil: nothing is mirrored
	tools    *versions.Book
	warned   string // last text of warnOnce

	secrets     *runner.Secrets
	workspaces  *workspaces.Manager
	permissions *permissions.Desk
}

// openRemote opens the repository if the run commits, and the remote if it pushes. A run that could not commit or push
// fails before it does anything.
func (r *engineRun) openRemote(ctx context.Context) (err error) {
	r.commits, err = commits.Open(commits.Options{Dir: r.o.Tree.Dir, Store: r.store, Now: r.o.Tree.Now, Warn: r.o.Sink.Warn},
		commits.Request{Commit: r.request.Commit, Push: r.request.Push})
	if err != nil || !r.request.Push && !r.settings.Git.Push {
		return err
	}
	r.share, err = share.Open(ctx, share.Options{Dir: r.o.Tree.Dir, Store: r.store, Settings: r.settings, Commits: r.commits,
		Egress: egress.Policy{Getenv: r.o.Tree.Getenv}, Watching: r.request.Watch, Warn: r.o.Sink.Warn})
	return err
}

func (r *engineRun) run(ctx context.Context) (Result, error) {
	memory := r.openMemory()
	defer memory.Close() //nolint:errcheck // it was only read
	r.secrets = runner.FindSecrets(os.Environ(), r.o.Tree.Dir)
	var err error
	if r.workspaces, err = r.openWorkspaces(); err != nil {
		return Result{}, err
	}
	r.permissions = permissions.New(r.request.Watch || r.o.Attended)
	proxy := metering.New(metering.Options{Dir: r.o.Tree.Dir, Getenv: r.o.Tree.Getenv, Policy: egress.Policy{Getenv: r.o.Tree.Getenv},
		Prices: r.settings.Prices})
	defer proxy.Close() //nolint:errcheck // its runs are over
	commands, err := r.runner(memory, proxy)
	if err != nil {
		return Result{}, err
	}
	perform := workspaces.NewLander(commands, r.workspaces)
	events := r.openEvents()
	defer events.Close()
	l := r.loop(memory, events)
	l.Perform, l.CPUs, l.Linger, l.Only = perform, runtime.NumCPU(), true, r.request.Only
	l.Observe = func(reports []settle.Report, t *state.Tree) {
		events.Observe(reports, t)
		r.permissions.Observe(t)
	}
	l.Outputs = r.outputs()
	l.Archivable = func(ctx context.Context, paths []string) ([]string, error) {
		return r.commits.Movable(ctx, r.o.Tree.Dir, paths)
	}
	if r.commits != nil {
		l.Commit = r.commits.Commit
		l.Transient = r.transient
	}
	if r.share != nil {
		l.Share, l.Perform = r.share, r.share.Guard(perform)
		defer r.share.Close(ctx)
	}
	l.NotReady = r.workspaces.NotReady
	l.Identify = r.prover().Identify
	l.ReadIssue = r.readIssue
	l.Tools = r.tools
	l.CheckAgent = r.checkAgent
	defer r.sweepWorkspaces(ctx)
	r.mirror = r.openMirror()
	if r.mirror != nil && !r.request.Watch {
		r.mirror.In(ctx)
	}
	var res loop.Result
	if r.request.Watch {
		res, err = r.watch(ctx, l)
	} else if res, err = l.Once(ctx); err == nil && !res.Interrupted && r.mirror != nil {
		res.Commit = cmp.Or(r.mirror.Once(ctx, res), res.Commit)
	}
	if res.Interrupted && err == nil && !r.request.Watch {
		err = context.Canceled
	}
	return r.result(l, res), err
}

// prover proves who wrote actions.
func (r *engineRun) prover() *identities.Prover {
	return &identities.Prover{Store: r.store, Environ: os.Environ()}
}

// longestRead bounds how long a run waits for an issue on GitHub.
const longestRead = 30 * time.Second

// readIssue reads an issue on GitHub.
func (r *engineRun) readIssue(ctx context.Context, settings *schemas.SettingsSpec, number int) (derive.Issue, error) {
	policy, set := egress.Policy{Getenv: r.o.Tree.Getenv}, &settings.GitHub
	if policy.GitHubToken() == "" {
		return derive.Issue{}, fmt.Errorf("neither %s nor %s is set", egress.TokenVariable, egress.OtherToken)
	}
	client, err := policy.GitHub(r.o.Tree.Dir, set, set.Repo, nil)
	if err != nil {
		return derive.Issue{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestRead)
	defer cancel()
	return mirroring.ReadIssue(ctx, client, number)
}

// checkAgent says why an agent cannot work on this machine.
func (r *engineRun) checkAgent(ctx context.Context, settings *schemas.SettingsSpec, spec *schemas.AgentSpec) string {
	return doctor.HealthAilment(ctx, r.o.Tree.Dir, os.Environ(), settings.Profiles, spec, r.secrets.In)
}

func (r *engineRun) result(l *loop.Loop, res loop.Result) Result {
	out := Result{Tree: res.Tree, Only: l.Only, Ran: res.Ran, Wrote: res.Wrote, Commit: r.share.RemoteHash(res.Commit), MemoryBusy: res.MemoryBusy,
		LedgersBusy: res.LedgersBusy, Pushed: res.Pushed, Sent: res.Sent, Pulled: res.Pulled}
	if res.Tree != nil {
		out.Verdict = readiness.Verdict(res.Tree, l.Only)
		for _, w := range work.Waits(res.Tree, l.Only, r.o.Tree.Now()) {
			out.Waits = append(out.Waits, w.String())
		}
	}
	return out
}

// decide decides once, for a caller that only needs the state.
func (r *engineRun) decide(ctx context.Context) (Result, error) {
	memory := r.openMemory()
	defer memory.Close() //nolint:errcheck // it was only read
	events := r.openEvents()
	defer events.Close()
	l := r.loop(memory, events)
	places, err := r.openWorkspaces()
	if err != nil {
		return Result{}, err
	}
	l.NotReady = places.NotReady
	l.Identify = r.prover().Identify
	res, err := l.DecideOnce(ctx)
	out := Result{Tree: res.Tree, Wrote: res.Wrote, MemoryBusy: res.MemoryBusy, LedgersBusy: res.LedgersBusy}
	if res.Tree != nil {
		out.Verdict = readiness.Verdict(res.Tree, nil)
	}
	return out, err
}

// loop returns the part of a loop's configuration that all loops share.
func (r *engineRun) loop(memory *recall.Memory, events *eventlog.Recorder) *loop.Loop {
	return &loop.Loop{Store: r.store, Now: r.o.Tree.Now, Warn: r.o.Sink.Warn, Record: events.Record, Memory: memory,
		Progress: r.o.Sink.Count}
}

func (r *engineRun) openMemory() *recall.Memory {
	return recall.New(recall.Options{Store: r.store, Now: r.o.Tree.Now, Log: r.o.Tree.Log, Warn: r.o.Sink.Warn, Count: r.o.Sink.Count})
}

func (r *engineRun) openEvents() *eventlog.Recorder {
	return eventlog.New(eventlog.Options{Root: r.store.Root(), Now: r.o.Tree.Now, Log: r.o.Tree.Log, Observer: r.o.Sink,
		Warn: r.o.Sink.Warn})
}

func (r *engineRun) outputs() *outputs.Keeper {
	o := outputs.Options{Dir: r.o.Tree.Dir, Store: r.store, Settings: r.settings, Share: r.share, Warn: r.o.Sink.Warn}
	if r.commits != nil {
		o.Git = r.commits.Git
	}
	return outputs.New(o)
}

// show renders the answer to a command in a GitHub comment as Markdown.
func (r *engineRun) show(t *state.Tree, v slash.View) string {
	return render.Show(t, v, r.o.Tree.Now())
}

func (r *engineRun) openMirror() *mirroring.Runner {
	return mirroring.OpenRunner(mirroring.RunnerOptions{Tree: r.o.Tree, Store: r.store, Settings: r.settings, Commits: r.commits,
		Share: r.share, Watching: r.request.Watch, Show: r.show, Warn: r.o.Sink.Warn, Note: r.o.Sink.Note})
}

// warnOnce reports a lasting error once.
func (r *engineRun) warnOnce(err error) {
	if text := err.Error(); text != r.warned {
		r.warned = text
		r.o.Sink.Warn(text)
	}
}

func (r *engineRun) runner(memory *recall.Memory, proxy *metering.Meter) (*runner.Runner, error) {
	s := r.settings
	return runner.New(runner.Options{
		Secrets: r.secrets,
		Root:    r.o.Tree.Dir, Now: r.o.Tree.Now, Runs: s.Runs,
		Redact:       secrets.RedactBytes,
		Durable:      r.store.SyncJournal,
		Specs:        s.Folders.Specs,
		State:        s.Folders.State,
		Memory:       memory,
		Workspaces:   r.workspaces,
		Permissions:  r.permissions,
		Meter:        proxy,
		Destinations: egress.Policy{Getenv: r.o.Tree.Getenv},
		Sandbox:      r.o.Sandbox,

		WorkspacePorts: s.Workspaces.Ports,
	})
}

// interrupted reports whether every error is a cancelled context.
func interrupted(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return errors.Is(err, context.Canceled)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !interrupted(e) })
}

func (r *engineRun) openWorkspaces() (*workspaces.Manager, error) {
	return workspaces.New(workspaces.Options{Dir: r.o.Tree.Dir, Settings: r.settings, Now: r.o.Tree.Now, Getenv: r.o.Tree.Getenv,
		Warn: r.o.Sink.Warn, Self: process.Executable(), Sandbox: r.o.Sandbox, Secrets: r.secrets})
}

// sweepWorkspaces removes workspaces that are not needed any more. Nothing depends on it.
func (r *engineRun) sweepWorkspaces(ctx context.Context) {
	if err := r.workspaces.Sweep(context.WithoutCancel(ctx)); err != nil {
		r.o.Sink.Warn("workspaces are not cleaned up: " + err.Error())
	}
}

// maxProblems bounds the lines about one turn: a branch switch may break any number of files.
const maxProblems = 20

// reportProblems warns of new problems of the tree's files after each turn of a watcher. A watcher prints its report
// only at its end, and a user who saves a broken file needs to know at once.
func reportProblems(l *loop.Loop, warn func(text string)) {
	observe := l.Observe
	known := map[string]bool{}
	l.Observe = func(reports []settle.Report, t *state.Tree) {
		observe(reports, t)
		if reports != nil || t == nil {
			return
		}
		lines, now := newProblems(t.Problems(), known)
		for _, line := range lines[:min(len(lines), maxProblems)] {
			warn(line)
		}
		switch {
		case len(lines) > maxProblems:
			warn(fmt.Sprintf("and %d more problems; \"reconcile validate\" lists them", len(lines)-maxProblems))
		case len(now) == 0 && len(known) > 0:
			warn("the problems of the files are gone")
		}
		known = now
	}
}

// newProblems returns a line for each problem that is not in known, and the set of all lines.
func newProblems(problems []schemas.Problem, known map[string]bool) (lines []string, now map[string]bool) {
	now = make(map[string]bool, len(problems))
	for _, p := range problems {
		line := p.Error()
		if p.Severity == schemas.Warning {
			line = "warning: " + line
		}
		if !known[line] && !now[line] {
			lines = append(lines, line)
		}
		now[line] = true
	}
	return lines, now
}
