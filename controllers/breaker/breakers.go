package breaker

import (
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Breakers are those of all agents over the tree that was looked at last. They follow from tree to tree.
type Breakers struct {
	tree    *state.Tree
	now     time.Time
	parts   map[schemas.Ref]part
	agents  map[string]*agent
	watched map[string]*watch
}

// part is what the records and claims of one object say about agents, by name.
type part map[string]*share

// share is what one object says about an agent: when a run last worked, the failures after it, and the number of claims.
type share struct {
	worked schemas.Time
	failed []failed
	claims int
}

// agent are the shares of all objects in the runs of one agent. Most objects have no failed run.
type agent struct {
	shares map[schemas.Ref]*share
	failed map[schemas.Ref]*share
	claims int
	worked schemas.Time
}

// asker is a node, or an object without one, whose decision depends on a breaker.
type asker struct {
	ref  schemas.Ref
	node string
}

// watch has the askers about an agent, by how they are in the tree: free ones may start, waiting ones wait for an agent.
type watch struct {
	asked, free map[asker]bool
	waiting     map[asker]told
	compared    Breaker // what the waiting ones say of it holds
}

// BreakersOf returns the breakers over a tree at a time. They are carried in v.
func BreakersOf(v *settle.Values, t *state.Tree, now time.Time) *Breakers {
	b := shared(v)
	b.now = now
	b.follow(t)
	return b
}

func shared(v *settle.Values) *Breakers {
	return settle.Shared(v, func() *Breakers { return &Breakers{watched: map[string]*watch{}} })
}

// Ask returns the breaker of an agent, for a decision about a node of an object, or about the object itself. It is decided again when the
// tree is not as the breaker wants it.
func (b *Breakers) Ask(name string, by schemas.Ref, node string) Breaker {
	w := b.watched[name]
	if w == nil {
		w = &watch{asked: map[asker]bool{}, free: map[asker]bool{}, waiting: map[asker]told{}}
		b.watched[name] = w
	}
	w.asked[asker{by, node}] = true
	return b.At(name)
}

// At returns the breaker of an agent.
func (b *Breakers) At(name string) Breaker {
	a, settings := b.agents[name], &b.tree.Settings().Breaker
	if a == nil {
		return at(nil, false, settings, b.now)
	}
	var row []failed
	for _, s := range a.failed {
		for _, f := range s.failed {
			if f.at.After(a.worked.Time) {
				row = append(row, f)
			}
		}
	}
	slices.SortFunc(row, func(a, b failed) int { return a.at.Compare(b.at.Time) })
	return at(row, a.claims > 0, settings, b.now)
}

// counted are the kinds whose records count.
var counted = []string{schemas.DAGKind.Name, schemas.ClarificationRequestKind.Name}

// follow brings the breakers up to date with a tree. It looks at what differs from the former one.
func (b *Breakers) follow(t *state.Tree) {
	switch {
	case b.tree == t:
		return
	case b.tree == nil || !t.SameBase(b.tree):
		b.parts, b.agents = map[schemas.Ref]part{}, map[string]*agent{}
		for _, kind := range counted {
			for _, e := range t.Active(kind) { // agents worked for none that is dormant
				b.set(e.Ref, partOf(e))
			}
		}
	default:
		for _, kind := range counted {
			for was, is := range t.Since(b.tree, kind) {
				if is == nil {
					b.set(was.Ref, nil)
				} else {
					b.set(is.Ref, partOf(is))
				}
			}
		}
	}
	b.tree = t
}

// partOf is what an object says; nil for nothing. The records of one that was removed are about to be removed, too.
func partOf(e *state.Entry) (p part) {
	if !e.Gone() && e.RunsHave(state.OfAgent) {
		for _, r := range e.Runs() {
			if r.Agent != "" {
				p = p.of(r.Agent)
				p[r.Agent].add(r)
			}
		}
	}
	for i := range e.Claims {
		if name := e.Claims[i].Agent; name != "" {
			p = p.of(name)
			p[name].claims++
		}
	}
	return p
}

// of is p with a share of an agent; p may be nil.
func (p part) of(name string) part {
	if p == nil {
		p = part{}
	}
	if p[name] == nil {
		p[name] = new(share)
	}
	return p
}

func (s *share) add(r *schemas.Run) {
	switch works, why := counts(r); {
	case works:
		s.worked = schemas.Later(s.worked, r.FinishedAt)
	case why != "":
		s.failed = append(s.failed, failed{r.FinishedAt, why})
	}
}

// set replaces what an object says.
func (b *Breakers) set(ref schemas.Ref, p part) {
	was := b.parts[ref]
	if delete(b.parts, ref); len(p) > 0 {
		b.parts[ref] = p
	}
	for name, s := range p {
		if b.agents[name] == nil {
			b.agents[name] = &agent{shares: map[schemas.Ref]*share{}, failed: map[schemas.Ref]*share{}}
		}
		b.agents[name].replace(ref, s)
	}
	for name := range was {
		if p[name] == nil {
			b.agents[name].replace(ref, nil)
		}
	}
}

// replace replaces the share of an object; nil: it has none.
func (a *agent) replace(ref schemas.Ref, is *share) {
	was := a.shares[ref]
	delete(a.shares, ref)
	delete(a.failed, ref)
	if was == nil {
		was = new(share)
	}
	if is == nil {
		is = new(share)
	} else {
		a.shares[ref] = is
	}
	if a.claims += is.claims - was.claims; len(is.failed) > 0 {
		a.failed[ref] = is
	}
	switch {
	case is.worked.Compare(was.worked.Time) >= 0 || was.worked != a.worked:
		a.worked = schemas.Later(a.worked, is.worked)
	default: // records were removed
		a.worked = schemas.Time{}
		for _, s := range a.shares {
			a.worked = schemas.Later(a.worked, s.worked)
		}
	}
}
