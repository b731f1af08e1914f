package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// ErrMoved reports that a branch is no longer at the commit that it was to be moved from.
var ErrMoved = errMoved

// Pick describes a commit to apply on another one.
type Pick struct {
	Commit string
	Base   string // whose difference to Commit is applied
	Onto   string
	When   time.Time
	Author string // "Name <mail>"
	Sign   string // as in Commit
}

// Picked is the result of a Pick: either a commit, or conflicts.
type Picked struct {
	Commit    string       // Onto itself if it has the difference already
	Conflicts []Conflicted // by path
}

// Conflicted is a file that both sides changed.
type Conflicted struct {
	Path string
	Text string // its content with conflict markers; "" if it is not a text
}

// PickOnto applies the difference between two commits to a third, and commits the result with the message of the commit.
// No reference, file or index changes.
func (r *Repo) PickOnto(ctx context.Context, p Pick) (got Picked, err error) {
	err = r.either(func(n *native, s *objectStore) error {
		got, err = n.pick(ctx, s, p)
		return err
	}, func(k *command) error {
		got, err = k.pick(ctx, p)
		return err
	})
	return got, err
}

func (k *command) pick(ctx context.Context, p Pick) (Picked, error) {
	// A commit with the files of Onto and the parent Base makes Base the common ancestor, whatever the histories are.
	ours, err := k.commitTree(ctx, p.Onto+"^{tree}", p.Base, Commit{Message: "ours", Author: p.Author, When: p.When, Sign: "never"})
	if err != nil {
		return Picked{}, err
	}
	theirs, err := k.commitTree(ctx, p.Commit+"^{tree}", p.Base, Commit{Message: "theirs", Author: p.Author, When: p.When, Sign: "never"})
	if err != nil {
		return Picked{}, err
	}
	tree, conflicts, err := k.mergeTree(ctx, ours, theirs)
	if err != nil || len(conflicts) > 0 {
		return Picked{Conflicts: conflicts}, err
	}
	same, err := k.isTree(ctx, p.Onto, tree)
	if err != nil || same {
		return Picked{Commit: p.Onto}, err
	}
	message, err := k.run(ctx, call{}, "log", "-1", "--format=%B", p.Commit)
	if err != nil {
		return Picked{}, err
	}
	commit, err := k.commitTree(ctx, tree, p.Onto, Commit{Message: string(message), Author: p.Author, When: p.When, Sign: p.Sign})
	return Picked{Commit: commit}, err
}

// mergeTree merges two commits without a work tree.
func (k *command) mergeTree(ctx context.Context, ours, theirs string) (tree string, conflicts []Conflicted, err error) {
	out, err := k.run(ctx, call{}, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
	var exit *exec.ExitError
	if err == nil {
		return strings.TrimSpace(strings.TrimRight(string(out), "\x00")), nil, nil
	}
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) == 0 {
		return "", nil, err
	}
	parts := nulSplit(out)
	tree = strings.TrimSpace(parts[0])
	for _, p := range slices.Compact(slices.Sorted(slices.Values(parts[1:]))) {
		if p == "" {
			continue
		}
		c := Conflicted{Path: p}
		text, err := k.run(ctx, call{}, "cat-file", "blob", tree+":"+p)
		if err == nil && !strings.Contains(string(text), "\x00") {
			c.Text = strings.NewReplacer("<<<<<<< "+ours, "<<<<<<< the branch", ">>>>>>> "+theirs, ">>>>>>> this task").Replace(string(text))
		}
		conflicts = append(conflicts, c)
	}
	if len(conflicts) == 0 {
		return "", nil, fmt.Errorf("git merge-tree reports conflicts, and names none")
	}
	return tree, conflicts, nil
}

// Advance moves a branch from a commit to one that is based on it. If it is checked out here, its files and the index
// follow, and a file that the user has changed is a *[Conflict]: then nothing changed. The error is [ErrMoved] if the
// branch is elsewhere by now, or another one is checked out. If the process is killed, the next call of Advance, Commit or
// Settle reverts an unfinished move.
func (r *Repo) Advance(ctx context.Context, from Head, to string, now time.Time) (warning string, err error) {
	if r.why != nil {
		return "", fmt.Errorf("%s: %w: a branch of this repository cannot be moved: %w", r.worktree, errUnsupported, r.why)
	}
	n := r.native.(*native)
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return "", err
	}
	w, err := openScratchDir(ctx, n.layout, n.lockTimeout)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return r.advance(ctx, n, cfg, w, from, to, now)
}

func (r *Repo) advance(ctx context.Context, n *native, cfg *gitConfig, w *scratchDir, from Head, to string, now time.Time) (string, error) {
	m := &Remote{repo: r, name: "a workspace", now: func() time.Time { return now }}
	a := &adoption{checkout: newCheckout(ctx, n, cfg, w), m: m, tip: to, old: from.Hash}
	defer a.checkout.store.close()
	if err := n.catchUp(ctx, w, a.checkout.store); err != nil {
		return "", err
	}
	var err error
	if a.target, err = resolveTarget(n.layout, from.Branch()); err != nil {
		return "", err
	}
	if a.target.Ref != from.Ref || a.target.Hash != from.Hash && (a.target.out || a.target.Hash != "") {
		return "", errMoved
	}
	if !a.target.out {
		_, committer, err := identities(ctx, cfg, "", now)
		if err != nil {
			return "", err
		}
		line := refMove{commit: to, line: committer.String() + "\treconcile: land", log: cfg.flag(ctx, "core.logallrefupdates", true)}
		return "", moveRef(ctx, n.layout, w, a.target, line)
	}
	if err := idleIndex(n.layout); err != nil {
		return "", err
	}
	tree, err := a.checkout.store.treeOf(from.Hash)
	if err != nil {
		return "", err
	}
	a.rebased = rebased{commit: to, keep: map[string]blob{}}
	if a.rebased.tree, err = a.checkout.store.treeOf(to); err != nil {
		return "", err
	}
	got, err := a.perform(ctx, tree)
	return got.Warning, err
}
