package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
