package workspaces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state/regular"
)

// secretError says that files have a secret, and so become part of nothing that reconcile writes.
type secretError struct {
	What string // names the file and the rule, never the secret
}

func (e *secretError) Error() string { return e.What }

// checkSecrets returns a *SecretError if a file of a checkout that is not committed yet, or one of the others, which are paths below
// the top as well, has a secret. It writes nothing, and returns the files that are not committed yet.
func (m *Manager) checkSecrets(ctx context.Context, repo *gitrepo.Repo, o Owner, except, others []string) ([]string, error) {
	co := m.checkout(o.Name)
	changed, err := repo.Uncaptured(ctx, co)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Clone(changed), func(name string) bool { return slices.Contains(except, name) })
	for _, name := range append(names, others...) {
		if strings.HasSuffix(name, "/") {
			continue // a repository of its own: it is no part of a commit
		}
		data, err := contentOf(filepath.Join(co.Dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, regular.ErrNot) {
			continue // deleted, also below what is a file now, or no file that git keeps
		}
		if err != nil {
			return nil, err
		}
		if what := m.secretIn(ctx, repo, o.Base, strings.TrimPrefix(o.Target, "refs/heads/"), name, data); what != "" {
			return nil, &secretError{what}
		}
	}
	return changed, nil
}

// contentOf is what git keeps of a file.
func contentOf(path string) ([]byte, error) {
	if target, err := os.Readlink(path); err == nil {
		return []byte(target), nil
	}
	return regular.ReadPath(path)
}

// secretIn says which secret a file has in its content or in its name that the base does not have; "" for none, and for a file that is the
// same at the tip of the branch target: then a person has committed it.
func (m *Manager) secretIn(ctx context.Context, repo *gitrepo.Repo, base, target, name string, data []byte) string {
	what := m.newSecretIn(ctx, repo, base, name, data)
	if what == "" {
		return ""
	}
	tip, err := repo.Base(ctx, target)
	if err != nil || !isAt(ctx, repo, tip.Hash, name, data) {
		return what
	}
	return ""
}

// isAt reports whether a commit has the file with that content.
func isAt(ctx context.Context, repo *gitrepo.Repo, commit, name string, data []byte) bool {
	there, err := repo.Blob(ctx, commit, name)
	return err == nil && bytes.Equal(there, data)
}

func (m *Manager) newSecretIn(ctx context.Context, repo *gitrepo.Repo, base, name string, data []byte) string {
	before := func() []byte {
		was, _ := repo.Blob(ctx, base, name) // empty for a new file
		return was
	}
	switch found := secrets.InFile(data); {
	case m.o.Secrets.In([]byte(name)) && len(before()) == 0:
		return "a file has a value from the environment that looks secret in its name; rename it"
	case m.o.Secrets.In(data) && !m.o.Secrets.In(before()):
		return name + " has a value from the environment that looks secret; take it out"
	case len(found) > 0 && len(found) > len(secrets.InFile(before())):
		return fmt.Sprintf("%s has what looks like a secret (%s); take it out, or, if it is none, commit the file as it is yourself, and retry", name, found[0])
	}
	return ""
}
