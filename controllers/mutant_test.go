package controllers

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that the tests of this package must notice.
var faults = []mutants.Mutant{
	{"a success under another key counts", "dags/node.go",
		"if runs[0].NodeKey == f.b.Keys[i] {", "if runs[0].NodeKey != \"\" {"},
	{"a cancelled run counts as success", "dags/node.go",
		"case run.Outcome == schemas.OutcomeSucceeded:",
		"case run.Outcome == schemas.OutcomeSucceeded, run.Outcome == schemas.OutcomeCancelled:"},
	{"a failed need lets a node start", "readiness/readiness.go",
		"return s.State == schemas.NodeSucceeded ||", "return s.State == schemas.NodeSucceeded || s.State == schemas.NodeFailed ||"},
	{"pruned successes are forgotten", "dags/node.go",
		"if r.won = true; r.before == 0 {", "if r.before == 0 {"},
	{"the new run starts beside the old one", "dags/node.go", "case r.other:", "case false:"},
	{"a key ignores its needs", "dags/plan/onrecord.go", "o.Text(p.Spec.Nodes[to].Name, of[to])", "_ = to"},
	{"a question uses up an attempt", "dags/node.go", "case pauses:\n\t\tr.asked++", "case false:\n\t\tr.asked++"},
	{"a node goes on while its question is open", "dags/ask.go",
		"if !r.pauses && r.last != nil {", "if r.last != nil {"},
	{"an escalated question lets its node go on", "dags/ask.go", "return settle.ReasonEscalated, fmt.Sprintf(\"Clarification %s escalated, waits for a human\", st.ID)", "return \"\", \"\""},
	{"what may not be asked is waited for", "dags/ask.go",
		"clarifications.Of(f.World).ScopeOf(run.Agent).Check(clarifications.SpecOfRun(f.Entry, run, 0)) == nil", "true"},
	{"a refused question is asked again and again", "dags/ask.go", "case r.pauses && f.refusedAgain(i):", "case false:"},
	{"what nobody can answer is handed out", "work/ready.go", "case q.wrong != \"\":", "case false:"},
	{"a further round becomes a question of its own", "clarifications/task.go", "next = q\n", "_ = q\n"},
	{"the scope is not guarded", "clarifications/index.go",
		"if err := w.ScopeOf(spec.From).Check(spec); err != nil {", "if err := error(nil); err != nil {"},
	{"two questions get one number", "clarifications/number.go", "last[issue]+1), last)", "last[issue]+1), map[int]int{})"},
	{"an edited request takes effect", "clarifications/input.go",
		"if st.ID != \"\" && st.ObservedDigest != e.Object.Digest {", "if false {"},
	{"a reply counts for two requests", "clarifications/input.go", "by != \"\" && by != e.Name", "by == \"nobody\""},
	{"rings are not broken", "clarifications/decide.go",
		"if order := w.orders()[in.Name]; order != nil {", "if order := w.orders()[in.Name]; order != nil && false {"},
	{"a session that a broken file named is forgotten", "dags/affects.go", "e.Brief().StalledReason == settle.ReasonInvalidSpec && c.Note(\"all sessions\")", "false"},
	{"the victim of a ring is not looked at", "clarifications/row.go", "Before: addOrdered, ", ""},
	{"a node whose key moved keeps its question", "dags/row.go", "After: clarifications.AddMovedQuestions,\n",
		"After: func(*settle.Round) { _ = clarifications.AddMovedQuestions },\n"},
	{"a wait for people counts for the time limit", "dags/clock.go", "if f.b.Human[i] || spans.Empty(span) {", "if spans.Empty(span) {"},
	{"the time spent is forgotten", "dags/clock.go", "known = f.old.Active", "_ = f.old.Active"},
	{"what waits hides a failure", "dags/phase.go", "if n.failed > 0 { // which", "if false { // which"},
	{"what was not asked for starts", "admission/admit.go", "return a.selected(e.Owner, e.Node)", "return true"},
	{"sessions take no turns", "admission/lanes.go", "s.latest = max(s.following(), q.now)", "s.latest = q.now"},
	{"what is claimed ahead goes before who comes late", "admission/lanes.go", "if r.StartedAt.IsZero() {", "if false {"},
	{"work does not age", "admission/lanes.go", "if e.Ageing <= 0 ||", "if true ||"},
	{"sessions without work keep their places", "sessions/slot.go", "s.idle = r.sums != nil &&", "s.idle = false &&"},
	{"what is kept in git is fetched although nobody needs it", "dags/outputs.go", "ok && r.Cached {", "ok {"},
	{"what could not be restored is asked for again", "dags/outputs.go", "if !all || slices.Contains(missing.Lost, run.Key) {", "if !all {"},
	{"asked outputs are made again where nothing may run", "dags/outputs.go", "return f.gate.Open && (verb", "return true || (verb"},
	{"the time between runs counts", "dags/clock.go", "out = append(out, &entry)", "_ = append(out, &entry)"},
	{"a spec that is gone is not called for again", "derive/changes.go", "if went(was, is) {", "if went(was, is) && false {"},
	{"a question that an agent may ask by now is not asked", "derive/changes.go", "if digestOf(was) != digestOf(is) {", "if digestOf(was) != digestOf(is) && false {"},
	{"what could not be written is not called for again", "derive/changes.go", "due{refs: maps.Clone(c.again)}", "due{refs: maps.Collect(maps.All(map[schemas.Ref]bool{}))}"},
	{"ledgers that change are not looked at", "derive/changes.go", "d.refs[l.Ref()] = true", "_ = l"},
	{"another agent makes another task", "dags/plan/onrecord.go", "(made == b.tasks[i] || made == other)", "made == other"},
	{"what runs reserves nothing", "budgets/reserve.go", "- m.of(at.used) - m.of(at.held)", "- m.of(at.used)"},
	{"two that start at once reserve the same", "budgets/reserve.go", "n -= m.of(*held)", "_ = held"},
	{"a record counts twice", "budgets/sums.go", "s.of[scope].used.add(is.used, 1)", "s.of[scope].used.add(is.used, 2)"},
	{"nobody is told of a budget that is used up", "dags/row.go", "\tbudgets.Watch(r)\n", "\t_ = budgets.Watch\n"},
	{"a turn that was ended for its budget uses up an attempt", "dags/node.go", "case run.StoppedByBudget():", "case false:"},
	{"a round is not part of the key", "dags/plan/loops.go", "if b.rounds != nil && b.rounds[i] > 1 {", "if false {"},
	{"rounds have no bound", "dags/repeat.go", "case f.rounds[i] >= loop.Max:", "case false:"},
	{"the breaker never opens", "breaker/breaker.go", "if most == 0 || len(row) < most {", "if true {"},
	{"an unhealthy agent works", "dags/health.go", "if why, _ := f.World.Ailing(agent); why != \"\" {", "if why, _ := f.World.Ailing(agent); why == \"never\" {"},
	{"all runs are tried at once", "dags/task.go", "if f.choices[i].probe {", "if false {"},
	{"nobody is told of a breaker that opens", "dags/row.go", "\tbreaker.Watch(r)\n", ""},
	{"more than one run is tried", "admission/admit.go", "u.foreign == 0 && !g.Exact", "u.foreign == 0"},
	{"foreign claims are ignored", "admission/admit.go", "\t\tu.foreign++\n", ""},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults, Args: []string{"-short", "-run",
		"TestScenarios|TestSession|TestStartsAreFair|TestAgeing|TestClock|TestRandomHistories|TestRandomTalk|TestAdmit|TestUnroutable|TestDerive"}}.Run(t)
}
