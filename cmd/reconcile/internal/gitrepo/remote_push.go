package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
)

// refUpdate is one reference of the remote to change.
type refUpdate struct {
	ref   string
	value string // "" removes it
	// lease makes the server compare with old first ("": the reference must not exist). The branch has no lease: git
	// only fast-forwards it.
	lease bool
	old   string
	// atomic makes the server change all references of the push, or none.
	atomic bool
}

// refAnswer is the result of one refUpdate.
type refAnswer struct {
	done    bool
	refused bool // another push came first
	unclear bool // refused with words that may also mean a server error
	failed  bool // a server error that may be temporary: a full disk, for example
	why     string
}

// err returns the error of an update that was neither done nor refused; advice is the next step if a rule forbids
// it.
func (a refAnswer) err(what, advice string) error {
	switch {
	case a.refused:
		return fmt.Errorf("%s: %w: %s; look for a .lock file that a crash left there, or for a reference whose name is in the way",
			what, ErrUnwritable, a.why)
	case a.failed:
		return fmt.Errorf("%s: %w: %s", what, ErrUnreachable, a.why)
	}
	return fmt.Errorf("%s: %w: %s; %s", what, ErrProtected, a.why, advice)
}

// errUnknownEnd reports that the connection broke, so that the updates may have happened or not.
var errUnknownEnd = errors.New("the answer got lost")

// send is git push. Without an error there is an answer for each update.
func (m *Remote) send(ctx context.Context, updates []refUpdate, hooks bool) (map[string]refAnswer, error) {
	args := []string{"push", "--porcelain", "--no-recurse-submodules", "--no-follow-tags"}
	var specs []string
	for _, u := range updates {
		if u.lease {
			args = append(args, "--force-with-lease="+u.ref+":"+u.old)
		}
		if u.atomic {
			args = append(args, "--atomic")
		}
		specs = append(specs, u.value+":"+u.ref)
	}
	said, err := m.talk(ctx, hooks, nil, append(append(args, "--", m.name), specs...)...)
	answers := parseAnswers(said.stdout)
	for _, u := range updates {
		a, told := answers[u.ref]
		if !told || strings.Contains(a.why, "failed to report status") {
			return nil, m.unanswered(ctx, said, err, hooks)
		}
		if a.refused && strings.Contains(said.stderr, " is at "+u.value+" but expected ") {
			answers[u.ref] = refAnswer{done: true} // the answer was lost, and git's transport sent it again
		} else if words := pushRemarks(said.stderr); words != "" && !a.done {
			a.why += ": " + words
			a.unclear = a.refused && isUnclear(a.why)
			answers[u.ref] = a
		}
	}
	return answers, nil
}

// unanswered returns the error of a push without a result for a reference.
func (m *Remote) unanswered(ctx context.Context, said answer, err error, hooks bool) error {
	switch {
	case err == nil:
		err = errUnknownEnd
	case hooks && strings.Contains(said.stderr, "failed to push some refs") && said.stdout == "":
		return fmt.Errorf("%s: %w: the pre-push hook of this repository failed: %s", m, ErrProtected, message.Clip(firstLine(said.stderr), 300))
	}
	return m.unreachable(ctx, said, err)
}

// parseAnswers reads git push --porcelain: "<flag>\t<from>:<to>\t<summary>".
func parseAnswers(stdout string) map[string]refAnswer {
	answers := map[string]refAnswer{}
	for line := range strings.Lines(stdout) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(parts) != 3 || len(parts[0]) != 1 {
			continue
		}
		_, to, _ := strings.Cut(parts[1], ":")
		if parts[0] != "!" {
			answers[to] = refAnswer{done: true}
			continue
		}
		answers[to] = refAnswer{refused: isRace(parts[2]), failed: isFailure(parts[2]), why: withoutPasswords(parts[2])}
		if a := answers[to]; a.refused && isUnclear(a.why) {
			a.unclear = true
			answers[to] = a
		}
	}
	return answers
}

// isRace reports whether the words of git, or of a server, mean that the reference moved, and not that it must not
// be changed.
func isRace(summary string) bool {
	for _, sign := range []string{"(fetch first)", "(non-fast-forward)", "(stale info)", "(already exists)", "(needs force)",
		"(failed to update ref)", "(failed to lock)", "cannot lock ref", "incorrect old value", "reference already exists",
		"(atomic push failed)", "(atomic push failure)", "(atomic transaction failed)", "but expected", "(failed to delete)"} {
		if strings.Contains(summary, sign) {
			return true
		}
	}
	return false
}

