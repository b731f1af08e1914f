package admission

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Turns are the places that sessions have had, as seen by one process, and its knowledge of other processes. The zero value is
// ready.
type Turns struct {
	// Others are what other processes wait for. Since is when the last tenure of this process began, as [state.Wait.Since].
	Others []state.Wait
	Since  schemas.Time
	// Lacks counts, by group, the effects that the last Admit left because other processes have the places or want them, too, up to the
	// limit of the group. That is what this process waits for.
	Lacks map[string]int
	// Foreign counts, by group, the claims of other processes that the last Admit saw.
	Foreign map[string]int

	shares map[string]*share
	// claimed are the objects with claims.
	claimed map[schemas.Ref]*state.Entry
	now     int64       // the virtual time: when in it the latest start of any session was
	tree    *state.Tree // the last one that was looked at
}

func (t *Turns) of(session string) *share {
	if t.shares == nil {
		t.shares = map[string]*share{}
	}
	s := t.shares[session]
	if s == nil {
		s = &share{name: session}
		t.shares[session] = s
	}
	return s
}

// follow adds the claims and records of the objects that changed since the last tree.
func (t *Turns) follow(tree *state.Tree) {
	if t.tree == nil || !tree.SameBase(t.tree) {
		t.begin(tree)
	} else {
		for _, kind := range performers {
			for was, is := range tree.Since(t.tree, kind) {
				t.noteClaims(was, is)
			}
		}
		for _, e := range tree.Since(t.tree, schemas.DAGKind.Name) {
			if session := sessionOf(e); session != "" {
				t.see(t.of(session), e)
			}
		}
	}
	t.tree = tree
}

// noteClaims notes whether an object has claims; is is nil for one that was removed.
func (t *Turns) noteClaims(was, is *state.Entry) {
	if is != nil && len(is.Claims) > 0 {
		t.claimed[is.Ref] = is
	} else if was != nil {
		delete(t.claimed, was.Ref)
	}
}

// begin looks at the DAGs of a tree that have not ended, and in each session at those that ended last: they have its latest starts.
func (t *Turns) begin(tree *state.Tree) {
	const latest = 8
	t.claimed = map[schemas.Ref]*state.Entry{}
	for _, kind := range performers {
		for _, e := range tree.Active(kind) {
			t.noteClaims(nil, e)
		}
	}
	ended := map[string][]*state.Entry{}
	for _, e := range tree.Active(schemas.DAGKind.Name) {
		session := sessionOf(e)
		switch {
		case session == "":
		case !e.HasStatus() || e.Brief().FinishedAt.IsZero():
			t.see(t.of(session), e)
		default:
			ended[session] = append(ended[session], e)
		}
	}
	for session, all := range ended {
		slices.SortFunc(all, func(a, b *state.Entry) int { return b.Brief().FinishedAt.Compare(a.Brief().FinishedAt.Time) })
		for _, e := range all[:min(latest, len(all))] {
			t.see(t.of(session), e)
		}
	}
}

// see adds the claims and records of an object of a session.
func (t *Turns) see(s *share, e *state.Entry) {
	for _, r := range e.Runs() {
		t.now = max(t.now, s.had(r))
	}
	for i := range e.Claims {
		t.now = max(t.now, s.had(&e.Claims[i].Run))
	}
}
