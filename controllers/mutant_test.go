package controllers

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that the tests of this package must notice.
var faults = []mutants.Mutant{
	{"a success under another key counts", "dag_node.go",
		"if runs[0].NodeKey == f.b.keys[i] {", "if runs[0].NodeKey != \"\" {"},
	{"a cancelled run counts as success", "dag_node.go",
		"case run.Outcome == schemas.OutcomeSucceeded:",
		"case run.Outcome == schemas.OutcomeSucceeded, run.Outcome == schemas.OutcomeCancelled:"},
	{"a failed need lets a node start", "dag_node.go",
		"return s.State == schemas.NodeSucceeded ||", "return s.State == schemas.NodeSucceeded || s.State == schemas.NodeFailed ||"},
	{"pruned successes are forgotten", "dag_node.go",
		"if r.won = true; r.before == 0 {", "if r.before == 0 {"},
	{"the new run starts beside the old one", "dag_node.go", "case r.other:", "case false:"},
	{"a key ignores its needs", "dag_keys.go", "inner.text(p.spec.Nodes[to].Name, keys[to])", "_ = to"},
	{"a question uses up an attempt", "dag_node.go", "case pauses:\n\t\tr.asked++", "case false:\n\t\tr.asked++"},
	{"a node goes on while its question is open", "dag_ask.go",
		"if !r.pauses && r.last != nil {", "if r.last != nil {"},
	{"an escalated question lets its node go on", "dag_ask.go", "return ReasonEscalated, fmt.Sprintf(\"Clarification %s escalated, waits for a human\", st.ID)", "return \"\", \"\""},
	{"what may not be asked is waited for", "dag_ask.go",
		"requestsOf(f.World).scopeOf(run.Agent).Check(askSpec(f.Entry, run, 0)) == nil", "true"},
	{"a refused question is asked again and again", "dag_ask.go", "case r.pauses && f.refusedAgain(i):", "case false:"},
	{"what nobody can answer is handed out", "ready.go", "case q.wrong != \"\":", "case false:"},
	{"a further round becomes a question of its own", "clarification_task.go", "next = q\n", "_ = q\n"},
	{"the scope is not guarded", "clarification_input.go",
		"if err := w.scopeOf(spec.From).Check(spec); err != nil {", "if err := error(nil); err != nil {"},
	{"two questions get one number", "clarification_number.go", "last[issue]+1), last)", "last[issue]+1), map[int]int{})"},
	{"an edited request takes effect", "clarification_input.go",
		"if st.ID != \"\" && st.ObservedDigest != e.Object.Digest {", "if false {"},
	{"a reply counts for two requests", "clarification_input.go", "by != \"\" && by != e.Name", "by == \"nobody\""},
	{"rings are not broken", "clarification.go",
		"if order := w.orders()[in.Name]; order != nil {", "if order := w.orders()[in.Name]; order != nil && false {"},
	{"a session that a broken file named is forgotten", "dag_affects.go", "e.Brief().StalledReason == ReasonInvalidSpec && c.Note(\"all sessions\")", "false"},
	{"the victim of a ring is not looked at", "kinds.go", "Before: addOrdered, ", ""},
	{"a node whose key moved keeps its question", "kinds.go", "After: addMovedQuestions, ", ""},
	{"a wait for people counts for the time limit", "dag_clock.go", "if f.b.human[i] || emptySpan(span) {", "if emptySpan(span) {"},
	{"the time spent is forgotten", "dag_clock.go", "known = f.old.Active", "_ = f.old.Active"},
	{"what waits hides a failure", "dag_phase.go", "if n.failed > 0 { // which", "if false { // which"},
	{"what was not asked for starts", "admit.go", "if !a.selected(e.Owner, e.Node) {", "if false {"},
	{"what is kept in git is fetched although nobody needs it", "dag_outputs.go", "ok && r.Cached {", "ok {"},
	{"what could not be restored is asked for again", "dag_outputs.go", "if !all || slices.Contains(missing.Lost, run.Key) {", "if !all {"},
	{"asked outputs are made again where nothing may run", "dag_outputs.go", "return f.gate.open && (verb", "return true || (verb"},
	{"the time between runs counts", "dag_clock.go", "out = append(out, &entry)", "_ = append(out, &entry)"},
	{"the sums of sessions lag behind", "session_dags.go", "\t\t\ts.put(is)\n", "\t\t\t_ = is\n"},
	{"a decision that nobody took over counts", "session_dags.go", "\tclear(s.ahead)\n", "\tclear(s.parts)\n"},
	{"DAGs that ended before are forgotten", "session_dags.go", "return r.before && ", "return false && "},
	{"a spec that is gone is not called for again", "calls.go", "if went(was, is) {", "if went(was, is) && false {"},
	{"a question that an agent may ask by now is not asked", "calls.go", "if digestOf(was) != digestOf(is) {", "if digestOf(was) != digestOf(is) && false {"},
	{"what could not be written is not called for again", "calls.go", "due{refs: maps.Clone(c.again)}", "due{refs: maps.Collect(maps.All(map[schemas.Ref]bool{}))}"},
	{"ledgers that change are not looked at", "calls.go", "d.refs[l.Ref()] = true", "_ = l"},
	{"foreign claims are ignored", "admit.go", "\t\tu.foreign++\n", ""},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults, Args: []string{"-short", "-run",
		"TestScenarios|TestClock|TestRandomHistories|TestRandomTalk|TestAdmit|TestUnroutable|TestSums|TestDerive"}}.Run(t)
}
