package mirroring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/commits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/share"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/worktree"
)

// keyVariable is the environment variable whose value signs markers instead of the key in the tree.
const keyVariable = "RECONCILE_MIRROR_KEY"

// mirrorKeyLength is the minimum length of a key from the environment.
const mirrorKeyLength = 16

// RunnerOptions configure a Runner.
type RunnerOptions struct {
	Tree     tree.Config
	Store    *state.Store
	Settings *schemas.SettingsSpec
	Commits  *commits.Committer // nil: nothing is committed
	Share    *share.Share       // nil: nothing is pushed
	Watching bool
	// Show renders the answer to a command in a comment as Markdown.
	Show func(*state.Tree, slash.View) string
	Warn func(text string)
	Note func(text string)
}

// Runner mirrors the tree of a run to the issues of a repository on GitHub.
type Runner struct {
	o      RunnerOptions
	client *github.Client
	repo   string // owner/name
	files  string // the address of the tree's files
	// comments is a watcher's state for reading comments; nil in a run that reads once.
	comments *Watch
	warned   string // last text of warnOnce
}

// OpenRunner opens the Runner that mirrors to the repository in the GitHub settings, or returns nil if mirroring is
// disabled or the token is missing. A late mirror is updated by a later run, and blocks no work.
func OpenRunner(o RunnerOptions) *Runner {
	set := &o.Settings.GitHub
	if !set.Mirror {
		return nil
	}
	policy := egress.Policy{Getenv: o.Tree.Getenv}
	if policy.GitHubToken() == "" {
		o.Warn(fmt.Sprintf("%s says github.mirror: true, and neither %s nor %s is set: nothing is mirrored to %s. Set one to a "+
			"token that may write on issues, or set github.mirror to false", schemas.SettingsPath, egress.TokenVariable, egress.OtherToken, set.Repo))
		return nil
	}
	client, err := policy.GitHub(o.Tree.Dir, set, set.Repo, nil)
	if err != nil {
		o.Warn(fmt.Sprintf("nothing is mirrored to GitHub: %v", err))
		return nil
	}
	return &Runner{o: o, client: client, repo: set.Repo, files: FilesOnline(o.Tree, set)}
}

// FilesOnline returns the web address of the tree's files on GitHub: the server's URL, the repository, and blob/HEAD
// for the default branch.
func FilesOnline(c tree.Config, set *schemas.GitHubSettings) string {
	server := cmp.Or(c.Getenv("GITHUB_SERVER_URL"), "https://github.com")
	if set.BaseURL != "" {
		u, err := url.Parse(set.BaseURL)
		if err != nil {
			return ""
		}
		server = u.Scheme + "://" + strings.TrimPrefix(u.Host, "api.") // the web host of api.github.com
	}
	address := server + "/" + set.Repo + "/blob/HEAD"
	if below := worktree.Below(c.Dir); below != "" {
		address += "/" + (&url.URL{Path: below}).EscapedPath()
	}
	return address
}

// Out updates GitHub from a tree, and reports whether records were written. again is the time of the next try for
// failed work; zero: with the next change. Errors are warnings and do not fail the run.
func (m *Runner) Out(ctx context.Context, t *state.Tree) (wrote bool, again time.Time) {
	if set := t.Settings().GitHub; !set.Mirror || set.Repo != m.repo { // a watcher must be restarted to mirror to another repository
		return false, time.Time{}
	}
	held, release, err := m.exclusive(ctx)
	if err != nil || release == nil {
		m.warnOnce(err)
		return false, m.o.Tree.Now().Add(time.Minute)
	}
	defer release()
	records := NewRecords(m.o.Store, m.repo, false, m.o.Warn)
	var rep Report
	if err = m.o.Store.SweepMirror(held); err == nil {
		rep, err = m.sync(held, t, records)
	}
	if err == nil && rep.Later == nil {
		err = m.processComments(held, records, (*Inbox).Answer)
	}
	if err = unheldClaim(ctx, held, err); errors.Is(err, errUnheld) {
		again = m.o.Tree.Now().Add(time.Minute)
	}
	for _, n := range rep.Notes {
		m.o.Warn("GitHub: " + n)
	}
	if rep.calls() > 0 {
		m.o.Note(fmt.Sprintf("GitHub: %s on %s", runSummary(rep), m.repo))
	}
	if rep.Later != nil {
		err = errors.Join(err, fmt.Errorf("%s left for the next time: %w", schemas.Count(rep.Left, "issue"), rep.Later))
		again = m.o.Tree.Now().Add(time.Minute)
		if limited := (*github.Limited)(nil); errors.As(rep.Later, &limited) && limited.Until.After(again) {
			again = limited.Until
		}
	}
	m.warnOnce(err)
	return records.Changed(), again
}

