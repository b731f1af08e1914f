package workspaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
)

// NotReady says why a task cannot be performed yet: the workspace of a command would lack its base, or a file that
// the user has changed is in the way of a commit. "" means that it can. It changes nothing.
func (m *Manager) NotReady(ctx context.Context, task settle.Task) (string, error) {
	var c *settle.Command
	switch t := task.(type) {
	case *settle.Command:
		c = t
	case *settle.AgentTurn:
		c = &t.Command
	case *settle.HTTPTurn:
		c = &t.Command
	case *settle.Land:
		return m.inTheWay(ctx, t)
	}
	if c == nil || c.Review != nil { // a review has its commit
		return "", nil
	}
	return m.uncommitted(ctx, c.Workspace)
}

// inTheWay says which files of the user are in the way of a commit, or that the repository does not have it, as after it was cloned anew.
func (m *Manager) inTheWay(ctx context.Context, l *settle.Land) (string, error) {
	repo, err := m.repository()
	if errors.Is(err, gitrepo.ErrNotARepo) {
		return "the tree is in no git repository any more", nil
	}
	if err != nil {
		return "", err
	}
	for _, commit := range []string{l.Commit, l.Top()} {
		if has, err := repo.HasCommit(ctx, commit); err != nil || !has {
			return fmt.Sprintf("its commit %.10s is not in this repository; fetch a branch that has it, or retry the node to have the work done again", commit), err
		}
	}
	head, err := repo.Head(ctx)
	if err != nil || l.Target != "" && head.Ref != "refs/heads/"+l.Target {
		return "", err
	}
	files := l.Files
	if !l.Whole {
		if files, err = repo.ChangedFiles(ctx, l.Base, l.Top()); err != nil {
			return "", err
		}
	}
	dirty, err := repo.DirtyAt(ctx, files)
	if err != nil {
		return "", err
	}
	dirty = slices.DeleteFunc(dirty, func(name string) bool { return sameAs(ctx, repo, l.Top(), name) })
	if len(dirty) == 0 {
		return "", nil
	}
	return dirtyText(dirty), nil
}

func dirtyText(names []string) string {
	return fmt.Sprintf("changed here, and in the commit that is to land: %s; commit, stash or move your changes away", some(names))
}

// sameAs reports whether a file of the work tree has the content that the commit has.
func sameAs(ctx context.Context, repo *gitrepo.Repo, commit, name string) bool {
	here, err := regular.ReadPath(filepath.Join(repo.Worktree(), filepath.FromSlash(name)))
	if err != nil {
		return false
	}
	return isAt(ctx, repo, commit, name, here)
}

// outcome is how a landing ended.
type outcome struct {
	reason  string // one of the schemas.Landed constants
	commit  string // on the branch
	base    string // the commit that the branch was at
	tests   string // the commit of tests that conflicts with it
	message string
	output  string // what the agent needs to know
	waits   string // it is to be tried again later, because of this
}

// checker runs the checks of a landing on a commit that is made onto another one. It returns the failure, or "".
type checker func(ctx context.Context, commit, onto string) (message, output string, err error)

// landTries bounds how often a landing starts over because the branch moved.
const landTries = 10

// land makes a commit part of its branch: once, whatever happened before.
func (m *Manager) land(ctx context.Context, l *settle.Land, check checker) (o outcome, err error) {
	repo, err := m.repository()
	if err != nil {
		return o, err
	}
	for range landTries {
		o, err = m.tryToLand(ctx, repo, l, check)
		if !errors.Is(err, gitrepo.ErrMoved) {
			return o, err
		}
	}
	return outcome{waits: "the branch moves faster than the commit can be checked; it is tried again"}, nil
}

