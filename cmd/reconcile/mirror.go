package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	engine "reconcile.dev/reconcile/cmd/reconcile/internal/engine/mirroring"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// keyVariable is the environment variable whose value signs markers instead of the key in the tree.
const keyVariable = "RECONCILE_MIRROR_KEY"

// mirrorKeyLength is the least length of a key from the environment.
const mirrorKeyLength = 16

// mirroring keeps the issues of a repository on GitHub in step with the tree of a run.
type mirroring struct {
	*wiring
	client *github.Client
	repo   string // owner/name
	files  string // the address of the tree's files
	// comments is what a watcher knows of comments; nil in a run that looks once.
	comments *engine.Watch
	told     string // what tellMirror said last
}

// openMirror returns nil when nothing is to be mirrored, also where that cannot be: a mirror that is late is brought up
// to date by a later run, and keeps none from its work.
func (w *wiring) openMirror() *mirroring {
	set := &w.settings.GitHub
	if !set.Mirror {
		return nil
	}
	if w.egress().GitHubToken() == "" {
		w.warn(fmt.Sprintf("%s says github.mirror: true, and neither %s nor %s is set: nothing is mirrored to %s. Set one to a "+
			"token that may write on issues, or set github.mirror to false", schemas.SettingsPath, egress.TokenVariable, egress.OtherToken, set.Repo))
		return nil
	}
	client, err := w.egress().GitHub(w.global.dir, set, set.Repo, nil)
	if err != nil {
		w.warn(fmt.Sprintf("nothing is mirrored to GitHub: %v", err))
		return nil
	}
	return &mirroring{wiring: w, client: client, repo: set.Repo, files: w.filesOnline(set)}
}

// filesOnline is the address of the tree's files on the default branch.
func (a *app) filesOnline(set *schemas.GitHubSettings) string {
	server := cmp.Or(a.getenv("GITHUB_SERVER_URL"), "https://github.com")
	if set.BaseURL != "" {
		u, err := url.Parse(set.BaseURL)
		if err != nil {
			return ""
		}
		server = u.Scheme + "://" + strings.TrimPrefix(u.Host, "api.") // pages are beside api.github.com
	}
	address := server + "/" + set.Repo + "/blob/HEAD"
	if below := a.repositoryPath(); below != "" {
		address += "/" + (&url.URL{Path: below}).EscapedPath()
	}
	return address
}

// project is what should stand on GitHub for a tree.
func project(ctx context.Context, t *state.Tree, records *engine.Records, files string) ([]mirror.Issue, error) {
	var failed error
	issues := mirror.Project(t, mirror.Options{Files: files, Mention: t.Settings().GitHub.Mention,
		Made: func(ref schemas.Ref) int {
			n, err := records.Made(ctx, ref)
			failed = errors.Join(failed, err)
			return n
		}})
	return issues, failed
}

// mirrorKeys are what markers are signed with.
func (a *app) mirrorKeys(ctx context.Context, records *engine.Records) (mirror.Keys, error) {
	secret := a.getenv(keyVariable)
	if secret != "" && len(secret) < mirrorKeyLength {
		return nil, fmt.Errorf("%s has %d characters; use at least %d, or leave it out", keyVariable, len(secret), mirrorKeyLength)
	}
	return records.Keys(ctx, secret)
}

