//go:build unix

package runner

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in giving a file to another run, in what precedes the start, and in the proof of a run, which the tests must notice.
var faults = []mutants.Mutant{
	{"a file with other names is used again", "workfile.go", "err != nil || !onlyName(is)", "err != nil"},
	{"a file that was replaced is used again", "workfile.go", "err == nil && os.SameFile(is, there)", "err == nil && there != nil"},
	{"a command starts before its record is durable", "run.go", "asFault(a.runner.o.Durable())", "nil"},
	{"the rest of a longer text stays", "workfile.go", "f.file.Truncate(int64(len(data)))", "nil"},
	{"the tokens of runs are not checked", "token.go", "return subtle.ConstantTimeCompare(want, []byte(digestToken(token))) != 1", "_ = subtle.ConstantTimeCompare(want, []byte(digestToken(token)))\n\treturn false", "TestTokensProveRuns"},
	{"a token that cannot be read is not asked for", "token.go", "return !os.IsNotExist(err)", "return os.IsExist(err)", "TestTokensProveRuns"},
	{"the time of a tool counts as silence", "run.go", "a.heard.Store(now.UnixNano())", "_ = now", "TestSilenceBeginsAfterTools"},
	{"what a tool left running lives on", "orphans_linux.go", "_ = unix.Kill(child, unix.SIGKILL)", "_ = child", "TestOrphansEnd"},
	{"what fled from its run is nobody's", "supervisor_linux.go", "err := AdoptOrphans(); err != nil", "err := error(nil); err != nil", "TestSupervisedRunsEnd"},
	{"what fled from its run lives on", "supervisor_linux.go", "\treturn EndOrphans()\n", "\treturn nil\n", "TestSupervisedRunsEnd"},
	{"an agent in the tree that nothing confines has no mark", "sandbox.go", " || a.isAgent() && a.dialogue == nil && a.policy == nil", "", "TestUnconfinedProgramsAreMarked"},
	{"an agent that nothing confines has no supervisor", "command.go", "start = a.runner.supervisors.spawn", "start = spawn", "TestSupervisedRunsEnd"},
	{"a supervisor shows a run that has ended", "supervisor_linux.go", "err = showEnviron(nil)", "err = nil", "TestSupervisorsServeAgain"},
	{"a supervisor shows the run before", "supervisor_linux.go", "err = showEnviron(marksIn(o.Env))", "err = nil", "TestSupervisorsServeAgain"},
	{"a supervisor takes marks that it cannot show", "supervisor_linux.go", "s.room >= need", "s.room >= need/2", "TestSupervisorsHaveRoom"},
	{"encoded secrets are not known", "secrets.go", "if len(value) >= minEncoded {", "if false {", "TestSecretsInEncodings"},
	{"secrets in UTF-16 are not known", "secrets.go", "bytes.ReplaceAll(b, []byte{0}, nil)", "b[:len(b):len(b)]", "TestSecretsInEncodings"},
	{"colored secrets are not known", "secrets.go", "bytes.IndexByte(b, 0x1b) >= 0", "false", "TestSecretsInEncodings"},
	{"secrets that lines break are not known", "secrets.go", "append(out, bytes.Trim(line, lineEnds)...)", "append(out, line...)", "TestSecretsInEncodings"},
	{"a secret that control characters break is shown", "secrets.go", "text := []byte(printable(b)); s.In(text)", "text := b; s.In(text)", "TestBrokenSecrets"},
	{"a secret that lines break is shown", "secrets.go", "len(v) >= minBroken && bytes.Contains(joined, v)", "len(v) < minBroken && bytes.Contains(joined, v)", "TestBrokenSecrets"},
	{"a secret is whole again when it is printable", "turn.go", "k.secrets.removeBroken([]byte(printable(k.tail)))", "[]byte(printable(k.tail))", "TestBrokenSecrets"},
	{"a secret in an output is kept", "outputs.go", "a.runner.secrets.In(data) {\n\t\t\treturn fmt", "a.runner.secrets.In(data[:0]) {\n\t\t\treturn fmt", "TestSecretsInOutputs"},
	{"the value of a variable is in the record", "variables.go", "r.secrets.hideLines(value)", "_ = value", "TestVariablesAreReadAtTheStart"},
	{"an output with the value of a variable is cached", "outputs.go", "a.runner.secrets.In(data) {\n\t\t\treturn true", "a.runner.secrets.In(data[:0]) {\n\t\t\treturn true", "TestVariablesAreReadAtTheStart"},
	{"a command starts without a variable", "variables.go", "return \"\", v.Missing(v.Variable)\n\t}\n\tif", "value = \"\"\n\t}\n\tif", "TestMissingVariablesKeep"},
	{"the setup of a change writes a cache that stays", "setup.go", "\t\towner = \"\"\n", "\t\t_ = owner\n", "TestCachesOfSetups"},
	{"the setup of a change is not confined", "setup.go", "\t\ts = w.Setup\n", "\t\t_ = w\n", "TestCachesOfSetups"},
	{"caches of programs stay for ever", "programs.go", "if now.Sub(c.used) > age || total > most {", "if now.Sub(c.used) > age && total < most {", "TestProgramsAreBounded"},
	{"a command's input does not block", "process_linux.go", "return openPipe(false)", "return openPipe(true)", "TestInputBlocks"},
	{"a killed run that another reconcile begins again is ended", "process_tree.go", "if h.killed && t.lease.runs()", "if h.killed && false", "TestKilledRunBeginsElsewhere"},
	{"a process that was found by its lease is forgotten", "process_tree_linux.go", "\t\t\th.met[m.pid] = m.started\n\t\t\tout", "\t\t\tout", "TestHoldersAreMet"},
	{"a process of a closed runner that loses its mark is forgotten", "process_tree_linux.go", "met[m.pid] == m.started || ms.ofRunner", "ms.ofRunner", "TestOwnedAreMet"},
	{"a group whose number was reused is ended", "process_tree_linux.go", "\th.forgetReused(all)\n", "", "TestReusedGroups"},
	{"a group is forgotten while it lives", "process_tree_linux.go", "(h.met[m.pid] == m.started || !t.reaped.olderThan(m))", "false", "TestReusedGroups"},
	{"a process is signalled by its number alone", "process_tree_linux.go", "ok && now.started == m.started", "ok && now.pid == m.pid", "TestReusedNumbers"},
	{"what may run at once starts in any order", "command.go", "\ta.job.awaitTurn()\n", "", "TestStartsAreInTurn"},
	{"a lost session is a failure", "run.go", "if a.lostSession() {", "if false {", "TestLostSessions"},
	{"a lost session is tried for ever", "session.go", "(!interrupted || id == b.SessionID)", "id != \"-\"", "TestLostSessions"},
	{"a killed run begins a new session", "session.go", "id, interrupted := a.runner.savedSession(a)", "id, interrupted := \"\", false", "TestLostSessions"},
	{"that a killed run began is forgotten before it is on record", "workfile.go", "{needsName(key), memoryName(key)}", "{needsName(key), memoryName(key), tokenName(key)}", "TestReapAll"},
	{"a session without access is lost", "session.go", "return t.Failure.Class == schemas.FailureUnknown ||", "return true ||", "TestLostSessions"},
	{"a turn that worked has lost its session", "session.go", "t.Usage != nil && t.Usage.OutputTokens > 0", "false", "TestSessionsThatWorked"},
	{"a turn whose time ran out has no class", "result.go", "case s.outcome == schemas.OutcomeTimedOut && a.isAgent():", "case false:", "TestAgentsAreEnded"},
	{"a run without its token acts as the agent", "run_marks.go", "\t\t\t\tin.Agent, in.Session = \"\", \"\"\n", "", "TestTokensProveRuns"},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults, Args: []string{"-run", "TestWorkFilesAreUsedAgain|TestCommandsStartAfter"}}.Run(t)
}