func (m *Runner) sync(ctx context.Context, t *state.Tree, records *GitHubRecords) (Report, error) {
	keys, err := KeysOf(ctx, m.o.Tree.Getenv, records)
	if err != nil {
		return Report{}, err
	}
	issues, err := ProjectTree(ctx, t, records, m.files)
	if err != nil {
		return Report{}, err
	}
	e := &Mirror{Remote: m.client, Records: records, Keys: keys, Now: m.o.Tree.Now}
	return e.Out(ctx, issues)
}

// warnOnce warns of an error once while it lasts. A watcher mirrors concurrently with its loop, so the mirror has its
// own last warning.
func (m *Runner) warnOnce(err error) {
	if err == nil || errors.Is(err, context.Canceled) || err.Error() == m.warned {
		return
	}
	m.warned = err.Error()
	m.o.Warn("mirror to GitHub: " + m.warned)
}

// runSummary describes the changes of a mirror run.
func runSummary(r Report) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{r.Issues, "issue"}, {r.Comments, "comment"}, {r.Edits, "edit"}, {r.Labels, "label"}} {
		if p.n > 0 {
			parts = append(parts, schemas.Count(p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Once mirrors out the tree of a one-shot run at its end, and then commits and pushes the records. It returns the
// commit, or "".
func (m *Runner) Once(ctx context.Context, r loop.Result) (commit string) {
	wrote, _ := m.Out(ctx, r.Tree)
	if !wrote || m.o.Commits == nil {
		return ""
	}
	commit, err := m.commitRecords(ctx, r)
	m.warnOnce(err)
	return commit
}

// commitRecords commits the records of GitHub. If other reconcilers push meanwhile, it retries a few times. The next
// run pushes records that stay unpushed, or finds their content on GitHub.
func (m *Runner) commitRecords(ctx context.Context, r loop.Result) (commit string, err error) {
	const tries = 5
	for range tries {
		made, err := m.o.Commits.Commit(ctx, r.Tree, loop.Scope{MemorySettled: !r.MemoryBusy})
		if err != nil || m.o.Share == nil {
			return made.Hash, err
		}
		commit = cmp.Or(made.Hash, commit)
		_, again, err := m.o.Share.Push(ctx, nil)
		if err != nil || !again {
			return commit, err
		}
		if _, err := m.o.Share.Fetch(ctx, true); err != nil {
			return commit, err
		}
		if _, err := m.o.Share.Adopt(ctx, r.Tree); err != nil {
			return commit, err
		}
	}
	return commit, nil
}

// Follow mirrors the trees that are passed to update, concurrently with a watcher: the latest one, after a quiet
// period. wrote has a token when records were written. stop ends it.
func (m *Runner) Follow(ctx context.Context) (update func(*state.Tree), wrote <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	trees, written, over := make(chan *state.Tree, 1), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		m.mirrorTrees(ctx, trees, written)
	}()
	return loop.Latest(trees), written, func() { cancel(); <-over }
}

func (m *Runner) mirrorTrees(ctx context.Context, trees <-chan *state.Tree, wrote chan<- struct{}) {
	var t *state.Tree
	var due <-chan time.Time
	m.comments = new(Watch)
	poll := time.NewTicker(m.o.Settings.GitHub.Poll.Std())
	defer poll.Stop()
	news := m.In(ctx)
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
			news = m.In(ctx)
			continue
		case <-due:
		}
		var again time.Time
		due = nil
		news, again = m.Out(ctx, t)
		if !again.IsZero() {
			due = time.After(again.Sub(m.o.Tree.Now()))
		}
	}
}

// warnMemory reports a problem of the memory. It stops no work.
func (m *Runner) warnMemory(text string) {
	m.o.Warn("warning: " + text)
	if m.o.Tree.Log != nil {
		m.o.Tree.Log.Warn("memory", "message", text)
	}
}
