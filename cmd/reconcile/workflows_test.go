package main

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
	"reconcile.dev/reconcile/controllers/mirror"
)

// machine runs the scripts of workflows as GitHub's machines do: with bash, which ends at the first failure, and an
// environment in which an earlier step has put reconcile on the PATH.
type machine struct {
	*testing.T
	dir, temp string // the work tree, and RUNNER_TEMP
	env       []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("SKIPPED, the workflows were not run: %v", err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self(t), filepath.Join(bin, "reconcile")); err != nil {
		t.Fatal(err)
	}
	m := &machine{T: t, dir: t.TempDir(), temp: t.TempDir()}
	m.env = []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(), "USER=runner",
		"GIT_CONFIG_NOSYSTEM=1", "RUNNER_TEMP=" + m.temp, "GITHUB_STEP_SUMMARY=" + filepath.Join(m.temp, "summary.md"),
		"GITHUB_PATH=" + filepath.Join(m.temp, "path")}
	return m
}

// sh runs a script, and returns its exit code and what it prints.
func (m *machine) sh(script string, env ...string) (int, string) {
	m.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = m.dir, append(m.env[:len(m.env):len(m.env)], env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// must runs a script that has to succeed.
func (m *machine) must(script string, env ...string) string {
	m.Helper()
	code, out := m.sh(script, env...)
	if code != 0 {
		m.Fatalf("%s\nexit %d:\n%s", script, code, out)
	}
	return out
}

// script is that of a step of a file that init --github makes.
func script(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile("internal/engine/scaffold/actions/.github/" + file)
	if err != nil {
		t.Fatal(err)
	}
	type steps []struct{ Name, Run string }
	var w struct {
		Jobs map[string]struct{ Steps steps }
		Runs struct{ Steps steps }
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	all := w.Runs.Steps
	for _, j := range w.Jobs {
		all = append(all, j.Steps...)
	}
	for _, s := range all {
		if s.Name == name {
			return s.Run
		}
	}
	t.Fatalf("%s has no step %q", file, name)
	return ""
}

const identity = "git config user.name Ada; git config user.email ada@example.org; "

// TestPlanWorkflow runs the scripts of plan.yml over the merge that GitHub makes of a pull request.
func TestPlanWorkflow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.must("git init -q -b main; " + identity + "reconcile init -q --example; git add .; git commit -qm First; git switch -qc change")
	settings, specs, plan := script(t, "workflows/plan.yml", "Check the settings"), script(t, "workflows/plan.yml", "Check the specs"),
		script(t, "workflows/plan.yml", "Plan")
	merge := func(change string) {
		t.Helper()
		m.must("git switch -q change; " + change + "; git add -A; git commit -qm Change; git switch -q --detach main; git merge -q --no-ff --no-edit change")
	}
	merge("sed -i 's/uname, -sm/uname, -s/' specs/dags/survey.yaml")
	for _, s := range []string{settings, specs, plan} {
		if out := m.must(s, "NUMBER=12"); out != "" {
			t.Errorf("%s\nprints %s", s, out)
		}
	}
	m.saved(12, "| `dag/survey`: `machine` |")

	merge("sed -i 's/session: first/session: nobody/' specs/dags/survey.yaml; echo nonsense: 1 >> reconcile.yaml")
	if code, out := m.sh(settings); code != 3 || !strings.Contains(out, "::error file=reconcile.yaml,line=") {
		t.Errorf("bad settings: exit %d, %s", code, out)
	}
	if code, out := m.sh(specs); code != 3 || !strings.Contains(out, "::error file=specs/dags/survey.yaml,line=") {
		t.Errorf("a bad spec: exit %d, %s", code, out)
	}
	m.must(plan, "NUMBER=12")
	m.saved(12, "1 error")
	if code, out := m.sh(plan, "NUMBER=12; touch "+m.temp+"/evil"); code == 0 {
		t.Errorf("a number that is none: exit %d, %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(m.temp, "evil")); err == nil {
		t.Error("what stands in the environment was run")
	}
}

// saved checks what plan.yml leaves.
func (m *machine) saved(number int, say string) {
	m.Helper()
	data, err := os.ReadFile(filepath.Join(m.temp, "plan", "plan.json"))
	var p mirror.Pull
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.Check() != nil || p.Number != number {
		m.Errorf("plan.json: %v, %v\n%s", err, p.Check(), data)
	}
	summary, err := os.ReadFile(filepath.Join(m.temp, "summary.md"))
	if err != nil || !strings.Contains(string(summary), say) {
		m.Errorf("no %q in the summary: %v\n%s", say, err, summary)
	}
}

// TestPlanCommentWorkflow runs the script of plan-comment.yml against the GitHub of tests.
func TestPlanCommentWorkflow(t *testing.T) {
	t.Parallel()
	p, m := newPulls(t), newMachine(t)
	m.dir = p.dir
	from := filepath.Join(p.dir, p.plan(p.number, func(k *mirror.Pull) { k.Steps[0].Ref = "::error::forged" }))
	m.must(fmt.Sprintf("mkdir %[1]s/plan; mv %[2]s %[1]s/plan/plan.json", m.temp, from))
	out := m.must(script(t, "workflows/plan-comment.yml", "Comment"), "HEAD="+p.head, "GITHUB_TOKEN="+githubtest.Token(githubtest.Bot),
		"GITHUB_REPOSITORY="+p.rig.Repo, egress.AllowVariable+"="+p.url)
	if got := p.comments(p.number); len(got) != 1 || !strings.Contains(got[0], "never ran") {
		t.Errorf("there stands %q", got)
	}
	if strings.Contains(out, "::error") {
		t.Errorf("the plan gives orders to the machine:\n%s", out)
	}
}

// TestReconcileWorkflow runs the script of reconcile.yml in a clone, as actions/checkout leaves it.
func TestReconcileWorkflow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	hub := filepath.Join(t.TempDir(), "hub.git")
	m.must("git init -q -b main; " + identity + "reconcile init -q --example; git add .; git commit -qm First; git clone -q --bare . " + hub)
	run := script(t, "workflows/reconcile.yml", "Reconcile")
	clone := func() {
		m.dir = filepath.Join(t.TempDir(), "clone")
		cmd := exec.Command("git", "clone", "-q", "--depth=1", "file://"+hub, m.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	clone()
	out := m.must(run)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	stop, resume := lines[0], lines[len(lines)-1]
	if token, ok := strings.CutPrefix(stop, "::stop-commands::"); !ok || len(token) != 32 || resume != "::"+token+"::" {
		t.Errorf("what agents print is not kept from giving orders: %q … %q", stop, resume)
	}
	said := m.must("git -C " + hub + " log -1 --format='%cn%n%B' main")
	if !strings.HasPrefix(said, "github-actions[bot]\n") || !strings.Contains(said, "\nReconcile-Objects: ") {
		t.Errorf("the last commit on the remote says: %s", said)
	}
	clone()
	if out := m.must(run); !strings.Contains(out, "nothing") {
		t.Errorf("the next run, in a fresh clone, found something to do:\n%s", out)
	}
	m.must(identity + "sed -i 's/session: first/session: nobody/' specs/dags/survey.yaml; git commit -qam Bad")
	if code, out := m.sh(run); code != 3 {
		t.Errorf("with a bad spec: exit %d\n%s", code, out)
	}
	m.must("rm -rf " + hub)
	if code, out := m.sh(run); code == 0 && !strings.Contains(out, "::warning::") {
		t.Errorf("without a remote: exit %d\n%s", code, out)
	}
}

// TestOwnCommits: a commit counts as one of reconcile by its trailer, and not by a text that its message has elsewhere.
func TestOwnCommits(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.must("git init -q; " + identity)
	look, result := script(t, "workflows/reconcile.yml", "Look whose commit it is"), filepath.Join(m.temp, "output")
	for message, ours := range map[string]bool{
		"Update status of dag/d\n\n- dag/d\n\nReconcile-Input: x\nReconcile-Objects: 1": true,
		"Declare":                      false,
		"Explain Reconcile-Objects: 1": false,
		"Explain\n\nReconcile-Objects: 1\n\nis the trailer of a commit of reconcile.": false,
		"Reconcile-Objects: 1": false,
	} {
		m.must("git commit -q --allow-empty -m \"$MESSAGE\"; rm -f "+result, "MESSAGE="+message)
		m.must(look, "GITHUB_OUTPUT="+result)
		said, err := os.ReadFile(result)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if got := string(said) == "ours=true\n"; got != ours {
			t.Errorf("%q: ours is %v, want %v (%q)", message, got, ours, said)
		}
	}
}

// TestActionGetsFiles: a file of a release is used when it has the sum that is written beside it, and so is a program in
// the repository.
func TestActionGetsFiles(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skipf("SKIPPED, no file was downloaded: %v", err)
	}
	get := script(t, "actions/reconcile/action.yml", "Get reconcile")
	m.must("mkdir -p top bin; printf '#!/bin/sh\\necho reconcile v9 $0\\n' > bin/reconcile; chmod +x bin/reconcile; " +
		"cp bin/reconcile top/; tar -czf release.tar.gz top")
	server := httptest.NewTLSServer(http.FileServer(http.Dir(m.dir)))
	t.Cleanup(server.Close)
	cert := filepath.Join(m.temp, "cert.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(cert, block, 0o644); err != nil {
		t.Fatal(err)
	}
	sum := func(file string) string { return strings.Fields(m.must("sha256sum " + file))[0] }
	for version, good := range map[string]bool{
		server.URL + "/release.tar.gz#sha256=" + sum("release.tar.gz"): true,
		server.URL + "/bin/reconcile#sha256=" + sum("bin/reconcile"):   true,
		server.URL + "/release.tar.gz#sha256=" + sum("bin/reconcile"):  false,
		server.URL + "/release.tar.gz":                                 false,
		"./bin/reconcile":                                              true,
		"./release.tar.gz":                                             false,
		"./none":                                                       false,
	} {
		m.must("rm -rf \"$RUNNER_TEMP/reconcile\" \"$GITHUB_PATH\"")
		code, out := m.sh(get, "VERSION="+version, "CURL_CA_BUNDLE="+cert)
		if (code == 0) != good || good && !strings.Contains(out, "reconcile comes from ") || !good && !strings.Contains(out, "::error file=") {
			t.Errorf("%s: exit %d, %s", version, code, out)
		}
		if _, err := os.Stat(filepath.Join(m.temp, "path")); (err == nil) != good {
			t.Errorf("%s: on the PATH: %v", version, err)
		}
	}
}

// TestAction: what is no release is not installed.
func TestAction(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	get := script(t, "actions/reconcile/action.yml", "Get reconcile")
	for _, version := range []string{"VERSION", "latest", "main", "", "1.2.3", "http://example.org/r.tar.gz#sha256=0", "/bin/sh", "../up"} {
		if code, out := m.sh(get, "VERSION="+version); code != 1 || !strings.Contains(out, "::error file=") {
			t.Errorf("%q: exit %d, %s", version, code, out)
		}
	}
	if testing.Short() {
		t.Skip("builds the program")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	m.env = append(m.env, "GOPATH="+goEnv(t, "GOPATH"), "GOCACHE="+goEnv(t, "GOCACHE"),
		"GOFLAGS="+goEnv(t, "GOFLAGS")+" -buildvcs=false") // with the flags of the tests, most is built
	m.must(get, "VERSION=source", "GITHUB_ACTION_PATH="+filepath.Join(root, ".github/actions/reconcile"))
	if out := m.must("$(cat $GITHUB_PATH)/reconcile version"); !strings.HasPrefix(out, "reconcile ") {
		t.Errorf("it built %s", out)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
