package github_test

import (
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that a test of this package must notice: those that would write twice, tell a secret, take for gone
// what is there, or have GitHub ban its user.
var faults = []mutants.Mutant{
	{"a creation is sent again", "transport.go",
		"if m == once && sent.Load() && unclear(err) {", "if false {", "TestWhatCreatesIsNotSentAgain"},
	{"what was never sent is uncertain", "transport.go",
		"if m == once && sent.Load() && unclear(err) {", "if m == once && unclear(err) {", "TestNobodyThere"},
	{"an answer need not name what was created", "answer.go",
		"if m == once && (json", "if false && (json", "TestWhatCreatesIsNotSentAgain"},
	{"who gives up is not told what may have happened", "transport.go",
		"context.WithValue(context.WithoutCancel(ctx)", "context.WithValue(ctx", "TestACallerWhoGivesUp"},
	{"a commit without an id is none", "pulls.go",
		"if err == nil && oid == \"\" && c.o.Dry == nil {", "if false {", "TestALostCommit"},
	{"a page of a proxy says that something is gone", "answer.go", "case !ours:", "case false:", "TestRefusals"},
	{"lost access says that something is gone", "transport.go",
		"return nil, w.confirm(r, call, err)", "return nil, err", "TestRefusals|TestGone"},
	{"the token goes to any host", "transport.go",
		"if w.o.Token != \"\" && r.URL.Host == w.base.Host {", "if w.o.Token != \"\" {", "TestTheTokenIsForOneHost"},
	{"the token is in errors", "answer.go", "strings.ReplaceAll(s, w.o.Token, \"[token]\")", "s", "TestTheTokenGoes"},
	{"one account sees what is kept for another", "cache.go", "[]string{c.whose, r.", "[]string{r.", "TestAnUnchangedAnswer"},
	{"a damaged cache is believed", "cache.go", "|| k.Sum != cacheSum(body) ", "", "TestADamagedCache"},
	{"a list ends at a full page that did not change", "issues.go",
		" && !(cachedHeaders(resp.Response) && len(items) == perPage)", "", "TestListsAreReadToTheEnd"},
	{"the next process asks before a limit ends", "limit.go", "_ = replaceCacheFile(l.file, data)", "_ = data", "TestALimitThatLasts"},
	{"limits end by the clock of this machine", "limit.go", "there = t\n", "_ = t\n", "TestLimitsAreWaitedFor"},
	{"writes keep no pace", "transport.go", "w.written = w.o.Now()\n", "", "TestWritesKeepAPace"},
	{"several requests are under way at once", "transport.go", "defer func() { <-w.turn }()", "<-w.turn", "TestOneRequestAtATime"},
	{"a label is made though nothing is known of it", "issues.go",
		"if err := there(); !errors.Is(err, ErrGone) {", "if err := there(); err == nil {", "TestLabelsAndReactions"},
	{"who is only invited is a member", "people.go",
		"return m.GetState() == \"active\", err", "_ = m\n\treturn err == nil, err", "TestWhoMayDoWhat"},
}

func TestMutants(t *testing.T) {
	if !testing.Short() {
		githubtest.Start(t) // skips where no emulator is installed
	}
	mutants.Suite{Mutants: faults, Env: []string{githubtest.Required + "=required"}, Parallel: true}.Run(t)
}
