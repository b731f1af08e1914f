package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// renumberLedgers gives records of other programs that share a number distinct numbers, before specs are derived from
// them.
func (s *run) renumberLedgers(ctx context.Context) error {
	for _, l := range s.tree.Ledgers() {
		if !l.Doubled || s.busyLedgers[l.Issue] != nil {
			continue
		}
		ours := ledgers.LedgersOf(s.tree, []schemas.Ref{l.Ref()})[l.Issue]
		renumbered := false
		err := s.loop.Store.Fold(ctx, l.Path, func(old []byte) ([]byte, error) {
			next, err := clarify.Renumber(old, l.Issue, ours)
			renumbered = err == nil && !bytes.Equal(old, next)
			return next, err
		})
		switch {
		case errors.Is(err, state.ErrBusy):
			s.markBusy(l.Issue, err)
		case errors.Is(err, clarify.ErrNoLedger): // another program was writing it
		case err != nil:
			return err
		case renumbered:
			s.changedAt = s.loop.Now()
			s.warn(fmt.Sprintf("%s: several records had one number; all but one have the next ones now", l.Path))
			if err := s.refresh(ctx, []string{l.Path}); err != nil {
				return err
			}
			s.touch(l.Ref())
		}
	}
	return nil
}

// foldTries bounds how often a turn decides again because another program wrote into a ledger meanwhile.
const foldTries = 10

// foldLedgers writes the statuses of the requests into the ledgers before anything depends on them: a number is
// reserved once it is in the ledger. Records that another program wrote meanwhile are decided first.
func (s *run) foldLedgers(ctx context.Context) error {
	if !s.ledgersSwept {
		s.ledgersSwept = true
		if err := s.loop.Store.SweepLedgers(ctx); err != nil {
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
				s.markBusy(issue, fmt.Errorf("another program keeps changing %s; it was looked at %d times: %w",
					s.loop.Store.LedgerPath(issue), foldTries, state.ErrBusy))
			}
			behind = nil
		}
		if len(behind) == 0 {
			s.reportRequests()
			return nil
		}
		paths := make([]string, len(behind))
		for i, issue := range behind {
			paths[i] = s.loop.Store.LedgerPath(issue)
		}
		if err := s.refresh(ctx, paths); err != nil {
			return err
		}
		s.decide()
	}
}

// markBusy skips a ledger whose lock is not available. Nothing that depends on it is written, reported or started
// before the ledger is tried again; everything else continues.
func (s *run) markBusy(issue int, why error) {
	if s.busyLedgers == nil {
		s.busyLedgers = map[int]error{}
	}
	s.busyLedgers[issue], s.ledgerTriedAt = why, s.loop.Now()
	if s.watching {
		s.warn(busyLedgerError(why).Error())
	}
}

func busyLedgerError(why error) error {
	return fmt.Errorf("%w; what rests on this ledger is left for the next run", why)
}

// busyLedgersError names the busy ledgers; nil without any.
func (s *run) busyLedgersError() (err error) {
	for _, issue := range slices.Sorted(maps.Keys(s.busyLedgers)) {
		err = errors.Join(err, busyLedgerError(s.busyLedgers[issue]))
	}
	return err
}

// onBusyLedger reports whether an object, or a node of it, depends on a busy ledger.
func (s *run) onBusyLedger(ref schemas.Ref, node string) bool {
	return len(s.busyLedgers) > 0 && slices.ContainsFunc(ledgers.Under(s.tree, ref, node), func(issue int) bool {
		return s.busyLedgers[issue] != nil
	})
}

// keepUnreported keeps the state of a request before a decision. The transition is reported once it is in the ledger;
// until then the request may get another number.
func (s *run) keepUnreported(ref schemas.Ref) {
	if _, held := s.unreported[ref]; held {
		return
	}
	if s.unreported == nil {
		s.unreported = map[schemas.Ref]*state.Entry{}
	}
	s.unreported[ref] = s.tree.Entry(ref)
}

// reportRequests reports the transitions of the requests that were decided on.
func (s *run) reportRequests() {
	var events []settle.Event
	untold := s.unreported
	s.unreported = nil
	for _, ref := range sortedRefs(untold) {
		if s.onBusyLedger(ref, "") {
			if s.unreported == nil {
				s.unreported = map[schemas.Ref]*state.Entry{}
			}
			s.unreported[ref] = untold[ref]
			continue
		}
		events = append(events, settle.Events(s.tree, untold[ref], s.tree.Entry(ref))...)
	}
	s.recordEvents(events)
}

