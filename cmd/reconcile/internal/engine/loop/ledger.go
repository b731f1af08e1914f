package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

// derive writes the specs that records call for and that do not exist yet: the question of a node's agent, a question
// that another program put into a ledger, what an agent learned. What comes in is a file first, and takes effect because
// it is there. At the end of a run nothing new is asked.
func (s *session) derive(ctx context.Context) error {
	var changes []state.Change
	var paths []string
	for _, spec := range s.decider.Derive(s.tree) {
		if o, ok := spec.Spec.(*schemas.ObservationSpec); ok && s.Memory != nil {
			s.Memory.Anchor(o)
		} else if s.stopping {
			continue
		}
		data, err := document.Spec(spec.Ref, spec.Spec)
		if err != nil {
			return fmt.Errorf("%s: %w", spec.Ref, err)
		}
		if _, err := s.Store.Root().Lstat(spec.Path); !errors.Is(err, fs.ErrNotExist) {
			s.warn(fmt.Sprintf("%s is to be written, and %s is in the way: move that file", spec.Ref, spec.Path))
			continue
		}
		changes = append(changes, state.Change{Path: spec.Path, Data: data})
		paths = append(paths, spec.Path)
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.write(ctx, changes, s.Now()); err != nil {
		return err
	}
	if err := s.refresh(ctx, paths); err != nil {
		return err
	}
	s.decide()
	return nil
}

// renumber gives each record of other programs that has the number of another one a number of its own, before anything is
// made of it.
func (s *session) renumber(ctx context.Context) error {
	for _, l := range s.tree.Ledgers() {
		if !l.Doubled || s.barredLedgers[l.Issue] != nil {
			continue
		}
		ours := controllers.LedgersOf(s.tree, []schemas.Ref{l.Ref()})[l.Issue]
		renumbered := false
		err := s.Store.Fold(ctx, l.Path, func(old []byte) ([]byte, error) {
			next, err := clarify.Renumber(old, l.Issue, ours)
			renumbered = err == nil && !bytes.Equal(old, next)
			return next, err
		})
		switch {
		case errors.Is(err, state.ErrBusy):
			s.bar(l.Issue, err)
		case errors.Is(err, clarify.ErrNoLedger): // another program was writing it
		case err != nil:
			return err
		case renumbered:
			s.changedAt = s.Now()
			s.warn(fmt.Sprintf("%s: several records had one number; all but one have the next ones now", l.Path))
			if err := s.refresh(ctx, []string{l.Path}); err != nil {
				return err
			}
			s.touch(l.Ref())
		}
	}
	return nil
}

// foldTries bounds how often a turn decides again because another program was writing into a ledger meanwhile.
const foldTries = 10

// foldLedgers brings the ledgers up to date with the statuses of the requests, before anything rests on these: a number
// is ours once it is in the ledger. What another program has written meanwhile is decided on first.
func (s *session) foldLedgers(ctx context.Context) error {
	if !s.swept {
		s.swept = true
		if err := s.Store.SweepLedgers(ctx); err != nil {
			return err
		}
	}
	for tries := 1; ; tries++ {
		behind, err := s.foldOnce(ctx)
		if err != nil {
			return err
		}
		if tries == foldTries {
			for _, issue := range behind {
				s.bar(issue, fmt.Errorf("another program keeps changing %s; it was looked at %d times: %w",
					s.Store.LedgerPath(issue), foldTries, state.ErrBusy))
			}
			behind = nil
		}
		if len(behind) == 0 {
			s.announce()
			return nil
		}
		paths := make([]string, len(behind))
		for i, issue := range behind {
			paths[i] = s.Store.LedgerPath(issue)
		}
		if err := s.refresh(ctx, paths); err != nil {
			return err
		}
		s.decide()
	}
}

// bar leaves a ledger alone that could not be had: what rests on it is not written, told or started before the ledger is
// tried again, and everything else goes on.
func (s *session) bar(issue int, why error) {
	if s.barredLedgers == nil {
		s.barredLedgers = map[int]error{}
	}
	s.barredLedgers[issue], s.barredAt = why, s.Now()
	if s.watching {
		s.warn(ledgerBarred(why).Error())
	}
}

func ledgerBarred(why error) error {
	return fmt.Errorf("%w; what rests on this ledger is left for the next run", why)
}

// ledgerError names the ledgers that could not be had; nil if all could.
func (s *session) ledgerError() (err error) {
	for _, issue := range slices.Sorted(maps.Keys(s.barredLedgers)) {
		err = errors.Join(err, ledgerBarred(s.barredLedgers[issue]))
	}
	return err
}

// onBarredLedger reports whether an object, or a node of it, rests on a ledger that could not be had.
func (s *session) onBarredLedger(ref schemas.Ref, node string) bool {
	return len(s.barredLedgers) > 0 && slices.ContainsFunc(controllers.LedgersUnder(s.tree, ref, node), func(issue int) bool {
		return s.barredLedgers[issue] != nil
	})
}

// hold remembers how a request stood before it was decided on: what has become of it is told when the ledger has it.
// Until then it may get another number.
func (s *session) hold(ref schemas.Ref) {
	if _, held := s.untold[ref]; held {
		return
	}
	if s.untold == nil {
		s.untold = map[schemas.Ref]*state.Entry{}
	}
	s.untold[ref] = s.tree.Entry(ref)
}

// announce tells what has become of the requests that were decided on.
func (s *session) announce() {
	var events []controllers.Event
	untold := s.untold
	s.untold = nil
	for _, ref := range sortedRefs(untold) {
		if s.onBarredLedger(ref, "") {
			if s.untold == nil {
				s.untold = map[schemas.Ref]*state.Entry{}
			}
			s.untold[ref] = untold[ref]
			continue
		}
		events = append(events, controllers.Events(untold[ref], s.tree.Entry(ref))...)
	}
	s.tell(events)
}

// foldOnce folds every ledger that lacks something and can be had, and returns the issues of those that hold what was not
// decided on.
func (s *session) foldOnce(ctx context.Context) (behind []int, err error) {
	records := controllers.LedgersOf(s.tree, s.unfolded())
	for i, issue := range slices.Sorted(maps.Keys(records)) {
		s.doing("fold ledgers", i, len(records))
		if s.barredLedgers[issue] != nil || holds(s.tree.Ledger(issue), records[issue]) {
			continue
		}
		path := s.Store.LedgerPath(issue)
		s.warnOfStates(path, s.tree.Ledger(issue), records[issue])
		switch err := s.foldLedger(ctx, path, issue, records[issue]); {
		case errors.Is(err, clarify.ErrStale):
			behind = append(behind, issue)
		case errors.Is(err, state.ErrBusy):
			s.bar(issue, err)
		case err != nil:
			return nil, err
		}
	}
	if len(behind) == 0 {
		s.requests = s.onBarredLedgers()
	}
	return behind, nil
}

// onBarredLedgers are the requests whose ledgers are still to be folded.
func (s *session) onBarredLedgers() map[schemas.Ref]bool {
	out := map[schemas.Ref]bool{}
	if len(s.barredLedgers) == 0 {
		return out
	}
	for _, ref := range s.unfolded() {
		if s.onBarredLedger(ref, "") {
			out[ref] = true
		}
	}
	return out
}

// warnOfStates tells which records of ours have a status that nobody knows: the fold is about to write over it.
func (s *session) warnOfStates(path string, ledger *state.Ledger, ours []schemas.Clarification) {
	if ledger == nil {
		return
	}
	for _, c := range ledger.Records() {
		mine := func(o schemas.Clarification) bool { return o.ID == c.ID && o.Request == c.Request }
		if i := slices.IndexFunc(ours, mine); i >= 0 && !clarify.KnownStatus(c.Status) {
			s.warn(fmt.Sprintf("%s: %s has the status %q, which does not exist; it is set back to %s", path, c.ID, c.Status,
				ours[i].Status))
		}
	}
}

func (s *session) foldLedger(ctx context.Context, path string, issue int, ours []schemas.Clarification) error {
	fold := func(old []byte) ([]byte, error) { return clarify.Fold(old, issue, ours) }
	err := s.Store.Fold(ctx, path, fold)
	if errors.Is(err, clarify.ErrNoLedger) {
		s.warn(fmt.Sprintf("%v; it was moved to .reconcile/damaged, and is written anew", err))
		damaged := func(data []byte) bool {
			_, err := fold(data)
			return errors.Is(err, clarify.ErrNoLedger)
		}
		salvage := func(data []byte) []byte { return clarify.Salvage(data, issue) }
		if err = s.Store.SetAside(ctx, path, damaged, salvage); err == nil {
			err = s.Store.Fold(ctx, path, fold)
		}
	}
	if err == nil {
		s.changedAt = s.Now()
	}
	return err
}

// holds reports whether a ledger has each of our records as it should be.
func holds(ledger *state.Ledger, ours []schemas.Clarification) bool {
	if ledger == nil {
		return len(ours) == 0
	}
	have := ledger.Records()
	byID := make(map[string]*schemas.Clarification, len(have))
	for i := range have {
		byID[have[i].ID] = &have[i]
	}
	return !slices.ContainsFunc(ours, func(c schemas.Clarification) bool {
		old := byID[c.ID]
		return old == nil || !reflect.DeepEqual(*old, c)
	})
}

// unfolded are the requests and ledgers that changed since the last fold: all requests at the beginning, since another
// program may have written over a ledger while nobody looked.
func (s *session) unfolded() []schemas.Ref {
	if s.requests != nil {
		return sortedRefs(s.requests)
	}
	var all []schemas.Ref
	for _, e := range s.tree.Entries(schemas.ClarificationRequestKind.Name) {
		all = append(all, e.Ref)
	}
	return all
}

// united makes one ledger of a file with the conflict markers of a git merge. It reports whether p is about such a file,
// and it could; else the file is one like others that cannot be used.
func (s *session) united(ctx context.Context, p schemas.Problem) bool {
	issue, ok := state.LedgerIssue(p.Ref)
	return ok && s.Store.Fold(ctx, p.Path, func(old []byte) ([]byte, error) { return clarify.Unite(old, issue) }) == nil
}