// out brings GitHub in step with a tree, and reports whether records were written. again is when to try again what could
// not be done; zero: with the next change. What goes wrong is told, and is no failure of the run.
func (m *mirroring) out(ctx context.Context, t *state.Tree) (wrote bool, again time.Time) {
	if set := t.Settings().GitHub; !set.Mirror || set.Repo != m.repo { // a watcher is started anew to mirror elsewhere
		return false, time.Time{}
	}
	held, release, err := m.alone(ctx)
	if err != nil || release == nil {
		m.tellMirror(err)
		return false, m.now().Add(time.Minute)
	}
	defer release()
	records := engine.NewRecords(m.store, m.repo, false, m.warn)
	var rep engine.Report
	if err = m.store.SweepMirror(held); err == nil {
		rep, err = m.sync(held, t, records)
	}
	if err == nil && rep.Later == nil {
		err = m.hear(held, records, (*engine.Inbox).Answer)
	}
	if err = unheld(ctx, held, err); errors.Is(err, errUnheld) {
		again = m.now().Add(time.Minute)
	}
	for _, n := range rep.Notes {
		m.warn("GitHub: " + n)
	}
	if rep.Calls() > 0 {
		m.options.progress.Note(fmt.Sprintf("GitHub: %s on %s", made(rep), m.repo))
	}
	if rep.Later != nil {
		err = errors.Join(err, fmt.Errorf("%s left for the next time: %w", plural(rep.Left, "issue"), rep.Later))
		again = m.now().Add(time.Minute)
		if limited := (*github.Limited)(nil); errors.As(rep.Later, &limited) && limited.Until.After(again) {
			again = limited.Until
		}
	}
	m.tellMirror(err)
	return records.Changed(), again
}

func (m *mirroring) sync(ctx context.Context, t *state.Tree, records *engine.Records) (engine.Report, error) {
	keys, err := m.mirrorKeys(ctx, records)
	if err != nil {
		return engine.Report{}, err
	}
	issues, err := project(ctx, t, records, m.files)
	if err != nil {
		return engine.Report{}, err
	}
	e := &engine.Mirror{Remote: m.client, Records: records, Keys: keys, Now: m.now}
	return e.Out(ctx, issues)
}

// tellMirror warns of what went wrong, once while it lasts. The mirror of a watcher is beside its loop, so what was said is
// the mirror's own.
func (m *mirroring) tellMirror(err error) {
	if err == nil || errors.Is(err, context.Canceled) || err.Error() == m.told {
		return
	}
	m.told = err.Error()
	m.warn("mirror to GitHub: " + m.told)
}

