package loop

import (
	"context"
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// pollIssues is how often a watcher tries again to read an issue.
const pollIssues = time.Minute

// startReading is about the starts of workflows whose issues have to be read from GitHub first.
type startReading struct {
	waiting map[schemas.Ref]bool         // actions
	read    map[schemas.Ref]derive.Issue // whose sessions are not written yet
	tried   bool
	again   time.Time // of a watcher; zero: at once
}

// noteUnread keeps track of the actions that wait for the text of their issue.
func (s *run) noteUnread(ref schemas.Ref) {
	if ref.Kind != schemas.ActionKind.Name || s.loop.ReadIssue == nil {
		return
	}
	e := s.tree.Entry(ref)
	waits := e != nil && e.Object != nil && e.HasStatus()
	if waits {
		c := e.Status().Base().Condition(schemas.Ready)
		waits = c != nil && c.Reason == settle.ReasonWaitsForIssue
	}
	if waits && !s.starts.waiting[ref] {
		s.starts.tried, s.starts.again = false, time.Time{}
	}
	set(s.starts.waiting, ref, true, waits)
}

// readIssues reads the issues that starts wait for, and reports whether it read any: then another turn makes their runs. A one-shot run
// tries once, a watcher again and again. No lock is held meanwhile.
func (s *run) readIssues(ctx context.Context) (some bool) {
	r := &s.starts
	if len(r.waiting) == 0 || r.tried && (!s.watching || s.loop.Now().Before(r.again)) {
		return false
	}
	r.tried, r.again = true, s.loop.Now().Add(pollIssues)
	issues := map[int]*derive.Issue{} // nil: it cannot be read
	for done, ref := range sortedRefs(r.waiting) {
		s.progress("read issues", done, len(r.waiting))
		spec := state.SpecOf[*schemas.ActionSpec](s.tree.Entry(ref))
		if spec == nil {
			continue
		}
		issue, tried := issues[spec.Issue]
		if !tried {
			read, err := s.loop.ReadIssue(ctx, s.tree.Settings(), spec.Issue)
			if issue = &read; err != nil {
				issue = nil
				s.warn(fmt.Sprintf("%s waits: issue %d cannot be read: %v", ref, spec.Issue, err))
			}
			issues[spec.Issue] = issue
		}
		if issue != nil {
			r.read[ref], some = *issue, true
		}
	}
	return some
}

// readStarts lists the specs of the runs whose issues were read.
func (s *run) readStarts() []derive.Spec {
	if len(s.starts.read) == 0 {
		return nil
	}
	defer clear(s.starts.read)
	return derive.Starts(s.tree, s.starts.read)
}
