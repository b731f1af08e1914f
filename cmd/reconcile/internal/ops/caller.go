package ops

import (
	"cmp"
	"path/filepath"
	"strconv"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/schemas"
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

// CallerPath resolves a path relative to the caller's folder.
func (e Env) CallerPath(p string) string { return e.callerPath(p) }

// callerPath resolves a path relative to the caller's folder.
func (e Env) callerPath(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Tree.Dir, e.Prefix, p)
}

// mayWrite refuses, inside a run, changes that only people may make. before is nil for a new object, after for a removal.
func (e Env) mayWrite(ref schemas.Ref, before, after *schemas.Object) error {
	if what := schemas.OnlyPeople(ref, before, after); what != "" {
		return e.Caller.OnlyPeople(what)
	}
	return nil
}

// work returns the agent and the issue of a command: from the request, or else from the environment of a run.
func (e Env) work(command, agent string, issue *int) (string, int, error) {
	agent = cmp.Or(agent, e.Tree.Getenv("RECONCILE_AGENT"))
	if n, err := strconv.ParseInt(e.Tree.Getenv("RECONCILE_ISSUE"), 10, 32); err == nil && n >= 0 && issue == nil {
		of := int(n)
		issue = &of
	}
	if agent == "" || issue == nil {
		return "", 0, badRequest("reconcile memory %s needs --agent and --issue (0 for none); for example: "+
			"reconcile memory %[1]s --agent engineer --issue 29", command)
	}
	if err := specs.CheckSecret("--agent", agent); err != nil {
		return "", 0, err
	}
	if err := schemas.CheckName(agent); err != nil {
		return "", 0, badField("agent", " %q: %v", agent, err)
	}
	return agent, *issue, nil
}