// isUnclear reports whether the words may mean a server error as well as a lost race.
func isUnclear(why string) bool {
	for _, sign := range []string{"(fetch first)", "(non-fast-forward)", "(stale info)", "(already exists)", "(needs force)",
		"incorrect old value", "but expected", "reference already exists"} {
		if strings.Contains(why, sign) {
			return false
		}
	}
	return true
}

// Unclear refusals are retried, in case the reference was only locked for a moment.
const (
	refusals   = 3
	firstPause = 100 * time.Millisecond
)

// isFailure reports whether the words mean that the server could not store the objects.
func isFailure(summary string) bool {
	summary = strings.ToLower(summary)
	for _, sign := range []string{"unpacker error", "unable to migrate objects", "internal server error", "internal error",
		"temporarily unavailable"} {
		if strings.Contains(summary, sign) {
			return true
		}
	}
	return false
}

// pushRemarks returns what the server's hooks, or its git, first said about a push.
func pushRemarks(stderr string) string {
	var said []string
	for line := range strings.Lines(stderr) {
		text, ok := strings.CutPrefix(line, "remote: ")
		if text = strings.TrimSpace(text); ok && text != "" && len(said) < 3 {
			said = append(said, text)
		}
	}
	return message.Clip(withoutPasswords(strings.Join(said, "; ")), 300)
}

// Push fast-forwards the remote's branch to the commit. The error is ErrRefused if another push came first,
// ErrProtected if the server's rules forbid it, ErrUnreachable if the outcome is unknown. After a lost answer it
// fetches: if the commit is on the branch, the push succeeded.
//
// Each refusal is counted: see [Remote.Turn].
func (m *Remote) Push(ctx context.Context, commit string) error {
	for try := 0; ; try++ {
		a, err := m.pushOnce(ctx, commit)
		if !a.unclear {
			return err
		}
		if moved, err := m.overtaken(ctx, commit); err != nil || moved {
			return cmp.Or(err, fmt.Errorf("%s: %w", m, ErrRefused))
		}
		if try == refusals {
			return a.err(m.String(), "")
		}
		if err := m.afterRefusal(ctx, try); err != nil {
			return err
		}
	}
}

// overtaken reports whether the remote's branch has commits that commit lacks.
func (m *Remote) overtaken(ctx context.Context, commit string) (bool, error) {
	tip, err := m.Fetch(ctx)
	if err != nil || tip.Head == "" {
		return false, err
	}
	has, err := m.has(ctx, commit, tip.Head)
	return !has, err
}

// pushOnce is Push without a retry; its answer tells whether one may help.
func (m *Remote) pushOnce(ctx context.Context, commit string) (refAnswer, error) {
	updates := []refUpdate{{ref: m.ref, value: commit}}
	m.mu.Lock()
	hooks, waits := m.people, m.waiting.live
	m.mu.Unlock()
	var ticket refUpdate
	if waits {
		var err error
		if ticket, err = m.ticketFor(ctx, commit); err != nil {
			return refAnswer{}, err
		}
		updates = append(updates, ticket)
	}
	answers, err := m.send(ctx, updates, hooks)
	if errors.Is(err, ErrUnreachable) {
		if landed := m.landed(ctx, commit); !landed {
			return refAnswer{}, err
		}
		answers = map[string]refAnswer{m.ref: {done: true}}
	} else if err != nil {
		return refAnswer{}, err
	}
	a := answers[m.ref]
	m.pushed(a, ticket, waits && answers[ticket.ref].done)
	switch {
	case a.done:
		m.removeMerged(ctx, commit)
		return a, nil
	case a.refused:
		return a, fmt.Errorf("%s: %w", m, ErrRefused)
	}
	return a, a.err(m.String(), "let a person push, allow this account to, or see git.via in reconcile.yaml")
}

// landed reports whether a push without an answer succeeded.
func (m *Remote) landed(ctx context.Context, commit string) bool {
	tip, err := m.Fetch(ctx)
	if err != nil {
		return false
	}
	has, err := m.has(ctx, tip.Head, commit)
	return err == nil && has
}

// mergedPending is the part of a pending reference that Adopt merged.
type mergedPending struct {
	commit string
	paths  []string // of records, below the work tree
}

// removeMerged removes the pending references whose records are in the pushed commit. Failures are left for the
// next time.
func (m *Remote) removeMerged(ctx context.Context, commit string) {
	m.mu.Lock()
	var updates []refUpdate
	store := newObjectStore(m.repo.layout)
	for ref, u := range m.merged {
		if store.holds(commit, u.paths) {
			updates = append(updates, refUpdate{ref: ref, lease: true, old: u.commit})
			delete(m.merged, ref)
		}
	}
	store.close()
	updates = append(updates, m.staleTickets()...)
	m.mu.Unlock()
	if len(updates) > 0 {
		m.send(ctx, updates, false)
	}
}

