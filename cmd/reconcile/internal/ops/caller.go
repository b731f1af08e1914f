package ops

import (
	"cmp"
	"path/filepath"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/schemas/secrets"
)

// person returns the acting person: by, which a run cannot choose, or else the caller. In a run without an agent it is
// the login name.
func (e Env) person(by string) (string, error) {
	who, err := e.Caller.Actor("--by", by)
	if err != nil {
		return "", err
	}
	who = cmp.Or(who, e.Caller.Login())
	return who, specs.CheckSecret("--by", who)
}

// callerPath resolves a path relative to the caller's folder.
func (e Env) callerPath(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Tree.Dir, e.Prefix, p)
}

// redact removes secrets and private text, and warns if there were any.
func (e Env) redact(what, text string) string {
	plain := secrets.Redact(text)
	if plain != text {
		e.warn(what + " held a secret or private text, which was taken out")
	}
	return plain
}