// foldOnce folds every ledger that lacks a record and is not busy. It returns the issues of ledgers with records that
// were not decided on yet.
func (s *run) foldOnce(ctx context.Context) (behind []int, err error) {
	records := ledgers.LedgersOf(s.tree, s.requestsToFold())
	for i, issue := range slices.Sorted(maps.Keys(records)) {
		s.progress("fold ledgers", i, len(records))
		if s.busyLedgers[issue] != nil || ledgers.IsFolded(s.tree.Ledger(issue), records[issue]) {
			continue
		}
		path := s.loop.Store.LedgerPath(issue)
		s.warnUnknownStatuses(path, s.tree.Ledger(issue), records[issue])
		switch err := s.foldLedger(ctx, path, issue, records[issue]); {
		case errors.Is(err, clarify.ErrStale):
			behind = append(behind, issue)
		case errors.Is(err, state.ErrBusy):
			s.markBusy(issue, err)
		case err != nil:
			return nil, err
		}
	}
	if len(behind) == 0 {
		s.requests = s.requestsOnBusyLedgers()
	}
	return behind, nil
}

// requestsOnBusyLedgers are the requests whose ledgers are not folded yet.
func (s *run) requestsOnBusyLedgers() map[schemas.Ref]bool {
	out := map[schemas.Ref]bool{}
	if len(s.busyLedgers) == 0 {
		return out
	}
	for _, ref := range s.requestsToFold() {
		if s.onBusyLedger(ref, "") {
			out[ref] = true
		}
	}
	return out
}

// warnUnknownStatuses warns of records of ours with an unknown status, which the fold is about to overwrite.
func (s *run) warnUnknownStatuses(path string, ledger *state.Ledger, ours []schemas.Clarification) {
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

func (s *run) foldLedger(ctx context.Context, path string, issue int, ours []schemas.Clarification) error {
	fold := func(old []byte) ([]byte, error) { return clarify.Fold(old, issue, ours) }
	err := s.loop.Store.Fold(ctx, path, fold)
	if errors.Is(err, clarify.ErrNoLedger) {
		s.warn(fmt.Sprintf("%v; it was moved to .reconcile/damaged, and is written anew", err))
		damaged := func(data []byte) bool {
			_, err := fold(data)
			return errors.Is(err, clarify.ErrNoLedger)
		}
		salvage := func(data []byte) []byte { return clarify.Salvage(data, issue) }
		if err = s.loop.Store.SetAside(ctx, path, damaged, salvage); err == nil {
			err = s.loop.Store.Fold(ctx, path, fold)
		}
	}
	if err == nil {
		s.changedAt = s.loop.Now()
	}
	return err
}

// requestsToFold are the requests and ledgers that changed since the last fold. Initially these are all requests, since
// another program may have overwritten a ledger before this run started.
func (s *run) requestsToFold() []schemas.Ref {
	if s.requests != nil {
		return sortedRefs(s.requests)
	}
	var all []schemas.Ref
	for _, e := range s.tree.Entries(schemas.ClarificationRequestKind.Name) {
		all = append(all, e.Ref)
	}
	return all
}

// resolveConflict merges, in a turn of the loop, a ledger file with git conflict markers. It reports whether p is about such a file and
// the merge succeeded; otherwise the file is treated like any other damaged file.
func (s *run) resolveConflict(ctx context.Context, p schemas.Problem) bool {
	issue, ok := state.LedgerIssue(p.Ref)
	return ok && s.loop.Store.Fold(ctx, p.Path, func(old []byte) ([]byte, error) { return clarify.Unite(old, issue) }) == nil
}

// moveDamaged moves damaged files under state/ away, so that their content is decided again. Ledgers with git conflict
// markers are merged; of other ledgers, the intact records are kept.
func (s *run) moveDamaged(ctx context.Context) error {
	var events []settle.Event
	tell := func(p schemas.Problem, how string) {
		text := fmt.Sprintf("%s: %s; %s", p.Place, p.Message, how)
		if len(events) < readiness.MostRows {
			s.warn(text)
		}
		events = append(events, settle.Event{Ref: p.Ref, Reason: "DamagedState", Message: text, Warning: true})
	}
	rest := map[string]schemas.Problem{}
	found := false
	for _, p := range s.tree.Problems() {
		if p.Code != state.DamagedState {
			continue
		}
		if found = true; s.resolveConflict(ctx, p) {
			tell(p, "both sides were united")
		} else {
			rest[p.Path] = p
		}
	}
	if !found {
		return nil
	}
	moved, err := s.loop.Store.MoveAside(ctx, clarify.Salvage)
	for _, path := range moved {
		if p, ok := rest[path]; ok {
			tell(p, "it was moved to .reconcile/damaged, and is decided again")
			delete(rest, path)
		}
	}
	if more := len(events) - readiness.MostRows; more > 0 {
		s.warn(fmt.Sprintf("… and %d more damaged files; \"reconcile events\" lists them", more))
	}
	s.recordEvents(events)
	if err != nil {
		return err
	}
	return s.refresh(ctx, append([]string{}, slices.Sorted(maps.Keys(rest))...)) // the remaining files were being written
}
