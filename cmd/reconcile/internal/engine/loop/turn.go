package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// turn takes in what happened, decides, starts effects, and writes, all under the tree's lock; then it ends what is no longer
// wanted.
func (s *session) turn(ctx context.Context) error {
	if err := s.record(); err != nil {
		return err
	}
	err := s.advance(ctx)
	s.perform(nil)
	s.cancel()
	if err == nil && s.Observe != nil {
		s.Observe(nil, s.tree)
	}
	return err
}

// advance brings the tree up to date, decides, starts what may start, and writes.
func (s *session) advance(ctx context.Context) error {
	if err := s.takeLock(ctx); err != nil {
		return err
	}
	err := s.underLock(ctx)
	if err == nil {
		err = s.settleLock()
	} else {
		err = errors.Join(err, s.unlock())
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Sync())
	}
	return err
}

func (s *session) underLock(ctx context.Context) error {
	s.started = false
	if err := errors.Join(s.look(ctx), s.setAside(ctx), s.renumber(ctx)); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.foldLedgers(ctx); err != nil {
		return err
	}
	s.rest()
	return s.flush(ctx, false)
}

// start decides, writes what has to be there first, and claims and starts what may start.
func (s *session) start(ctx context.Context) error {
	for tries := 1; ; tries++ {
		s.decide()
		if err := errors.Join(s.derive(ctx), s.foldLedgers(ctx), s.save(ctx), s.settleMemory(ctx, false)); err != nil {
			return err
		}
		claims := s.claimable()
		moved, err := s.inputsMoved(ctx, claims)
		if err != nil {
			return err
		}
		if !moved || tries == inputTries {
			return s.claim(ctx, claims)
		}
	}
}

// inputTries bounds how often a turn decides anew because inputs change while it looks at them.
const inputTries = 10

// doing tells what the turn is at, and keeps the lock of the tree young: it is renewed for as long as work goes on.
func (s *session) doing(step string, done, total int) {
	s.Store.Working()
	if s.Doing != nil {
		s.Doing(step, done, total)
	}
}

// record takes in what the performer reports. Results are durable before anything is written or started because of them,
// and when the turn ends.
func (s *session) record() error {
	var runs []schemas.Run
	var given []string
	ended := endedIn(s.inbox)
	for _, r := range s.inbox {
		switch r.Kind {
		case controllers.Started:
			if ended[r.Key] {
				continue // nobody will look for its process
			}
			if err := s.journal.Started(r.Key, r.At, r.PID); err != nil {
				return err
			}
			continue
		case controllers.Finished:
			if s.recorded(r.Key) {
				given = append(given, r.Key)
				break
			}
			runs = append(runs, *r.Run)
			s.recordedOf[s.mine[r.Key].Owner] += sizeOf(r.Run)
			s.paths = append(s.paths, s.outputsOf(r.Key)...)
			s.count(r.Run)
			s.result(r.Key)
		case controllers.Held:
			s.held[r.Key] = r.Why
			given = append(given, r.Key)
		case controllers.Broken:
			s.fault = errors.Join(s.fault, fmt.Errorf("%s: %w", r.Key, r.Err))
			given = append(given, r.Key)
		case controllers.Released:
			given = append(given, r.Key)
			s.paths = append(s.paths, r.Missing...)
			s.pollAt = time.Now() // perhaps another reconciler has it
		}
		delete(s.mine, r.Key)
		s.stale = true
	}
	s.inbox = nil
	if len(runs) > 0 {
		if err := s.journal.Record(runs); err != nil {
			return err
		}
	}
	if len(given) > 0 {
		return s.journal.Release(given)
	}
	return nil
}

// endedIn are the keys of the effects whose end is among the reports.
func endedIn(reports []controllers.Report) map[string]bool {
	ended := map[string]bool{}
	for _, r := range reports {
		if r.Kind != controllers.Started {
			ended[r.Key] = true
		}
	}
	return ended
}

func (s *session) count(r *schemas.Run) {
	s.ran++
	if r.Outcome != schemas.OutcomeSucceeded && r.Outcome != schemas.OutcomeCancelled {
		return // failures are bounded by their retry policy
	}
	node := r.Owner + " " + r.Node
	if s.laps[node]++; s.laps[node] > maxLaps {
		s.chasing = node
	}
}