func (m *Manager) tryToLand(ctx context.Context, repo *gitrepo.Repo, l *settle.Land, check checker) (outcome, error) {
	tip, err := repo.Base(ctx, l.Target)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{base: tip.Hash}
	if o.commit, err = landedAs(ctx, repo, l, tip.Hash); err != nil || o.commit != "" {
		o.reason = checkedReason(l)
		return o, err
	}
	if o.message, err = m.refuses(ctx, repo, l); err != nil || o.message != "" {
		o.reason = schemas.LandedRefused
		return o, err
	}
	picked, err := m.pick(ctx, repo, l.Commit, l.Base, tip.Hash)
	if l.Tests != nil && err == nil && len(picked.Conflicts) == 0 {
		picked, err = m.pick(ctx, repo, l.Tests.Commit, l.Tests.Base, picked.Commit)
		if err == nil && len(picked.Conflicts) > 0 {
			o.reason, o.tests = schemas.LandedTestsConflict, l.Tests.Commit
			o.message = fmt.Sprintf("the tests of agent/%s conflict with what is on %s now: %s; they need another file", l.Tests.Agent, shortRef(tip), some(pathsOf(picked.Conflicts)))
			return o, nil
		}
	}
	switch {
	case err != nil:
		return o, err
	case len(picked.Conflicts) > 0:
		o.reason = schemas.LandedConflict
		o.message, o.output, err = describeConflict(ctx, repo, l, tip, picked.Conflicts)
		return o, err
	case picked.Commit == tip.Hash: // the branch has the same change already
		o.reason, o.commit = checkedReason(l), tip.Hash
		return o, nil
	}
	if o.message, o.output, err = check(ctx, picked.Commit, tip.Hash); err != nil || o.message != "" {
		o.reason = schemas.LandedFailed
		return o, err
	}
	warning, err := repo.Advance(ctx, tip, picked.Commit, m.o.Now())
	var conflict *gitrepo.Conflict
	switch {
	case errors.As(err, &conflict):
		return outcome{waits: dirtyText(conflict.Paths)}, nil
	case errors.Is(err, gitrepo.ErrBusy):
		return outcome{waits: err.Error()}, nil
	case err != nil:
		return o, err
	}
	if warning != "" {
		m.o.Warn(warning)
	}
	o.reason, o.commit = checkedReason(l), picked.Commit
	return o, nil
}

// pick applies the difference of a commit from its base to another commit.
func (m *Manager) pick(ctx context.Context, repo *gitrepo.Repo, commit, base, onto string) (gitrepo.Picked, error) {
	return repo.PickOnto(ctx, gitrepo.Pick{Commit: commit, Base: base, Onto: onto, When: m.o.Now(), Author: authorOf(ctx, repo, commit), Sign: m.o.Settings.Git.Sign})
}

func checkedReason(l *settle.Land) string {
	if len(l.Checks)+len(l.Verify) == 0 {
		return schemas.LandedUnchecked
	}
	return schemas.LandedChecked
}

// runTrailer begins the line of a commit that names the run whose changes it has. It survives a rebase.
const runTrailer = "Reconcile-Run: "

// landedAs returns the commit of the branch that has the changes of the run already, and the tests that land with it; "" without one.
func landedAs(ctx context.Context, repo *gitrepo.Repo, l *settle.Land, tip string) (string, error) {
	const most = 10000
	log, err := repo.Between(ctx, l.Base, tip, most)
	if err != nil {
		return "", err
	}
	for _, c := range log {
		of := strings.TrimSpace(c.Body)
		if strings.HasSuffix(of, "\n"+runTrailer+l.Run) || l.Tests != nil && strings.HasSuffix(of, "\n"+runTrailer+l.Tests.Run) {
			return c.Hash, nil
		}
	}
	return "", nil
}

// refuses says why a commit must not land: it has what looks like a secret, or changes what only reconcile writes or what its task is not about.
func (m *Manager) refuses(ctx context.Context, repo *gitrepo.Repo, l *settle.Land) (string, error) {
	files, err := repo.ChangedFiles(ctx, l.Base, l.Top())
	if err != nil {
		return "", err
	}
	own := repo.Prefix() + m.o.Settings.Folders.State + "/"
	for _, name := range files {
		if isOdd(name) {
			return fmt.Sprintf("%q: reconcile checks out no file of this name; make this change yourself", name), nil
		}
		if strings.HasPrefix(name, own) || strings.HasPrefix(name, repo.Prefix()+".reconcile/") {
			return fmt.Sprintf("%s: only reconcile writes below %s; take the change out", name, own), nil
		}
		if !isWithin(l, name) && !isWithin(l, strings.TrimPrefix(name, repo.Prefix())) {
			return fmt.Sprintf("%s: the task is to change only %s, and tests; take the change out", name, some(l.Within)), nil
		}
		data, err := repo.Blob(ctx, l.Top(), name)
		if what := m.ofPeople(ctx, repo, l, name, data); what != "" {
			return fmt.Sprintf("%s: only a person may %s; take the change out", name, what), nil
		}
		if err != nil {
			continue // deleted, or a submodule
		}
		if what := m.secretIn(ctx, repo, l.Base, l.Target, name, data); what != "" {
			return what, nil
		}
	}
	return "", nil
}

// isOdd reports whether some systems read the name of a file in another way, so that reconcile checks it out nowhere.
func isOdd(name string) bool {
	owner := treepath.Of(name)
	return owner == treepath.Outside || owner == treepath.Git
}

