//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
	"reconcile.dev/reconcile/schemas"
)

// verifiedTree is added to that of a desk: an agent whose changes the inspector and the tester refuse, however often it works.
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
spec:
  session: health
  nodes:
    - {name: add, agent: coder, prompt: Write add.py., pipeline: {}}
    - {name: keep, agent: coder, prompt: Write keep.py., pipeline: {}}
    - {name: cut, agent: coder, prompt: Write cut.py., pipeline: {}}
-- agent.sh --
prompt=$(cat)
echo "$RECONCILE_NODE: $prompt" >> "$HOME/prompts"
case $prompt in *"Try harder."*) echo worse > $RECONCILE_NODE.py ;; *) echo bad > $RECONCILE_NODE.py ;; esac
echo done
-- .gitignore --
state/
.reconcile/
-- .flake8 --
-- pytest.ini --
-- test_add.py --
import add
-- test_keep.py --
import keep
-- test_cut.py --
import cut
-- bin/flake8 --
#!/bin/sh
case "$*" in *--version*) exit ;; esac
for f in add keep cut; do case "$*" in *$f.py*) echo "./$f.py:1:1: F401 'os' imported but unused" ;; esac; done
exit 1
-- bin/pytest --
#!/bin/sh
for a; do case $a in --junitxml=*) report=${a#--junitxml=} ;; esac; done
exec > "$report"
echo '<testsuite>'
for f in add keep cut; do case "$*" in *test_$f.py*)
  echo "<testcase classname='test_$f' name='test_one' file='test_$f.py' time='0.01'><failure message='assert 2 == 3'>E</failure></testcase>" ;;
esac; done
echo '</testsuite>'
exit 1
`

// TestCommentsDecidePipelines: people ask in comments about a task, and take its change as it is, step by step; others cannot.
func TestCommentsDecidePipelines(t *testing.T) {
	t.Parallel()
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
	for _, name := range []string{"git", "sh", "cat", "echo"} { // and no tool of the machine
		program, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
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
	program, home := self(t), t.TempDir()
	run := func() {
		t.Helper()
		cmd := exec.Command(program, "-C", d.dir, "run")
		cmd.Env = append(os.Environ(), "GITHUB_TOKEN="+githubtest.Token(githubtest.Bot), egress.AllowVariable+"="+d.rig.URL+",checks",
			"PATH="+bin, "HOME="+home)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); cmd.ProcessState == nil || !cmd.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, said.String())
		}
		t.Log(said.String())
	}
	comments := func() string { return strings.ReplaceAll(d.comments(), "\u200b", "") }
	say := func(who, text string) int64 { return d.rig.Comment(t, who, d.issue, text) }
	digest := func(node string) string { // of the change that a person decides about
		t.Helper()
		var st struct{ Status schemas.DAGStatus }
		if err := json.Unmarshal([]byte(d.reads("state/dags/team.json")), &st); err != nil {
			t.Fatal(err)
		}
		n := st.Status.Nodes.Of(node)
		if n.Pipeline == nil || n.Pipeline.Digest == "" {
			t.Fatalf("nobody has to decide about %s: %+v", node, n)
		}
		return n.Pipeline.Digest
	}
	landed := func(node string) int {
		return strings.Count(d.git(d.dir, "log", "--format=%s"), "Do "+node+" of dag/team")
	}

	run()
	say(githubtest.Mona, "/task add query")
	bare := say(githubtest.Owner, "/task add ignore-inspector It is generated.")
	run()
	d.expect(bare, "confused")
	for _, want := range []string{"F401", "ignore-inspector " + digest("add")} {
		if !strings.Contains(comments(), want) {
			t.Errorf("no comment has %q:\n%s", want, comments())
		}
	}
	old := digest("add")
	say(githubtest.Stranger, "/task add ignore-inspector "+old+" I say so.")
	say(githubtest.Stranger, "/approve dag/team keep "+digest("keep"))
	more := say(githubtest.Owner, "/task add prompt Try harder.")
	run()
	d.expect(more, "eyes", "+1")
	if got := d.reads("state/dags/team.json"); strings.Contains(got, "I say so.") || landed("add")+landed("keep") != 0 {
		t.Errorf("a stranger decided: %s", got)
	}
	if digest("add") == old {
		t.Error("the agent did not go on with what a person told it")
	}
	// One step is ignored, and the other one still counts. A digest is that of one change.
	late := say(githubtest.Owner, "/task add ignore-tester "+old+" They are slow.")
	say(githubtest.Owner, "/task add handoff Look at it anew.")
	run()
	d.expect(late, "confused")
	say(githubtest.Owner, "/task add stop-handoff No more.")
	say(githubtest.Owner, "/task add ignore-inspector "+digest("add")+" It is generated.")
	run()
	if landed("add") != 0 {
		t.Error("it landed, and the tester refused it")
	}
	say(githubtest.Owner, "/task add ignore-inspector "+digest("add")+" It is generated.")
	say(githubtest.Owner, "/task add ignore-tester "+digest("add")+" They are slow.")
	say(githubtest.Owner, "/approve dag/team keep "+digest("keep"))
	say(githubtest.Owner, "/skip dag/team cut, nobody needs it")
	run()
	status := d.reads("state/dags/team.json")
	for _, want := range []string{"github:" + githubtest.Owner, "It is generated.", "They are slow.", `"Skipped"`, "(claimed): Look at it anew.", "No more."} {
		if !strings.Contains(status, want) {
			t.Errorf("the status does not have %q: %s", want, status)
		}
	}
	if landed("add") != 1 || landed("keep") != 1 || landed("cut") != 0 {
		t.Errorf("landed: %s", d.git(d.dir, "log", "--format=%s"))
	}
	prompts, err := os.ReadFile(filepath.Join(home, "prompts"))
	for _, want := range []string{"Try harder.", "Look at it anew."} {
		if err != nil || !strings.Contains(string(prompts), want) {
			t.Errorf("the agent was not told %q: %v", want, err)
		}
	}
}