// look brings the tree up to date: with the journals always, with all files when a scan is asked for or another
// process wrote, else with those that were hinted at; and, when something finished, with specs that it may have changed.
func (s *session) look(ctx context.Context) error {
	start := s.Now()
	var hints []string // nil: everywhere
	if !s.rescan {
		hints = append([]string{}, s.paths...)
		if s.stale {
			hints = append(hints, s.Store.ChangedHints(append(s.working(), s.asking()...))...)
		}
	}
	whole := s.moved || start.Sub(s.whole) >= s.tree.Settings().Watch.Rescan.Std()
	var err error
	if hints == nil && !whole {
		err = s.take(s.Store.RefreshChanged(ctx, s.tree))
	} else {
		err = s.refresh(ctx, hints)
	}
	if err != nil {
		return err
	}
	s.paths = nil
	if hints != nil {
		return nil
	}
	s.rescan, s.stale = false, false
	s.scanned, s.scanCost = s.Now(), s.Now().Sub(start)
	if whole {
		s.moved, s.whole = false, s.scanned
	}
	return nil
}

// working are the specs of the objects that want something, and of their sessions: before more of them is started, it is
// made sure that they still say so.
func (s *session) working() []string {
	var paths []string
	for ref := range s.effects {
		e := s.tree.Entry(ref)
		if e == nil || e.Object == nil {
			continue
		}
		paths = append(paths, e.Object.Path)
		for _, r := range e.Object.Refs {
			if on := s.tree.Entry(r.To); r.Hard && on != nil && on.Object != nil {
				paths = append(paths, on.Object.Path)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// asking are the folders where a run leaves questions that it asks by command: before anything is made of its end, it is
// made sure that they are known.
func (s *session) asking() []string {
	dir := s.tree.Settings().Folders.Specs + "/"
	return []string{dir + schemas.ClarificationRequestKind.Plural + "/", dir + schemas.ReplyKind.Plural + "/"}
}

func (s *session) refresh(ctx context.Context, hints []string) error {
	return s.take(s.Store.Refresh(ctx, s.tree, hints))
}

// take takes over the tree that a look returned.
func (s *session) take(tree *state.Tree, refs []schemas.Ref, err error) error {
	if err != nil {
		return fmt.Errorf("look at the tree again: %w", err)
	}
	if tree.Settings() != s.tree.Settings() {
		s.dirty = nil // every decision may depend on them
		s.recollect = unknown
	}
	s.tree = tree
	s.touch(refs...)
	return nil
}

// inputsMoved reports whether inputs of nodes that are about to start differ from what was decided on, because of something
// that ran since all files were looked at.
func (s *session) inputsMoved(ctx context.Context, claims []controllers.Effect) (bool, error) {
	nodes := map[schemas.Ref][]string{}
	for _, e := range claims {
		if owner := s.tree.Entry(e.Owner); s.stale && owner != nil && owner.Inputs[e.Node] != "" {
			nodes[e.Owner] = append(nodes[e.Owner], e.Node)
		}
	}
	if len(nodes) == 0 {
		return false, nil
	}
	tree, refs, err := s.Store.RefreshInputs(ctx, s.tree, nodes)
	if err != nil {
		return false, fmt.Errorf("look at inputs again: %w", err)
	}
	s.tree = tree
	s.touch(refs...)
	return len(refs) > 0, nil
}

// touch marks objects to be decided again.
func (s *session) touch(refs ...schemas.Ref) {
	for _, r := range refs {
		if s.requests != nil && r.Kind == state.LedgerKind {
			s.requests[r] = true
		}
		if (r.Kind == schemas.ObservationKind.Name || r.Kind == state.MemoryKind) && s.recollect != unknown {
			s.recollect = behind
		}
		if s.dirty != nil {
			s.dirty[r] = true
		}
	}
}

// decide brings statuses and wants up to date with the tree.
func (s *session) decide() {
	now := s.Now()
	for ref, w := range s.wakes {
		if !w.at.After(now) {
			s.touch(ref)
		}
	}
	var dirty []schemas.Ref
	if s.dirty == nil {
		clear(s.effects)
		clear(s.restores)
		clear(s.wakes)
	} else if dirty = sortedRefs(s.dirty); len(dirty) == 0 {
		return
	}
	s.adopt(s.decider.Settle(s.tree, now, dirty, func(done, total int) { s.doing("decide", done, total) }))
	s.dirty = map[schemas.Ref]bool{}
}

// adopt takes a decision over.
func (s *session) adopt(d controllers.Decision) {
	for _, ref := range d.Changed {
		s.unwritten[ref] = true
		if s.requests != nil && ref.Kind == schemas.ClarificationRequestKind.Name {
			s.requests[ref] = true
		}
		switch {
		case s.Record == nil:
		case ref.Kind == schemas.ClarificationRequestKind.Name:
			s.hold(ref)
		default:
			s.news = append(s.news, news{s.tree.Entry(ref), d.Tree.Entry(ref)})
		}
	}
	s.tree = d.Tree
	for ref, out := range d.Outs {
		set(s.effects, ref, out.Effects, len(out.Effects) > 0)
		set(s.restores, ref, out.Restore, len(out.Restore) > 0)
		set(s.wakes, ref, wake{out.Again, out.Await}, !out.Again.IsZero())
		if e := s.tree.Entry(ref); e != nil && e.Gone() {
			s.gone[ref] = e // records came in after the spec had gone
		}
	}
	for _, e := range d.Removed {
		s.gone[e.Ref] = e
	}
}

// news is a decision that Record is still to be told of: nothing waits for that, but what is written does.
type news struct{ was, is *state.Entry }

func (s *session) tellNews() {
	var events []controllers.Event
	for _, n := range s.news {
		events = append(events, controllers.Events(n.was, n.is)...)
	}
	s.news = nil
	if len(events) > 0 {
		s.Record(events)
	}
}

func set[V any](m map[schemas.Ref]V, ref schemas.Ref, v V, keep bool) {
	if keep {
		m[ref] = v
	} else {
		delete(m, ref)
	}
}

// claimable lists what this process may start.
func (s *session) claimable() []controllers.Effect {
	if s.stopping || s.Store.Orphaned() {
		return nil // what a killed process left running is ended before anything may start under the same key
	}
	return controllers.Admit(s.tree, s.split(s.wanted()), s.Only, s.id(), s.CPUs, s.ahead())
}

// claim puts on record what this process is about to start, starts it, and decides once more, now that it is claimed. The
// record is synced while the performer prepares. What is written of the decision is written while it runs: the journal has it.
func (s *session) claim(ctx context.Context, claims []controllers.Effect) error {
	if len(claims) == 0 {
		return nil
	}
	if s.journal == nil {
		journal, err := s.Store.Journal()
		if err != nil {
			return err
		}
		s.journal = journal
	}
	runs := make([]schemas.Run, len(claims))
	for i, e := range claims {
		runs[i] = e.Claim()
		runs[i].Again = e.Task.Again
	}
	if err := s.journal.Claim(runs); err != nil {
		return err
	}
	for _, e := range claims {
		s.mine[e.Key], s.worked[e.Owner] = e, true
	}
	s.started = true
	s.perform(claims)
	if err := s.journal.Sync(); err != nil {
		return err
	}
	s.tellNews()
	if err := s.refresh(ctx, []string{}); err != nil {
		return err
	}
	s.decide()
	return nil
}

// wanted lists all effects that the decisions want and that can be had, in a fixed order.
func (s *session) wanted() []*controllers.Effect {
	var all []*controllers.Effect
	for _, ref := range sortedRefs(s.effects) {
		effects := s.effects[ref]
		for i := range effects {
			e := &effects[i]
			if s.held[e.Key] == "" && !s.onBarredLedger(e.Owner, e.Node) {
				all = append(all, e)
			}
		}
	}
	return all
}

// perform starts what was claimed, as far as other processes leave room.
func (s *session) perform(claimed []controllers.Effect) {
	usage := map[string]int{}
	for ref, effects := range s.effects {
		elsewhere := s.elsewhere(ref)
		for _, e := range effects {
			if elsewhere[e.Key] {
				for _, g := range e.Groups {
					usage[g.Name]++
				}
			}
		}
	}
	s.Perform.SetForeign(usage)
	for _, e := range claimed {
		s.Perform.Submit(e)
	}
}

// cancel ends what runs and is no longer wanted.
func (s *session) cancel() {
	wanted := map[string]bool{}
	for _, effects := range s.effects {
		for i := range effects {
			wanted[effects[i].Key] = true
		}
	}
	for key := range s.mine {
		if !wanted[key] {
			s.Perform.Cancel(key, "it is no longer wanted")
		}
	}
}

// elsewhere returns the keys that other processes have claimed.
func (s *session) elsewhere(ref schemas.Ref) map[string]bool {
	e := s.tree.Entry(ref)
	if e == nil {
		return nil
	}
	var keys map[string]bool
	for _, c := range e.Claims {
		if c.Process != s.id() {
			if keys == nil {
				keys = map[string]bool{}
			}
			keys[c.Key] = true
		}
	}
	return keys
}

func sortedRefs[V any](m map[schemas.Ref]V) []schemas.Ref {
	refs := make([]schemas.Ref, 0, len(m))
	for r := range m {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, schemas.Ref.Compare)
	return refs
}
