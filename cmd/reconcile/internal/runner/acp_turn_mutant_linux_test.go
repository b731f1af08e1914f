package runner

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// turnFaults are those in the conversation with an agent, and at the end of reconcile, which the tests must notice.
var turnFaults = []mutants.Mutant{
	{"end_turn is a success", "acp_turn.go", "if f := turns.Judge(facts); f != nil {", "if f := turns.Judge(facts); f != nil && facts.StopReason != \"end_turn\" {", "TestTurnsEnd"},
	{"a typed failure is ignored", "acp_turn.go", "	case s.Failure != nil:\n", "	case false:\n", "TestTurnsEnd"},
	{"a budget is not enforced", "acp_turn.go", "t.a.spend(why)", "_ = why", "TestTurnsEndWithTheirBudgets"},
	{"a dead agent only said nothing", "acp_turn.go", "		f.Dead = true\n", "", "TestTurnsEnd"},
	{"the session is not kept", "acp_turn.go", "t.a.runner.saveSession(t.a, session.ID)", "error(nil)", "TestInterruptedSession"},
	{"titles of permissions have secrets", "permission.go", "Title: clean(r.Title, wordsLimit)", "Title: r.Title", "TestTurnRecord"},
	{"everything is permitted", "permission.go", "return Permit{Kinds: []string{acp.RejectOnce, acp.RejectAlways}", "return Permit{Kinds: []string{acp.AllowOnce}", "TestTurnRecord"},
	{"a program that is not confined gets the arguments for one", "session.go", "if a.policy != nil {", "if true {", "TestConfinedArguments"},
	{"a confined program does not get its arguments", "session.go", "if a.policy != nil {", "if false {", "TestConfinedArguments"},
	{"no request is sent again", "retry.go", "tries == retriesMost ||", "tries == 0 ||", "TestDialoguesEnd"},
	{"a request that is refused is sent again", "retry.go", "\tdefault:\n\t\treturn 0, nil\n", "\tdefault:\n", "TestDialoguesEnd"},
	{"what failed for good is sent again", "retry.go", "|| errors.Is(err, chat.ErrFinal)", "|| errors.Is(err, chat.ErrFinal) && false", "TestDialoguesEnd"},
	{"what left its group outlives reconcile", "process_tree_linux.go", "return m.olderThan(self)", "return !m.olderThan(self)", "TestCloseSweeps"},
	{"the wait for a person counts as work", "command.go", "l.work && more > 0", "l.work && more > time.Hour", "TestPeopleAreWaitedFor"},
	{"a hunt that is late gives up at once", "process_tree.go", "if !killed.IsZero() && now.Sub(killed) > h.runner.settleFor {", "if now.Sub(kill) > h.runner.settleFor {", "TestLateKills"},
}

func TestTurnMutants(t *testing.T) {
	mutants.Suite{Mutants: turnFaults}.Run(t)
}
