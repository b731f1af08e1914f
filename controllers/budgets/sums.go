package budgets

import (
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Sums are the used and reserved amounts, by scope, over the tree that was read last. They follow from tree to tree.
type Sums struct {
	tree       *state.Tree
	turnTokens int64
	now        time.Time
	parts      map[schemas.Ref]part
	of         map[string]*sum
	watched    map[string]*watch
	// asked has the scopes of the budgets that were asked about since the last tree.
	asked map[asker][]string
}

// sum has the amounts of a scope.
type sum struct{ used, held use }

// part is what one object adds, by scope.
type part map[string]*sum

// SumsOf returns the sums over a tree. They are carried in v.
func SumsOf(v *settle.Values, t *state.Tree, now time.Time) *Sums {
	s := shared(v)
	s.now = now
	s.follow(t)
	return s
}

func shared(v *settle.Values) *Sums {
	return settle.Shared(v, func() *Sums { return &Sums{watched: map[string]*watch{}, asked: map[asker][]string{}} })
}

// Scopes, by which use is counted.
const (
	dayScope = "day"
	ofCall   = "call/" // begins those of calls
)

func sessionScope(name string) string   { return "session/" + name }
func dagScope(name string) string       { return "dag/" + name }
func nodeScope(dag, node string) string { return "dag/" + dag + "/" + node }
func callScope(dag, node string) string { return ofCall + dag + "/" + node }
func agentScope(name string) string     { return settle.AgentGroup + name }
func dayOf(at time.Time) string         { return dayScope + "/" + at.UTC().Format(time.DateOnly) }

// counted are the kinds whose records count.
var counted = []string{schemas.DAGKind.Name, schemas.ClarificationRequestKind.Name}

// follow brings the sums up to date with a tree. It looks at what differs from the former one.
func (s *Sums) follow(t *state.Tree) {
	tokens := t.Settings().Limits.TurnTokens
	switch {
	case s.tree == t:
		return
	case s.tree == nil || !t.SameBase(s.tree) || s.turnTokens != tokens:
		s.turnTokens, s.parts, s.of = tokens, map[schemas.Ref]part{}, map[string]*sum{}
		for _, kind := range counted {
			for _, e := range t.Active(kind) { // agents worked for none that is dormant
				s.put(e)
			}
		}
	default:
		for _, kind := range counted {
			for was, is := range t.Since(s.tree, kind) {
				if is == nil {
					s.set(was.Ref, nil)
				} else {
					s.put(is)
				}
			}
		}
	}
	s.tree = t
}

// put takes an object as it is in the tree. The records of one that was removed are about to be removed, too.
func (s *Sums) put(e *state.Entry) {
	var p part
	if !e.Gone() && e.RunsHave(state.OfAgent) {
		for _, r := range e.Runs() {
			if r.Agent != "" {
				p = p.add(e, r, ofRun(r, s.turnTokens), dayOf(r.FinishedAt.Time), false)
			}
		}
	}
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Agent != "" && c.Budget != nil {
			p = p.add(e, &c.Run, ofBudget(c.Budget), dayScope, true)
		}
	}
	s.set(e.Ref, p)
}

// add adds a run under all its scopes; p may be nil.
func (p part) add(e *state.Entry, r *schemas.Run, u use, day string, held bool) part {
	if p == nil {
		p = part{}
	}
	dag, session := "", ""
	if e.Kind == schemas.DAGKind.Name {
		dag, session = e.Name, sessionOf(e)
	}
	for _, scope := range append(scopes(day, r.Agent, dag, r.Node, session), callScopes(e, r.Node)...) {
		if p[scope] == nil {
			p[scope] = new(sum)
		}
		if held {
			p[scope].held.add(u, 1)
		} else {
			p[scope].used.add(u, 1)
		}
	}
	return p
}

// callScopes are those of the calls that a node is part of.
func callScopes(e *state.Entry, node string) (out []string) {
	if e.Object == nil || e.Object == e.Object.Declared() {
		return nil // nothing was expanded
	}
	if spec := schemas.SpecAs[*schemas.DAGSpec](e.Object); spec != nil {
		for _, c := range spec.CallsOf(node) {
			out = append(out, callScope(e.Name, c.Node))
		}
	}
	return out
}

func sessionOf(dag *state.Entry) string {
	if dag.Object != nil {
		for _, r := range dag.Object.Refs {
			if r.To.Kind == schemas.SessionKind.Name {
				return r.To.Name
			}
		}
	}
	return state.StatusOf[schemas.DAGStatus](dag).Session
}

// set replaces what an object adds.
func (s *Sums) set(ref schemas.Ref, p part) {
	for scope, was := range s.parts[ref] {
		s.of[scope].used.add(was.used, -1)
		s.of[scope].held.add(was.held, -1)
	}
	if delete(s.parts, ref); len(p) > 0 {
		s.parts[ref] = p
	}
	for scope, is := range p {
		if s.of[scope] == nil {
			s.of[scope] = new(sum)
		}
		s.of[scope].used.add(is.used, 1)
		s.of[scope].held.add(is.held, 1)
	}
}

// at is the sum of the scope of a budget. Reserved amounts count for the present day.
func (s *Sums) at(scope string) sum {
	var out sum
	if scope == dayScope {
		if held := s.of[dayScope]; held != nil {
			out.held = held.held
		}
		scope = dayOf(s.now)
	}
	if is := s.of[scope]; is != nil {
		out.used.add(is.used, 1)
		out.held.add(is.held, 1)
	}
	return out
}