// PushPending pushes a commit that the branch did not take to a pending reference of the remote, named by id, where the
// next Adopt merges its records. id must be new, and consist of letters, digits, dots and dashes.
func (m *Remote) PushPending(ctx context.Context, id, commit string) error {
	ref := pendingRefs + id
	if !validRef(ref) || strings.Contains(id, "/") {
		return fmt.Errorf("%q: not a name for a reference", id)
	}
	answers, err := m.send(ctx, []refUpdate{{ref: ref, value: commit, lease: true}}, false)
	if err != nil {
		return err
	}
	switch a := answers[ref]; {
	case a.done:
		return nil
	case a.refused && !a.unclear:
		return fmt.Errorf("%s: leave %.10s as %s: %w: the name is taken", m, commit, ref, ErrRefused)
	default:
		return a.err(fmt.Sprintf("%s: leave %.10s as %s", m, commit, ref), forShared)
	}
}

// pushed records the result of a push.
func (m *Remote) pushed(branch refAnswer, ticket refUpdate, ticketed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &m.waiting
	now := m.now()
	if !w.began.IsZero() {
		w.pace = (3*w.pace + now.Sub(w.began)) / 4
		w.began = time.Time{}
	}
	switch {
	case ticketed:
		w.hash = ticket.value
	case ticket.ref != "":
		w.live = false
	}
	switch {
	case branch.done:
		w.live = w.live && !ticketed // it does not name the commit, so it is not void yet
		w.won, w.lost, w.number = now, 0, 0
	case branch.refused && !branch.unclear:
		w.rivals = now
		w.lost++
	}
}

// Patch is the difference between local commits and the tip, for callers that create a commit from it without a
// push.
type Patch struct {
	Branch         string   // of the remote, without refs/heads/
	Base           string   // the commit that the branch must be at
	Headline, Body string   // the message of the last of the commits, as its first line and what follows
	Write          []Stored // with paths below the top of the work tree
	Delete         []string // likewise
}

// patchLimit is the most content that a patch may have, in bytes.
const patchLimit = 40 << 20

// Patch combines the changes of the commits between the tip and a commit into one patch, on the branch and the base of
// the tip. All of them must be reconcile's own: other commits would lose their author. The error is ErrRefused if
// commit is not based on the tip.
func (m *Remote) Patch(ctx context.Context, tip Tip, commit string) (Patch, error) {
	p := Patch{Branch: strings.TrimPrefix(m.ref, "refs/heads/"), Base: tip.Head}
	if tip.Head == "" {
		return p, fmt.Errorf("%s: the remote has no such branch yet; push it once with git push", m)
	}
	stands, err := m.has(ctx, commit, tip.Head)
	if err == nil && !stands {
		err = fmt.Errorf("%s: %w", m, ErrRefused)
	}
	if err != nil {
		return p, err
	}
	store := newObjectStore(m.repo.layout)
	defer store.close()
	for at := commit; at != tip.Head; {
		c, err := store.commit(at)
		if err != nil {
			return p, err
		}
		switch {
		case !message.ByReconcile(c.Message):
			return p, fmt.Errorf("%s: commit %.10s (%s) is not reconcile's own, and only a push keeps its author; push it, or "+
				"open a pull request with it", m, at, message.Clip(firstLine(c.Message), 60))
		case len(c.Parents) != 1:
			return p, fmt.Errorf("%s: commit %.10s is a merge, and GitHub makes none; push it", m, at)
		case at == commit:
			p.Headline, p.Body, _ = strings.Cut(strings.TrimSpace(c.Message), "\n")
			p.Body = strings.TrimSpace(p.Body)
		}
		at = c.Parents[0]
	}
	return p, p.fill(store, commit)
}

// fill adds the files that differ between the base and a commit.
func (p *Patch) fill(store *objectStore, commit string) error {
	was, err := store.treeOf(p.Base)
	if err != nil {
		return err
	}
	now, err := store.treeOf(commit)
	if err != nil {
		return err
	}
	edits, _, err := store.difference(was, now)
	size := 0
	for _, e := range edits {
		if e.now.mode == 0 {
			p.Delete = append(p.Delete, e.path)
			continue
		}
		if e.now.mode != modeFile {
			return fmt.Errorf("%s: it is no plain file, and GitHub makes commits of such only; push the commit", e.path)
		}
		data, err := store.read(plumbing.BlobObject, e.now.hash)
		if err != nil {
			return err
		}
		if size += len(data); size > patchLimit {
			return fmt.Errorf("commit %.10s changes more than %d MiB, too much for GitHub to make a commit of; push it", commit, patchLimit>>20)
		}
		p.Write = append(p.Write, Stored{Path: e.path, Data: data})
	}
	return err
}