// made says what a run of the mirror did.
func made(r engine.Report) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{r.Issues, "issue"}, {r.Comments, "comment"}, {r.Edits, "edit"}, {r.Labels, "label"}} {
		if p.n > 0 {
			parts = append(parts, plural(p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// mirrorClaim is what a reconciler claims on the remote while it mirrors.
const mirrorClaim = "github-mirror"

// mirrorPatience is how long a run waits for another on the same tree that mirrors.
const mirrorPatience = 30 * time.Second

// alone has this run mirror alone: on this tree by a lock, and among those that share a branch by a claim. release is nil
// if another one does it, which then is in step with what it has, or a later run with this.
func (m *mirroring) alone(ctx context.Context) (held context.Context, release func(), err error) {
	if err := os.MkdirAll(filepath.Join(m.global.dir, ".reconcile", "locks"), 0o755); err != nil {
		return ctx, nil, err
	}
	l := flock.New(filepath.Join(m.global.dir, ".reconcile", "locks", "github"))
	wait, cancel := context.WithTimeout(ctx, mirrorPatience)
	defer cancel()
	if ok, err := l.TryLockContext(wait, 100*time.Millisecond); !ok {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("another run on this tree is at it; the next one goes on")
		}
		return ctx, nil, err
	}
	unlock := func() { _ = l.Unlock() } // the end of the process does it, too
	if m.share == nil {
		return ctx, unlock, nil
	}
	held, drop, err := hold(ctx, claimed{m.share}, mirrorClaim, m.share.settings.Git.ClaimFor.Std())
	if err != nil || drop == nil {
		unlock()
		return ctx, nil, err
	}
	return held, func() { drop(); unlock() }, nil
}

// errUnheld is the error of what was broken off because another reconciler may do it now.
var errUnheld = errors.New("the claim on the remote was lost, so another reconciler may be at it; the next run goes on")

// unheld is an error of something that was done while a claim was held.
func unheld(ctx, held context.Context, err error) error {
	if err != nil && held.Err() != nil && ctx.Err() == nil {
		return errUnheld
	}
	return err
}

// hold claims something among reconcilers, each time for a while, for as long as a run works on it. drop is nil while
// another one has it. held ends when the claim is lost, or may be: it ran out while the remote could not be reached.
func hold(ctx context.Context, r claims.Remote, key string, each time.Duration) (held context.Context, drop func(), err error) {
	began := time.Now()
	refused, err := r.Take(ctx, []string{key})
	if err != nil || len(refused) > 0 {
		return ctx, nil, err
	}
	held, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer cancel()
		renewing(held, r, key, each, began.Add(each))
	}()
	return held, func() {
		cancel()
		<-over
		_ = r.Drop(context.WithoutCancel(ctx), []string{key}) // else it runs out
	}, nil
}

// renewing renews a claim that stands until a time, and returns when it is lost, or may be, or ctx ends.
func renewing(ctx context.Context, r claims.Remote, key string, each time.Duration, until time.Time) {
	tick := time.NewTicker(each / 3)
	defer tick.Stop()
	for {
		wait := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
			return
		case <-tick.C:
		}
		wait.Stop()
		began := time.Now()
		ask, cancel := context.WithDeadline(ctx, until)
		lost, err := r.Renew(ask, []string{key})
		cancel()
		switch {
		case err == nil && len(lost) > 0:
			return
		case err == nil:
			until = began.Add(each)
		}
	}
}

// once mirrors the tree of a one-shot run at its end, and commits and pushes what is on record then. It returns the
// commit, "" if there was none.
func (m *mirroring) once(ctx context.Context, r loop.Result) (commit string) {
	wrote, _ := m.out(ctx, r.Tree)
	if !wrote || m.wiring.repo == nil {
		return ""
	}
	commit, err := m.record(ctx, r)
	m.tellMirror(err)
	return commit
}

// record commits what is on record of GitHub. Where somebody else pushes meanwhile, it is tried again a few times; what
// stays unpushed then, the next run pushes, or finds again on GitHub.
func (m *mirroring) record(ctx context.Context, r loop.Result) (commit string, err error) {
	const tries = 5
	for range tries {
		made, err := m.wiring.repo.commit(ctx, r.Tree, loop.Scope{Whole: !r.Held})
		if err != nil || m.share == nil {
			return made.Hash, err
		}
		commit = cmp.Or(made.Hash, commit)
		_, again, err := m.share.Push(ctx, nil)
		if err != nil || !again {
			return commit, err
		}
		if _, err := m.share.Fetch(ctx, true); err != nil {
			return commit, err
		}
		if _, err := m.share.Adopt(ctx, r.Tree); err != nil {
			return commit, err
		}
	}
	return commit, nil
}

// follow mirrors the trees that tell is given, beside a watcher: the newest one, a quiet time after it came. wrote has a
// token when records were written. stop ends it.
func (m *mirroring) follow(ctx context.Context) (tell func(*state.Tree), wrote <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	trees, written, over := make(chan *state.Tree, 1), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		m.mirrorTrees(ctx, trees, written)
	}()
	return newest(trees), written, func() { cancel(); <-over }
}

func (m *mirroring) mirrorTrees(ctx context.Context, trees <-chan *state.Tree, wrote chan<- struct{}) {
	var t *state.Tree
	var due <-chan time.Time
	m.comments = new(engine.Watch)
	poll := time.NewTicker(m.settings.GitHub.Poll.Std())
	defer poll.Stop()
	news := m.in(ctx)
	for {
		if news {
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
		news = false
		select {
		case <-ctx.Done():
			return
		case t = <-trees:
			if due == nil {
				due = time.After(t.Settings().Watch.CommitDelay.Std())
			}
			continue
		case <-poll.C:
			news = m.in(ctx)
			continue
		case <-due:
		}
		var again time.Time
		due = nil
		news, again = m.out(ctx, t)
		if !again.IsZero() {
			due = time.After(again.Sub(m.now()))
		}
	}
}
