package loop

import (
	"context"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// distrust marks the new actions and preferences of people that a program may have written which nothing confines: those that appeared while its run is marked, and
// that neither reconcile wrote for a person nor a signature or a comment proves. The marks are in the statuses before anything is decided.
func (s *run) distrust(ctx context.Context) error {
	open, err := s.loop.Store.Unconfined()
	if err != nil || len(open) == 0 {
		return err
	}
	var marked []*state.Entry
	for _, e := range slices.Concat(s.tree.Active(schemas.ActionKind.Name), s.tree.Active(schemas.PreferenceKind.Name)) {
		if !ofPeople(e) || decided(e) {
			continue
		}
		trusted, err := s.trusted(ctx, e)
		if err != nil {
			return err
		}
		if !trusted {
			marked = append(marked, marking(e, open[0]))
			s.touch(e.Ref)
		}
	}
	if len(marked) > 0 {
		s.tree = s.tree.With(marked...)
	}
	return s.warnOfReplies(ctx, open[0])
}

// warnOfReplies warns of new replies in the name of people that a program may have written which nothing confines. They count all the same:
// of a reply that git brought, or that a person wrote as a file, no more is known.
func (s *run) warnOfReplies(ctx context.Context, key string) error {
	index := clarifications.NewIndex(s.tree)
	for _, e := range s.tree.Active(schemas.ReplyKind.Name) {
		spec := state.SpecOf[*schemas.ReplySpec](e)
		if spec == nil || s.warnedReplies[e.Name] || index.Took(e.Name) ||
			s.tree.Exists(schemas.AgentKind.Ref(spec.From)) && !agents.IsPerson(s.tree, spec.From) {
			continue
		}
		trusted, err := s.trusted(ctx, e)
		if err != nil {
			return err
		}
		if !trusted {
			s.warn(fmt.Sprintf("%s, %s of %s, appeared while the run %s worked without a sandbox, and nothing shows that a person wrote it; if nobody did, "+
				"look at what became of it: reconcile clarify show %s", e.Object.Path, spec.Type, spec.From, key, spec.Clarification))
		}
		if s.warnedReplies == nil {
			s.warnedReplies = map[string]bool{}
		}
		s.warnedReplies[e.Name] = true
	}
	return nil
}

// ofPeople reports whether an object is valid, and a decision or a preference of a person by what it says.
func ofPeople(e *state.Entry) bool {
	if spec := state.SpecOf[*schemas.ActionSpec](e); spec != nil {
		return schemas.OfPeople(spec.Verb)
	}
	return state.SpecOf[*schemas.PreferenceSpec](e).OfPeople()
}

// decided reports whether an action or a preference was decided before, as its file is now.
func decided(e *state.Entry) bool {
	return e.HasStatus() && (e.Brief().Phase == schemas.ActionApplied || e.Brief().ObservedDigest == e.Object.Digest)
}

func (s *run) trusted(ctx context.Context, e *state.Entry) (bool, error) {
	vouched, err := s.loop.Store.Vouched(e.Object.Path)
	if err != nil {
		return false, fmt.Errorf("find out who wrote %s: %w", e.Object.Path, err)
	}
	if vouched || s.loop.Identify == nil {
		return vouched, nil
	}
	id, err := s.loop.Identify(ctx, s.tree.Settings(), e.Object)
	if err != nil {
		return false, fmt.Errorf("find out who wrote %s: %w", e.Object.Path, err)
	}
	return id.Proof != "", nil
}

// marking is the entry of an action or a preference with the run during which it appeared.
func marking(e *state.Entry, key string) *state.Entry {
	common := settle.Common(e.Status())
	common.ObservedDigest = e.Object.Digest
	marked := *e
	if e.Kind == schemas.PreferenceKind.Name {
		marked.SetStatus(&schemas.PreferenceStatus{Common: common, During: key})
		return &marked
	}
	common.Phase = schemas.ActionPending
	marked.SetStatus(&schemas.ActionStatus{Common: common, During: key})
	return &marked
}

// seenWhole takes note that all files were looked at after the runs with these keys were marked: those that have ended write no more.
func (s *run) seenWhole(open []string) {
	claimed := map[string]bool{}
	for key := range s.mine {
		claimed[key] = true
	}
	for _, kind := range s.tree.Kinds() {
		for _, e := range s.tree.Active(kind) {
			for i := range e.Claims {
				claimed[e.Claims[i].Key] = true
			}
		}
	}
	s.overUnconfined = slices.DeleteFunc(open, func(key string) bool { return claimed[key] })
}

// forgetUnconfined removes the marks of the runs all of whose files were looked at, once what follows from them is written.
func (s *run) forgetUnconfined() error {
	over := s.overUnconfined
	s.overUnconfined = nil
	return s.loop.Store.ForgetUnconfined(over)
}
