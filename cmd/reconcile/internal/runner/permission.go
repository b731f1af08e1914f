package runner

import (
	"context"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Permissions decide what agents may do. They are safe for concurrent use.
type Permissions interface {
	// Permit decides about a permission; ctx ends when the decision is of no use any more.
	Permit(ctx context.Context, q PermissionRequest) Permit
}

// PermissionRequest is what the agent of an effect asks for.
type PermissionRequest struct {
	Effect  settle.Effect
	Request acp.PermissionRequest
	// Asked is the request as it is recorded: without secrets, and shortened.
	Asked schemas.Permission
	// Dir is the folder in which the agent works; Own says that it is a workspace.
	Dir string
	Own bool
	// The caller calls Wait before it waits for a person.
	Wait func()
}

// Permit is a decision about a permission that an agent asked for.
type Permit struct {
	// Kinds are the kinds of the options to choose, the first one that is offered; without any the request is cancelled.
	Kinds []string
	By    string // who decided, for the record
	// Unanswered says that no person answered: the turn ends, and its node waits for the answer.
	Unanswered bool
}

// refusal refuses everything: an agent asks for what its own rules do not allow.
type refusal struct{}

func (refusal) Permit(context.Context, PermissionRequest) Permit {
	return Permit{Kinds: []string{acp.RejectOnce, acp.RejectAlways}, By: "default"}
}

const (
	// permissionsKept bounds the permissions on record.
	permissionsKept = 100
	// commandLimit bounds a command on record, in bytes; a longer one cannot be permitted.
	commandLimit = 16 << 10
	wordsLimit   = 500 // of the agent about its request
)

// asked is a permission that the agent asks for.
type asked struct {
	schemas.Permission
	since time.Time // a person is waited for; zero: nobody is
}

// Permit decides about a permission, and keeps the decision for the record.
func (t *talk) Permit(ctx context.Context, r acp.PermissionRequest) string {
	run := t.a.runner
	p := &asked{Permission: t.recorded(&r)}
	d := Permit{Kinds: []string{acp.RejectOnce, acp.RejectAlways}, By: "reconcile: the command is too long"}
	switch {
	case t.isUnanswered():
		d = Permit{} // the turn ends; the agent can ask again in the next one
	case !tooLong(r.Command):
		q := PermissionRequest{Effect: t.a.job.effect, Request: r, Asked: p.Permission, Dir: t.a.command.dir, Own: t.a.place.dir != run.dir,
			Wait: func() { t.await(p) }}
		d = run.o.Permissions.Permit(ctx, q)
	}
	o := r.Option(d.Kinds...)
	t.mu.Lock()
	if !p.since.IsZero() {
		t.waited += time.Since(p.since)
	}
	waited := !p.since.IsZero()
	p.since, p.By, p.Decision = time.Time{}, d.By, schemas.PermissionCancelled
	id := ""
	switch {
	case d.Unanswered, ctx.Err() != nil && t.unanswered:
		p.Decision, t.unanswered = schemas.PermissionUnanswered, true
	case o != nil && ctx.Err() == nil:
		id, p.Decision = o.ID, o.Kind
	}
	t.keep(p)
	t.mu.Unlock()
	switch {
	case d.Unanswered:
		t.a.job.end(cause{outcome: schemas.OutcomeNotPermitted, message: "it waits for a permission"})
	case waited:
		t.report()
	}
	return id
}

func tooLong(argv []string) bool {
	n := 0
	for _, arg := range argv {
		n += len(arg) + 1
	}
	return n > commandLimit
}

// recorded is a request as it is recorded.
func (t *talk) recorded(r *acp.PermissionRequest) schemas.Permission {
	clean := func(s string, limit int) string { return shorten.Text(t.a.runner.clean(s), limit) }
	p := schemas.Permission{Title: clean(r.Title, wordsLimit), Dir: clean(r.Dir, wordsLimit), Why: clean(r.Why, wordsLimit), Shell: r.Shell,
		Decision: schemas.PermissionWaiting}
	if tooLong(r.Command) {
		return p
	}
	for _, arg := range r.Command {
		p.Argv = append(p.Argv, t.a.runner.clean(arg))
	}
	return p
}

// await reports that a person is waited for.
func (t *talk) await(p *asked) {
	t.mu.Lock()
	p.since = time.Now()
	t.keep(p)
	t.mu.Unlock()
	t.report()
}

// keep keeps a request for the record, of too many those that are open and the latest ones; t.mu is held.
func (t *talk) keep(p *asked) {
	if slices.Contains(t.permissions, p) {
		return
	}
	if len(t.permissions) >= permissionsKept {
		i := slices.IndexFunc(t.permissions, func(p *asked) bool { return !p.Open() })
		if i < 0 {
			return
		}
		t.permissions = slices.Delete(t.permissions, i, i+1)
	}
	t.permissions = append(t.permissions, p)
}

// askedFor are the permissions so far; t.mu is held.
func (t *talk) askedFor() (out []schemas.Permission) {
	for _, p := range t.permissions {
		out = append(out, p.Permission)
	}
	return out
}

// waitedForPeople is how long people were waited for.
func (t *talk) waitedForPeople() time.Duration {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.waited
	var first time.Time
	for _, p := range t.permissions {
		if !p.since.IsZero() && (first.IsZero() || p.since.Before(first)) {
			first = p.since
		}
	}
	if !first.IsZero() {
		d += time.Since(first)
	}
	return d
}

// isUnanswered reports whether the turn ends because no one answered.
func (t *talk) isUnanswered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unanswered
}

// wasDenied reports whether the agent's program refused it something by its own rules.
func (a *attempt) wasDenied() bool {
	t := a.record.Turn
	return a.talk == nil && t != nil && slices.ContainsFunc(t.Permissions, func(p schemas.Permission) bool {
		return p.Decision == schemas.PermissionDenied
	})
}

// cleanDenied makes what the agent's program refused fit for the record.
func (a *attempt) cleanDenied(all []schemas.Permission) []schemas.Permission {
	out := slices.Clone(all)
	for i := range out {
		p := &out[i]
		p.Title, p.Why = a.brief(p.Title), a.brief(p.Why)
		argv := p.Argv
		if p.Argv = nil; tooLong(argv) {
			p.Title += " (too long)"
			continue
		}
		for _, arg := range argv {
			p.Argv = append(p.Argv, a.runner.clean(arg))
		}
	}
	return out
}

// notPermitted fills in the record of a turn that ended because it waits for a person. Its changes are kept.
func (a *attempt) notPermitted(note string) error {
	a.record.Outcome, a.record.Message = schemas.OutcomeNotPermitted, join("it waits for a permission", note)
	return a.keepChanges(nil)
}
