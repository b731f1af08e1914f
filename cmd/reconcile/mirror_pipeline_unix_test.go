//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// verifiedTree is added to that of a desk: an agent whose change the inspector and the tester refuse, however often it works.
const verifiedTree = `
-- specs/agents/coder.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: coder}
spec: {workspace: clone, sandbox: {level: none}, runner: {command: {argv: [sh, ./agent.sh]}}}
-- specs/dags/team.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: team}
spec: {session: health, nodes: [{name: add, agent: coder, prompt: Write adder.py., pipeline: {}}]}
-- agent.sh --
cat > /dev/null
echo bad > adder.py
-- .gitignore --
state/
.reconcile/
-- .flake8 --
-- pytest.ini --
-- test_adder.py --
import adder
-- bin/flake8 --
#!/bin/sh
case "$*" in *--version*) exit ;; esac
echo "./adder.py:1:1: F401 'os' imported but unused"
exit 1
-- bin/pytest --
#!/bin/sh
for a; do case $a in --junitxml=*) report=${a#--junitxml=} ;; esac; done
echo '<testsuite tests="1"><testcase classname="test_adder" name="test_one" file="test_adder.py" time="0.01"><failure message="assert 2 == 3">E</failure></testcase></testsuite>' > "$report"
exit 1
`

// TestCommentsDecidePipelines: people ask in comments about a task, and take its change as it is, step by step; others cannot.
func TestCommentsDecidePipelines(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"git", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	d := newDesk(t)
	files := map[string]string{}
	for _, f := range txtar.Parse([]byte(verifiedTree)).Files {
		files[f.Name] = string(f.Data)
	}
	writeFiles(t, d.dir, files)
	bin := t.TempDir() // outside of the project, whose own programs no check may run
	for _, name := range []string{"flake8", "pytest"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(files["bin/"+name]), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(d.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	d.git(d.dir, "init", "-q", "-b", "main")
	d.git(d.dir, "config", "user.name", "ann")
	d.git(d.dir, "config", "user.email", "ann@example.org")
	d.git(d.dir, "add", ".")
	d.git(d.dir, "commit", "-qm", "Declare")
	program := self(t)
	run := func() {
		t.Helper()
		cmd := exec.Command(program, "-C", d.dir, "run")
		cmd.Env = append(os.Environ(), "GITHUB_TOKEN="+githubtest.Token(githubtest.Bot), egress.AllowVariable+"="+d.rig.URL, "RECONCILE_ALLOW=checks",
			"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir())
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); cmd.ProcessState == nil || !cmd.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, said.String())
		}
		t.Log(said.String())
	}
	comments := func() string { return strings.ReplaceAll(d.comments(), "\u200b", "") }
	digest := func(verb string) string { // that the last refusal of a command without one shows
		t.Helper()
		all := regexp.MustCompile("/task dag/team:add "+verb+" ([0-9a-f]{16,})").FindAllStringSubmatch(comments(), -1)
		if len(all) == 0 {
			t.Fatalf("no comment shows how to %s:\n%s", verb, comments())
		}
		return all[len(all)-1][1]
	}
	landed := func() bool { return strings.Contains(d.git(d.dir, "log", "--format=%s"), "Do add of dag/team") }

	run()
	d.rig.Comment(t, githubtest.Mona, d.issue, "/task add query")
	bare := d.rig.Comment(t, githubtest.Owner, d.issue, "/task add ignore-inspector It is generated.")
	run()
	d.expect(bare, "confused")
	if !strings.Contains(comments(), "F401") {
		t.Errorf("nobody is told what the inspector found:\n%s", comments())
	}
	first := digest("ignore-inspector")
	d.rig.Comment(t, githubtest.Stranger, d.issue, "/task add ignore-inspector "+first+" I say so.")
	run()
	if got := d.reads("state/dags/team.json"); strings.Contains(got, "I say so.") || landed() {
		t.Errorf("a stranger decided: %s", got)
	}
	d.rig.Comment(t, githubtest.Owner, d.issue, "/task add ignore-inspector "+first+" It is generated.")
	run()
	if landed() {
		t.Error("it landed, and the tester refused it")
	}
	d.rig.Comment(t, githubtest.Owner, d.issue, "/task add ignore-tester They are slow.")
	run()
	d.rig.Comment(t, githubtest.Owner, d.issue, "/task add ignore-tester "+digest("ignore-tester")+" They are slow.")
	run()
	status := d.reads("state/dags/team.json")
	for _, want := range []string{"github:" + githubtest.Owner, "It is generated.", "They are slow."} {
		if !strings.Contains(status, want) {
			t.Errorf("the status does not have %q: %s", want, status)
		}
	}
	if n := strings.Count(d.git(d.dir, "log", "--format=%s"), "Do add of dag/team"); n != 1 {
		t.Errorf("it landed %d times: %s", n, status)
	}
}
