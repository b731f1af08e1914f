package github_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github/githubtest"
)

// mutants are faults that a test of this package must notice: those that would write twice, tell a secret, take for gone
// what is there, or have GitHub ban its user.
var mutants = []struct{ name, file, good, bad, test string }{
	{"a creation is sent again", "wire.go",
		"if m == once && sent.Load() && unclear(err) {", "if false {", "TestWhatCreatesIsNotSentAgain"},
	{"what was never sent is uncertain", "wire.go",
		"if m == once && sent.Load() && unclear(err) {", "if m == once && unclear(err) {", "TestNobodyThere"},
	{"an answer need not name what was created", "answer.go",
		"if m == once && (json", "if false && (json", "TestWhatCreatesIsNotSentAgain"},
	{"who gives up is not told what may have happened", "wire.go",
		"context.WithValue(context.WithoutCancel(ctx)", "context.WithValue(ctx", "TestACallerWhoGivesUp"},
	{"a commit without an id is none", "pulls.go",
		"if err == nil && oid == \"\" && c.o.Dry == nil {", "if false {", "TestALostCommit"},
	{"a page of a proxy says that something is gone", "answer.go", "case !ours:", "case false:", "TestRefusals"},
	{"lost access says that something is gone", "wire.go",
		"return nil, w.confirm(r, call, err)", "return nil, err", "TestRefusals|TestGone"},
	{"the token goes to any host", "wire.go",
		"if w.o.Token != \"\" && r.URL.Host == w.base.Host {", "if w.o.Token != \"\" {", "TestTheTokenIsForOneHost"},
	{"the token is in errors", "answer.go", "strings.ReplaceAll(s, w.o.Token, \"[token]\")", "s", "TestTheTokenGoes"},
	{"one account sees what is kept for another", "cache.go", "[]string{c.whose, r.", "[]string{r.", "TestAnUnchangedAnswer"},
	{"a damaged cache is believed", "cache.go", "|| k.Sum != sum(body) ", "", "TestADamagedCache"},
	{"a list ends at a full page that did not change", "issues.go",
		" && !(kept(resp.Response) && len(items) == perPage)", "", "TestListsAreReadToTheEnd"},
	{"the next process asks before a limit ends", "limit.go", "_ = replace(l.file, data)", "_ = data", "TestALimitThatLasts"},
	{"limits end by the clock of this machine", "limit.go", "there = t\n", "_ = t\n", "TestLimitsAreWaitedFor"},
	{"writes keep no pace", "wire.go", "w.written = w.o.Now()\n", "", "TestWritesKeepAPace"},
	{"several requests are under way at once", "wire.go", "defer func() { <-w.turn }()", "<-w.turn", "TestOneRequestAtATime"},
	{"a label is made though nothing is known of it", "issues.go",
		"if err := there(); !errors.Is(err, ErrGone) {", "if err := there(); err == nil {", "TestLabelsAndReactions"},
	{"who is only invited is a member", "people.go",
		"return m.GetState() == \"active\", err", "_ = m\n\treturn err == nil, err", "TestWhoMayDoWhat"},
}

// mutantEnv is set in the tests of a mutant.
const mutantEnv = "GITHUB_MUTANT"

// TestMutants builds this package with one fault at a time and expects the test that is there for it to fail.
func TestMutants(t *testing.T) {
	if testing.Short() || os.Getenv(mutantEnv) != "" {
		t.Skip("takes a build for each mutant")
	}
	githubtest.Start(t) // skips where no emulator is installed
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			src := string(must[[]byte](t)(os.ReadFile(m.file)))
			if n := strings.Count(src, m.good); n != 1 {
				t.Fatalf("%q stands %d times in %s, want once", m.good, n, m.file)
			}
			out, err := runMutant(t, m.file, strings.Replace(src, m.good, m.bad, 1), m.test)
			switch {
			case err == nil:
				t.Errorf("no test notices that %s", m.name)
			case !strings.Contains(out, "--- FAIL"):
				t.Errorf("the mutant does not run: %v\n%s", err, out)
			}
		})
	}
}

// runMutant runs some tests of the package with one file replaced.
func runMutant(t *testing.T, file, src, tests string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	changed, list := filepath.Join(dir, file), filepath.Join(dir, "overlay.json")
	overlay := map[string]map[string]string{"Replace": {must[string](t)(filepath.Abs(file)): changed}}
	for path, data := range map[string][]byte{changed: []byte(src), list: must[[]byte](t)(json.Marshal(overlay))} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-failfast", "-vet=off", "-overlay", list, "-run", tests, ".")
	cmd.Env = append(os.Environ(), mutantEnv+"=1", githubtest.Required+"=required")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
