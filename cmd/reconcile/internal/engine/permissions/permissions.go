// Package permissions answers the permissions that running agents ask for: by the rules and answers in the tree, and otherwise
// by waiting for a person.
package permissions

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/worktree"
)

// defaultWait is how long a person is waited for where a person may be there.
const defaultWait = 5 * time.Minute

// Desk answers requests. It is safe for concurrent use.
type Desk struct {
	attended bool // somebody may answer while a run lasts

	mu   sync.Mutex
	tree *state.Tree     // the latest one; nil: not known yet
	next chan struct{}   // closed when another tree is known
	used map[string]bool // actions that this process took as the answer to one request
}

// New returns a desk. attended says that a person may answer while a run lasts: it watches, or has a terminal.
func New(attended bool) *Desk {
	return &Desk{attended: attended, next: make(chan struct{}), used: map[string]bool{}}
}

// Observe takes note of the latest tree, in which answers and rules are.
func (d *Desk) Observe(t *state.Tree) {
	if t == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t == d.tree {
		return
	}
	d.tree = t
	close(d.next)
	d.next = make(chan struct{})
}

// Permit implements runner.Permissions.
func (d *Desk) Permit(ctx context.Context, q runner.PermissionRequest) runner.Permit {
	var timeout <-chan time.Time
	waits := false
	for {
		t, next := d.latest()
		if t != nil {
			if p, ok := d.decide(t, &q); ok {
				return p
			}
			if !waits {
				waits = true
				wait := d.wait(t)
				if wait == 0 {
					return runner.Permit{Unanswered: true}
				}
				q.Wait()
				timer := time.NewTimer(wait)
				defer timer.Stop()
				timeout = timer.C
			}
		}
		select {
		case <-next:
		case <-timeout:
			return runner.Permit{Unanswered: true}
		case <-ctx.Done():
			return runner.Permit{}
		}
	}
}

func (d *Desk) latest() (*state.Tree, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tree, d.next
}

// wait is how long a person is waited for.
func (d *Desk) wait(t *state.Tree) time.Duration {
	if w := t.Settings().Commands.Wait; w != nil {
		return w.Std()
	}
	if d.attended {
		return defaultWait
	}
	return 0
}

// decide decides by the tree; ok is false if a person is to decide.
func (d *Desk) decide(t *state.Tree, q *runner.PermissionRequest) (p runner.Permit, ok bool) {
	if len(q.Request.Command) == 0 && isOwn(t, q) {
		return allow("rule: files of its folder"), true
	}
	e := t.Entry(q.Effect.Owner)
	v := d.verdict(t, e, q)
	switch {
	case v.Decided && v.Allow:
		return allow(v.By), true
	case v.Decided:
		return refuse(v.By), true
	case q.Effect.Owner.Kind != schemas.DAGKind.Name:
		return refuse("rule: nobody is asked while an agent answers a question"), true
	}
	return p, false
}

// verdict decides by the rules about the command as the agent said it, and by the answers to the request as it is on record. A text
// for a shell that is not a POSIX shell is only compared with answers.
func (d *Desk) verdict(t *state.Tree, e *state.Entry, q *runner.PermissionRequest) permits.Verdict {
	asked := q.Asked
	asked.Argv = q.Request.Command
	r := permits.Request{DAG: q.Effect.Owner, Node: q.Effect.Node, Agent: q.Effect.Agent, Asked: &asked}
	if v := permits.Rule(t, r); v.Decided && (!v.Allow || !q.Request.Shell || runtime.GOOS != "windows") {
		return v
	}
	asked.Argv = q.Asked.Argv
	onRecord := permits.Used(e, q.Effect.Node)
	d.mu.Lock()
	defer d.mu.Unlock()
	v := permits.Answered(t, r, func(action string) bool { return d.used[action] || onRecord(action) })
	if v.Once != "" {
		d.used[v.Once] = true
	}
	return v
}

func allow(by string) runner.Permit {
	return runner.Permit{Kinds: []string{acp.AllowOnce}, By: by}
}

func refuse(by string) runner.Permit {
	return runner.Permit{Kinds: []string{acp.RejectOnce, acp.RejectAlways}, By: by}
}

// fileTools are the kinds of tools that are about the files that the request names.
var fileTools = []string{"read", "edit", "delete", "move", "search"}

// isOwn reports whether a tool is only about files that are the agent's own: those of its folder, but not git's, the specs and
// what reconcile writes.
func isOwn(t *state.Tree, q *runner.PermissionRequest) bool {
	if !slices.Contains(fileTools, q.Request.Kind) || len(q.Request.Paths) == 0 {
		return false
	}
	folders := t.Settings().Folders
	for _, p := range q.Request.Paths {
		rel, ok := below(q.Dir, p)
		if !ok {
			return false
		}
		kept := []string{folders.Specs, folders.State, schemas.SettingsPath}
		if treepath.Of(rel) != treepath.User || slices.ContainsFunc(kept, func(dir string) bool { return treepath.Within(rel, dir) }) {
			return false
		}
	}
	return true
}

// below returns a path relative to a folder, with the links of its existing part resolved; ok is false if it leads elsewhere.
func below(dir, file string) (rel string, ok bool) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	rest := ""
	for file = filepath.Clean(file); ; file = filepath.Dir(file) {
		if real, err := filepath.EvalSymlinks(file); err == nil {
			file = filepath.Join(real, rest)
			break
		}
		rest = filepath.Join(filepath.Base(file), rest)
		if filepath.Dir(file) == file {
			return "", false
		}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, ok = worktree.Within(dir, file)
	return rel, ok && rel != "."
}
