package dags

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/cron"
	"reconcile.dev/reconcile/state"
)

// A DAG with a schedule runs once for each of its times. When a time has come, and no run is under way, the status says so; from it
// follows an Action that retries all nodes (ScheduledAction), whose name is made from the DAG and the time: all processes and clones
// derive the same one, and it is applied once. Between runs the nodes wait.

// mostLate is how late a run may start at a time that is not to be made up for. Runs on request, as those of CI, are never on time.
const mostLate = time.Hour

// scheduledBy is the author of the Action for a scheduled run.
const scheduledBy = "schedule"

// ScheduledAction returns the Action for the time of a DAG's schedule that has come and has no run yet; ok is false without one.
func ScheduledAction(dag *state.Entry) (name string, spec *schemas.ActionSpec, ok bool) {
	st, _ := dag.Status().(*schemas.DAGStatus)
	if st == nil || dag.Object == nil || st.Schedule == nil || st.Schedule.Due.IsZero() {
		return "", nil, false
	}
	due := st.Schedule.Due
	return scheduledName(dag.Name, due), &schemas.ActionSpec{Target: dag.Ref.String(), Verb: schemas.VerbRetry, All: true, By: scheduledBy,
		Reason: "its schedule: " + due.Format(time.RFC3339), At: due}, true
}

// scheduledName is the name of the Action for a time of a DAG's schedule.
func scheduledName(dag string, due schemas.Time) string {
	const longest = 63
	name := "run-" + dag + "-" + strings.ToLower(due.Format("20060102T150405Z"))
	if len(name) > longest {
		name = clarifications.NameFor("run-"+dag, name)
	}
	return name
}

// openSchedule takes the schedule up where the status left it.
func (f *fold) openSchedule() {
	if len(f.p.Spec.Schedule) == 0 {
		return
	}
	digest := scheduleDigest(f.p.Spec.Schedule)
	t := schemas.ScheduleStatus{Of: digest, Since: schemas.NewTime(f.Now), Waits: f.old.StartedAt.IsZero() || over(f.old)}
	if old := f.old.Schedule; old != nil {
		if t.Waits = old.Waits; old.Of == digest {
			t = *old
		}
	}
	f.timed = &t
	for _, a := range f.applied { // also where the status is behind them
		f.countScheduled(a.Name, a.At)
	}
}

func scheduleDigest(s schemas.Schedules) string {
	b, _ := json.Marshal([]schemas.Schedule(s)) // texts always marshal
	const digits = len("sha256:") + 16
	return keys.Digest(b)[:digits]
}

// beginScheduled notes that an action begins a run. One that the schedule asked for represents its time, and for those before it.
func (f *fold) beginScheduled(name string, a *schemas.ActionSpec) {
	if f.timed == nil || a.Verb != schemas.VerbRetry {
		return
	}
	if a.All && f.timed.Waits && name != scheduledName(f.Name, a.At) && !slices.ContainsFunc(f.p.Spec.Schedule, makesUpForAll) {
		f.timed.Since = schemas.Later(f.timed.Since, schemas.NewTime(f.Now)) // a run out of schedule makes up for what was missed
	}
	f.timed.Waits = false
	f.countScheduled(name, a.At)
}

func makesUpForAll(s schemas.Schedule) bool { return s.Missed == schemas.MissedAll }

// RunsNow reports whether a DAG waits for a time of its schedule, so that the caller must request a run of it.
func RunsNow(dag *state.Entry) bool {
	spec := state.SpecOf[*schemas.DAGSpec](dag)
	if spec == nil || len(spec.Schedule) == 0 {
		return false
	}
	st, ok := dag.Status().(*schemas.DAGStatus)
	return !ok || st.Schedule == nil || st.Schedule.Waits && st.Schedule.Due.IsZero()
}

// countScheduled counts the time of an action as one that has its run, if the schedule asked for the action.
func (f *fold) countScheduled(name string, at schemas.Time) {
	if at.IsZero() || at.After(f.Now) || at.Before(f.timed.Since.Time) || name != scheduledName(f.Name, at) {
		return
	}
	f.timed.Since = at
	if !f.timed.Due.After(at.Time) {
		f.timed.Due = schemas.Time{}
	}
}

// waitsForTime reports whether node i waits for the schedule; if so, it has set the state.
func (f *fold) waitsForTime(i int32) bool {
	if f.timed == nil || !f.timed.Waits {
		return false
	}
	f.set(i, schemas.NodePending, settle.ReasonScheduled, "waits for the next time of the schedule")
	return true
}

// closeSchedule finds the time that is due, unless a run is under way or nothing may start, and the next one.
func (f *fold) closeSchedule(idle bool) {
	t := f.timed
	if idle {
		t.Waits = true
	}
	if !t.Waits {
		t.Due = schemas.Time{}
	}
	after := f.Now
	if t.Since.After(after) {
		after = t.Since.Time // a clock was set back
	}
	var due, next time.Time
	for _, s := range f.p.Spec.Schedule {
		times, err := cron.Parse(s.Cron, s.TimeZone)
		if err != nil {
			continue // validated; the time zone is not on this machine
		}
		if t.Waits && f.gate.Open && t.Due.IsZero() {
			due = spans.Sooner(due, dueOf(times, s.Missed, t.Since.Time, f.Now))
		}
		next = spans.Sooner(next, times.Next(after))
	}
	if !due.IsZero() {
		t.Due = schemas.NewTime(due)
	}
	t.Next = schemas.NewTime(next)
}

// dueOf is the time after since that is to run now; zero without one.
func dueOf(s *cron.Schedule, missed string, since, now time.Time) time.Time {
	if missed == schemas.MissedAll {
		if all := s.Between(since, now, schemas.MostMissed); len(all) > 0 {
			return all[0]
		}
		return time.Time{}
	}
	last := s.Between(since, now, 1)
	if len(last) == 0 {
		return time.Time{}
	}
	if late := now.Sub(last[0]); missed == schemas.MissedSkip && late > min(mostLate, s.Next(last[0]).Sub(last[0])/2) {
		return time.Time{}
	}
	return last[0]
}

// wakeForSchedule has the DAG decided again at the next time.
func (f *fold) wakeForSchedule(out *settle.Out) {
	if f.timed == nil {
		return
	}
	const again = time.Minute // the Action follows from this decision, unless a file is in its way
	if out.Due = !f.timed.Due.IsZero(); out.Due {
		out.Again = spans.Sooner(out.Again, f.Now.Add(again))
	}
	out.Again = spans.Sooner(out.Again, f.timed.Next.Time)
}

// nextTime says when the schedule runs next; "" without one.
func nextTime(s *schemas.DAGStatus) string {
	if s.Schedule == nil || s.Schedule.Next.IsZero() {
		return ""
	}
	return s.Schedule.Next.Format(time.RFC3339)
}
