package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// errNoCommit reports that a revision names no commit in this clone.
var errNoCommit = errors.New("no such commit here")

// Resolve returns the full hash of the commit that rev names, in any form that git rev-parse accepts. Without the
// git command, rev is HEAD, a branch, a tag or a full hash, each optionally followed by ~N.
func (r *Repo) Resolve(ctx context.Context, rev string) (hash string, err error) {
	if r.command != nil {
		k := r.command.(*command)
		if hash, err = k.word(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}"); err != nil {
			hash = "" // rev-parse prints an invalid revision unchanged
		}
	} else if hash, err = resolveNative(r.layout, rev); err != nil {
		return "", err
	}
	if hash != "" {
		return hash, nil
	}
	if r.Shallow() {
		return "", fmt.Errorf("%q: %w: the clone is shallow; git fetch --unshallow brings what is older", rev, errNoCommit)
	}
	return "", fmt.Errorf("%q: %w; name a commit, branch or tag, as git rev-parse takes them", rev, errNoCommit)
}

// Descends reports whether what is checked out is a commit, given by its full hash, or one of few on it. It asks no git: false says that this is
// not known.
func (r *Repo) Descends(ctx context.Context, commit string) bool {
	hash, full := parseHash(commit)
	if !full || r.why != nil {
		return false
	}
	head, err := r.Head(ctx)
	if err != nil || head.Hash == "" {
		return false
	}
	s := newObjectStore(r.layout)
	defer s.close()
	related, known := s.relateNear(hash, head.Hash)
	return known && related.base == hash
}

// resolveNative resolves the simple forms of a revision without a git command; "" for the others.
func resolveNative(l layout, rev string) (string, error) {
	name, up, _ := strings.Cut(rev, "~")
	n := 0
	if up != "" || strings.HasSuffix(rev, "~") {
		var err error
		if n, err = strconv.Atoi(up + "1"[min(len(up), 1):]); err != nil || n < 0 {
			return "", nil
		}
	}
	s := newObjectStore(l)
	defer s.close()
	hash, err := namedRevision(l, name)
	if err != nil || hash == "" {
		return "", err
	}
	at, err := s.peel(hash)
	for ; n > 0 && err == nil && at.Hash != ""; n-- {
		if len(at.Parents) == 0 {
			return "", nil
		}
		at, err = s.commit(at.Parents[0])
	}
	var missing *needsGit
	if errors.As(err, &missing) {
		return "", nil
	}
	return at.Hash, err
}

// namedRevision returns the object of a name: HEAD, a full hash, a tag or a branch.
func namedRevision(l layout, name string) (string, error) {
	if hash, ok := parseHash(name); ok {
		return hash, nil
	}
	if name == "HEAD" || name == "@" {
		head, err := readHead(l)
		return head.Hash, err
	}
	for _, ref := range []string{name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name} {
		if !validRef(ref) {
			continue
		}
		if hash, err := resolveRef(l, ref); err != nil || hash != "" {
			return hash, err
		}
	}
	return "", nil
}

// Stored is a file in a commit.
type Stored struct {
	Path string // slash path below the directory given to Open
	Link bool   // a symbolic link; Data is its target
	Data []byte
}

// modeLink is the mode of a symbolic link.
const modeLink = 0o120000

// Files calls visit for each file of a commit that is one of the paths or below one, in git's order; submodules are
// left out. It reads objects and checks nothing out.
func (r *Repo) Files(ctx context.Context, commit string, paths []string, visit func(Stored) error) error {
	below, err := r.below(paths)
	if err != nil {
		return err
	}
	return r.files(ctx, commit, below, func(string) bool { return true }, visit)
}

// FilesLike visits the stored files of a commit below the directory given to Open whose relative slash paths are
// wanted. It reads no content of others.
func (r *Repo) FilesLike(ctx context.Context, commit string, wanted func(path string) bool, visit func(Stored) error) error {
	all := []string{strings.TrimSuffix(r.prefix, "/")}
	return r.files(ctx, commit, all, func(p string) bool { return wanted(strings.TrimPrefix(p, r.prefix)) }, visit)
}

// files takes paths relative to the top of the repository ("" is the top itself), and passes such paths to wanted.
func (r *Repo) files(ctx context.Context, commit string, paths []string, wanted func(string) bool, visit func(Stored) error) error {
	own := func(f Stored) error {
		f.Path = strings.TrimPrefix(f.Path, r.prefix)
		return visit(f)
	}
	if r.command != nil { // faster for many files, because it caches delta bases
		return r.command.(*command).files(ctx, commit, paths, wanted, own)
	}
	s := newObjectStore(r.layout)
	defer s.close()
	root, err := s.treeOf(commit)
	if err != nil {
		return err
	}
	for _, p := range paths {
		at := blob{mode: modeTree, hash: root}
		if p != "" {
			at, err = s.file(root, p)
		}
		if err == nil {
			err = s.each(ctx, p, at, wanted, own)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each visits the wanted files of a tree entry.
func (s *objectStore) each(ctx context.Context, path string, at blob, wanted func(string) bool, visit func(Stored) error) error {
	switch at.mode {
	case modeTree:
		entries, err := s.tree(at.hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := s.each(ctx, strings.TrimPrefix(path+"/"+e.name, "/"), e.blob, wanted, visit); err != nil {
				return err
			}
		}
		return ctx.Err()
	case modeFile, modeExec, modeLink:
		if !wanted(path) {
			return nil
		}
		data, err := s.read(plumbing.BlobObject, at.hash)
		if err != nil {
			return err
		}
		return visit(Stored{Path: path, Link: at.mode == modeLink, Data: data})
	}
	return nil
}
