package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Revision is a commit that changed one of the paths of a History call.
type Revision struct {
	Hash    string
	When    time.Time // of the commit, in UTC
	Author  string    // the name
	Subject string
	// Input is the commit that reconcile read when it made this one; empty for other commits.
	Input string
	// Was and Now are the contents before and after, in the order of the paths; nil where the file does not exist.
	Was, Now [][]byte
}

// commitText is a parsed commit object. The first parent is the branch that the others were merged into.
type commitText struct {
	Hash, Tree      string
	Parents         []string
	Author, Message string
	When            time.Time
}

// History walks back from a commit along first parents and calls visit for each commit that changed one of the
// paths (below the directory given to Open), newest first, until visit returns false or the history ends. cut is
// set if the clone lacks older commits. Renames are not followed. Only the folders on the way to the paths are
// read, and only where they changed.
func (r *Repo) History(ctx context.Context, from string, paths []string, visit func(Revision) bool) (cut bool, err error) {
	below, err := r.below(paths)
	if err != nil {
		return false, err
	}
	if r.why != nil {
		return r.command.(*command).history(ctx, from, below, visit)
	}
	s := newObjectStore(r.layout)
	defer s.close()
	w := &walk{s: s, paths: below, visit: visit}
	cut, err = w.run(ctx, from)
	var pass *needsGit
	if errors.As(err, &pass) && r.command != nil && w.visited == 0 {
		return r.command.(*command).history(ctx, from, below, visit)
	}
	return cut, err
}

// walk is a walk through a history.
type walk struct {
	s       *objectStore
	paths   []string
	visit   func(Revision) bool
	visited int // number of visited revisions
}

// pathEntry is a path's entry in a tree: the folders on the way, and the file.
type pathEntry struct {
	folders []plumbing.Hash
	file    blob
}

func (w *walk) run(ctx context.Context, from string) (cut bool, err error) {
	at, err := w.s.commit(from)
	if err != nil {
		return false, err
	}
	now, err := w.entries(at, make([]pathEntry, len(w.paths)))
	for ; err == nil; err = ctx.Err() {
		var parent commitText
		was := make([]pathEntry, len(w.paths))
		if len(at.Parents) > 0 {
			if parent, err = w.s.commit(at.Parents[0]); err != nil {
				return true, w.end(err)
			}
			if was, err = w.entries(parent, now); err != nil {
				return false, err
			}
		}
		if more, err := w.visitChanged(at, was, now); err != nil || !more || parent.Hash == "" {
			return false, err
		}
		at, now = parent, was
	}
	return false, err
}

// end returns the error of an unreadable commit, or nil if the clone is shallow.
func (w *walk) end(err error) error {
	r := Repo{layout: w.s.l}
	if r.Shallow() {
		return nil
	}
	return err
}