// isWithin reports whether a landing may change a file of the tree.
func isWithin(l *settle.Land, file string) bool {
	return len(l.Within) == 0 || tools.IsTestFile(file) || slices.ContainsFunc(l.Within, func(glob string) bool { return doublestar.MatchUnvalidated(glob, file) })
}

// ofPeople says what only people may do of a change of a file, if it is a spec; data is its new content.
func (m *Manager) ofPeople(ctx context.Context, repo *gitrepo.Repo, l *settle.Land, name string, data []byte) string {
	path, ok := strings.CutPrefix(name, repo.Prefix())
	if ext := filepath.Ext(path); !slices.Contains([]string{".yaml", ".yml", ".json", ".toml"}, ext) || !ok || !strings.HasPrefix(path, m.o.Settings.Folders.Specs+"/") && strings.TrimSuffix(path, filepath.Ext(path)) != "reconcile" {
		return ""
	}
	before, _ := repo.Blob(ctx, l.Base, name) // empty for a new file
	guarded := schemas.Kinds{schemas.SettingsKind, schemas.AgentKind, schemas.ActionKind, schemas.DAGKind, schemas.SessionKind, schemas.WorkflowKind, schemas.PreferenceKind,
		schemas.PlanChangeKind, schemas.ClarificationRequestKind, schemas.ReplyKind}
	decoder := schemas.DecoderFor(guarded, m.o.Settings)
	was, is := decoder.Decode(path, before), decoder.Decode(path, data)
	_, known := guarded.Find(was.Ref.Kind)
	if len(before) > 0 && was.Object == nil && (known || was.Ref.Kind == "") { // it may have had what only people may change
		return "replace what is no valid spec"
	}
	bounds := cmp.Or(l.Bounds, new(schemas.Bounds))
	if was.Ref != is.Ref { // one is removed, and the other is new
		return cmp.Or(bounds.OnlyPeople(was.Ref, was.Object, nil), bounds.OnlyPeople(is.Ref, nil, is.Object), bounds.ActsAs(was.Ref, was.Object, nil),
			bounds.ActsAs(is.Ref, nil, is.Object))
	}
	return cmp.Or(bounds.OnlyPeople(is.Ref, was.Object, is.Object), bounds.ActsAs(is.Ref, was.Object, is.Object))
}

func authorOf(ctx context.Context, repo *gitrepo.Repo, commit string) string {
	author, err := repo.Author(ctx, commit)
	if err != nil {
		return "" // of the configuration
	}
	return author
}

// conflictLimit bounds the text of a conflict that the agent gets, in bytes.
const conflictLimit = 3500

// describeConflict names both sides of a conflict, and shows the lines.
func describeConflict(ctx context.Context, repo *gitrepo.Repo, l *settle.Land, tip gitrepo.Head, files []gitrepo.Conflicted) (message, output string, err error) {
	names := pathsOf(files)
	others, err := repo.Between(ctx, l.Base, tip.Hash, 5, names...)
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Your commit %.10s cannot be put on %s (%.10s): both change %s.\nOn %s since you began:\n", l.Commit, shortRef(tip), tip.Hash,
		some(names), shortRef(tip))
	for _, c := range others {
		fmt.Fprintf(&b, "  %.10s %s\n", c.Hash, shorten.Text(c.Subject, 100))
	}
	fmt.Fprintf(&b, "Do the task again on what is there now. Your former change: git show %.10s\n", l.Commit)
	for _, f := range files {
		if b.Len() >= conflictLimit {
			break
		}
		fmt.Fprintf(&b, "\n%s:\n%s", f.Path, hunks(f.Text, conflictLimit-b.Len()))
	}
	what := "other commits"
	if len(others) > 0 {
		what = fmt.Sprintf("%.10s (%s)", others[0].Hash, shorten.Text(others[0].Subject, 60))
	}
	return fmt.Sprintf("its commit %.10s conflicts with %s on %s in %s", l.Commit, what, shortRef(tip), some(names)), b.String(), nil
}

func pathsOf(files []gitrepo.Conflicted) (names []string) {
	for _, f := range files {
		names = append(names, f.Path)
	}
	return names
}

// hunks are the parts of a text between conflict markers, at most limit bytes.
func hunks(text string, limit int) string {
	if text == "" {
		return "(one side deleted it, or it is no text)\n"
	}
	var b strings.Builder
	in := false
	for line := range strings.Lines(text) {
		in = in || strings.HasPrefix(line, "<<<<<<< ")
		if in {
			b.WriteString(line)
		}
		in = in && !strings.HasPrefix(line, ">>>>>>> ")
		if b.Len() > limit {
			return strings.ToValidUTF8(b.String()[:max(0, limit)], "") + "\n…\n"
		}
	}
	return b.String()
}
