package ops

import (
	"cmp"
	"path/filepath"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/schemas/secrets"
)

// person is who says so: by, which a run cannot choose, or else the caller. In a run without an agent, who is logged in.
func (e Env) person(by string) (string, error) {
	who, err := e.Caller.Actor("--by", by)
	if err != nil {
		return "", err
	}
	who = cmp.Or(who, e.Caller.Login())
	return who, specs.CheckSecret("--by", who)
}

// here is a path that is named from where the caller is.
func (e Env) here(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Tree.Dir, e.Prefix, p)
}

// redact removes secrets and private text, and warns where there were any.
func (e Env) redact(what, text string) string {
	plain := secrets.Redact(text)
	if plain != text {
		e.warn(what + " held a secret or private text, which was taken out")
	}
	return plain
}