// entries looks the paths up in the tree of a commit. Folders that are the same as in near, the entries of an
// adjacent commit, are not read again.
func (w *walk) entries(c commitText, near []pathEntry) ([]pathEntry, error) {
	out := make([]pathEntry, len(w.paths))
	for i, p := range w.paths {
		var err error
		if out[i], err = w.entry(plumbing.NewHash(c.Tree), p, near[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (w *walk) entry(root plumbing.Hash, path string, near pathEntry) (pathEntry, error) {
	at := blob{modeTree, root}
	var out pathEntry
	for part := range strings.SplitSeq(path, "/") {
		depth := len(out.folders)
		if at.mode != modeTree {
			return out, nil
		}
		if depth < len(near.folders) && near.folders[depth] == at.hash {
			out.folders, out.file = append(out.folders, near.folders[depth:]...), near.file
			return out, nil
		}
		out.folders = append(out.folders, at.hash)
		data, err := w.s.read(plumbing.TreeObject, at.hash)
		if err != nil {
			return pathEntry{}, err
		}
		entries, err := parseTree(data)
		if err != nil {
			return pathEntry{}, fmt.Errorf("tree %s: %w; look with git fsck", at.hash, err)
		}
		at = childTree(entries, part)
	}
	out.file = at
	return out, nil
}

// visitChanged visits a commit if it changed one of the paths.
func (w *walk) visitChanged(c commitText, was, now []pathEntry) (more bool, err error) {
	rev := c.revision()
	changed := false
	for i := range w.paths {
		if was[i].file == now[i].file {
			rev.Was, rev.Now = append(rev.Was, nil), append(rev.Now, nil)
			continue
		}
		changed = true
		before, err := w.content(was[i].file)
		if err != nil {
			return false, err
		}
		after, err := w.content(now[i].file)
		if err != nil {
			return false, err
		}
		rev.Was, rev.Now = append(rev.Was, before), append(rev.Now, after)
	}
	if !changed {
		return true, nil
	}
	w.visited++
	return w.visit(rev), nil
}

func (w *walk) content(b blob) ([]byte, error) {
	if b.mode != modeFile && b.mode != modeExec {
		return nil, nil
	}
	data, err := w.s.read(plumbing.BlobObject, b.hash)
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}

func parseCommit(text string) (c commitText) {
	head, message, _ := strings.Cut(text, "\n\n")
	c.Message = message
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.Author, _, _ = strings.Cut(value, " <")
		case "committer":
			c.When = committedAt(value)
		}
	}
	return c
}

// committedAt is the time in "Name <mail> 1700000000 +0100".
func committedAt(line string) time.Time {
	words := strings.Fields(line[strings.LastIndexByte(line, '>')+1:])
	if len(words) == 0 {
		return time.Time{}
	}
	seconds, _ := strconv.ParseInt(words[0], 10, 64)
	return time.Unix(seconds, 0).UTC()
}

func (c commitText) revision() Revision {
	r := Revision{Hash: c.Hash, When: c.When, Author: c.Author, Subject: firstLine(c.Message)}
	for line := range strings.SplitSeq(c.Message, "\n") {
		if input, ok := strings.CutPrefix(line, "Reconcile-Input: "); ok {
			r.Input = strings.TrimSpace(input)
		}
	}
	return r
}

// foldersOf lists the folders that contain a file, from the root ("") down.
func foldersOf(file string) []string {
	dirs := []string{""}
	for i, c := range file {
		if c == '/' {
			dirs = append(dirs, file[:i])
		}
	}
	return dirs
}

// LogLine is one commit.
type LogLine struct{ Hash, Subject, Body string }

// Between lists the commits that to has and from has not, newest first, at most limit; with paths only those that change
// one of them.
func (r *Repo) Between(ctx context.Context, from, to string, limit int, paths ...string) (lines []LogLine, err error) {
	err = r.either(func(_ *native, s *objectStore) error {
		if len(paths) > 0 {
			return &needsGit{"a history of files"}
		}
		lines, err = s.between(from, to, limit)
		return err
	}, func(k *command) error {
		lines, err = k.between(ctx, from, to, limit, paths)
		return err
	})
	return lines, err
}

func (k *command) between(ctx context.Context, from, to string, limit int, paths []string) ([]LogLine, error) {
	args := []string{"log", "-z", fmt.Sprintf("--max-count=%d", limit), "--format=%H%n%s%n%B", from + ".." + to, "--"}
	out, err := k.run(ctx, call{}, append(args, literal(paths)...)...)
	if err != nil {
		return nil, err
	}
	var lines []LogLine
	for _, text := range nulSplit(out) {
		hash, rest, _ := strings.Cut(text, "\n")
		subject, body, _ := strings.Cut(rest, "\n")
		lines = append(lines, LogLine{hash, subject, body})
	}
	return lines, nil
}

// ChangedFiles lists the paths that differ between two commits, below the top, sorted.
func (r *Repo) ChangedFiles(ctx context.Context, from, to string) (files []string, err error) {
	err = r.either(func(_ *native, s *objectStore) error {
		was, err := s.treeOf(from)
		if err != nil {
			return err
		}
		now, err := s.treeOf(to)
		if err == nil {
			files, err = s.changedFiles(was, now)
		}
		return err
	}, func(k *command) error {
		files, err = k.changedFiles(ctx, from, to)
		return err
	})
	return files, err
}

// TreeOf returns the digest of all files of a commit: that of its tree object.
func (r *Repo) TreeOf(ctx context.Context, commit string) (tree string, err error) {
	err = r.either(func(_ *native, s *objectStore) error {
		hash, err := s.treeOf(commit)
		tree = hash.String()
		return err
	}, func(k *command) error {
		tree, err = k.word(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
		return err
	})
	return tree, err
}

// Author returns the author of a commit, as "Name <mail>".
func (r *Repo) Author(ctx context.Context, commit string) (author string, err error) {
	err = r.either(func(_ *native, s *objectStore) error {
		author, err = s.authorOf(commit)
		return err
	}, func(k *command) error {
		author, err = k.word(ctx, "log", "-1", "--format=%an <%ae>", commit)
		return err
	})
	return author, err
}
