//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// pipelineFiles are a tree with two engineers who work at once. The inspector and the tester send the change of each back once; then a person has
// to answer, and a third engineer goes on.
var pipelineFiles = map[string]string{
	"reconcile.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {runs: {grace: 1s}}\n",
	".gitignore":     "state/\n.reconcile/\n", ".flake8": "", "pytest.ini": "",
	"test_adder.py": "import adder\n", "test_sorter.py": "import sorter\n", "test_viewer.py": "import viewer\n",
	"specs/sessions/work.yaml":   "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\nspec: {title: Work, pipeline: {}}\n",
	"specs/agents/coder.yaml":    agentSpec("coder", "role: engineer, concurrency: 2, workspace: clone, sandbox: {level: none}, runner: {command: {argv: [sh, agents/coder.sh]}}"),
	"specs/agents/reviewer.yaml": agentSpec("reviewer", "runner: {human: {}}"),
	"agents/coder.sh": liveHead + `case $(cat) in
*'sent back by the tester'*) echo good ;;
*'sent back by the inspector'*) echo neither ;;
*) echo bad ;;
esac > "$RECONCILE_NODE.py"
echo 'done: all tests pass'
`,
	"specs/dags/team.yaml": `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: team}
spec:
  session: work
  nodes:
    - {name: adder, agent: coder, prompt: Write adder.py.}
    - {name: sorter, agent: coder, prompt: Write sorter.py.}
    - {name: review, agent: reviewer, needs: [adder, sorter], prompt: Look at both., approve: {form: {type: object, required: [good], properties: {good: {const: true}}}}}
    - {name: viewer, agent: coder, needs: [review], prompt: Write viewer.py.}
`,
}

// A tool leaves its start as an agent does: under the key of the verification, which the reconcile that runs it has in its environment.
const (
	toolHead = `#!/bin/sh
case "$*" in *--version*) exit ;; esac
case $PWD in *reconcile-control-*) echo "./adder.py:1:1: F401 'os' imported but unused"; exit 1 ;; esac
export RECONCILE_ROOT='TREE'; RECONCILE_RUN=$PWD
if [ -r /proc/$PPID/environ ]; then RECONCILE_RUN=$(tr '\0' '\n' < /proc/$PPID/environ | sed -n 's/^RECONCILE_RUN=\(.*\)\.check$/\1/p'); fi
`
	inspectTool = toolHead + liveHead + `for f in adder sorter viewer old; do
  case "$*" in *$f.py*) ;; *.py*) continue ;; esac
  if grep -qs bad $f.py; then echo "./$f.py:1:1: F401 'os' imported but unused"; code=1; fi
done
exit ${code-0}
`
	testTool = toolHead + liveHead + `for a; do case $a in --junitxml=*) report=${a#--junitxml=} ;; esac; done
exec > "$report"
echo '<testsuite>'
for f in adder sorter viewer old together edges; do
  case "$*" in *test_$f.py*) ;; *.py*) continue ;; esac
  case $f in together) code=old ;; edges) code=adder ;; *) code=$f ;; esac
  [ -e $code.py ] && [ -e test_$f.py ] || continue
  echo "<testcase classname='test_$f' name='test_one' file='test_$f.py' time='0.01'>"
  if [ $f != old ] && ! grep -q good $code.py; then echo "<failure message='assert 2 == 3'>E   assert 2 == 3</failure>"; failed=1; fi
  echo '</testcase>'
done
echo '</testsuite>'
exit ${failed-0}
`
)

// newPipelineTree makes a repository of files like pipelineFiles, with tools of its own in place of the machine's. What these do takes as long
// as what the agents do.
func newPipelineTree(t *testing.T, files map[string]string, makes ...string) *killedTree {
	t.Helper()
	k := newKilledTree(t, files, "team", makes...)
	bin, edit := filepath.Join(k.dir, "../bin"), strings.NewReplacer("TREE", k.dir)
	if !strings.Contains(files["agents/coder.sh"], takesLong) {
		edit = strings.NewReplacer("TREE", k.dir, takesLong, "")
	}
	writeFiles(t, bin, map[string]string{"flake8": edit.Replace(inspectTool), "pytest": edit.Replace(testTool)})
	for _, name := range []string{"flake8", "pytest"} {
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"git", "sh", "cat", "grep", "mkdir", "ps", "rm", "sed", "sleep", "tr"} {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name + " is needed")
		}
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	k.env = append(k.env, "PATH="+bin)
	for _, args := range []string{"init -q -b main .", "config user.name a", "config user.email a@example.org", "add .", "commit -qm Start"} {
		k.git(strings.Fields(args)...)
	}
	return k
}

// git runs git in the tree, and returns what it prints.
func (k *killedTree) git(args ...string) string {
	k.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = k.dir, k.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// TestPipelinesKilledTenTimes kills the runs of pipelines, while engineers, inspectors and testers work, and landings: no verdict on record is
// made again, no two engineers are in one workspace, and each change lands once.
func TestPipelinesKilledTenTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs pipelines with many kills")
	}
	t.Parallel()
	makes := []string{"adder.py", "sorter.py", "viewer.py"}
	undisturbed, killed := newPipelineTree(t, pipelineFiles, makes...), newPipelineTree(t, pipelineFiles, makes...)
	killedTenTimes(t, undisturbed, killed, map[string]string{"specs/actions/review.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Action\n" +
		"metadata: {name: review}\nspec: {verb: approve, target: dag/team, node: review, answer: '{\"good\": true}'}\n"})
	for _, k := range []*killedTree{undisturbed, killed} {
		log := strings.Split(strings.TrimSpace(k.git("log", "--format=%s")), "\n")
		if len(log) != 4 || log[0] != "Do viewer of dag/team" {
			t.Errorf("landed %q, want each once", log)
		}
		if end := k.end(); !strings.Contains(end, "\nviewer Succeeded") || !strings.Contains(end, "\nviewer.py: good") {
			t.Error(end)
		}
		if left := k.git("status", "--porcelain", "--untracked-files=no"); left != "" {
			t.Error(left)
		}
	}
}

// verifiedFiles are a tree in which one pipeline and then its session are verified: the engineer hands over, is sent back by the inspector's
// tools, the inspector and the tester, and lands with a test of the tester; then the inspection and the tests of the session find something once each, which an architect plans to mend.
func verifiedFiles() map[string]string {
	files := maps.Clone(pipelineFiles)
	for _, f := range []string{"specs/agents/reviewer.yaml", "test_sorter.py", "test_viewer.py"} {
		delete(files, f)
	}
	files[".gitignore"] += "specs/planchanges/\nspecs/observations/\nspecs/dags/work-*\nmemory/\n"
	files["old.py"], files["test_old.py"], files["test_together.py"] = "bad\n", "import old\n", "import os\n"
	files["specs/sessions/work.yaml"] = "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\n" +
		"spec: {title: Work, whenDone: complete, pipeline: {inspector: critic, tester: prober}, quality: {fix: true}}\n"
	for agent, role := range map[string]string{"critic": "inspector", "prober": "tester"} {
		files["specs/agents/"+agent+".yaml"] = agentSpec(agent, "role: "+role+", workspace: clone, sandbox: {level: none}, runner: {command: {argv: [sh, agents/"+agent+".sh], output: json}}")
	}
	files["agents/critic.sh"] = liveHead + `cat > /dev/null
if grep -qs neither adder.py; then echo '{"findings": [{"file": "adder.py", "line": 1, "severity": "high", "category": "correctness", "message": "It is neither."}]}'; exit; fi
echo '{"findings": [], "summary": "Read it."}'
`
	files["agents/prober.sh"] = liveHead + `cat > /dev/null
if [ -e adder.py ]; then echo 'import adder' > test_edges.py; fi
echo '{"plan": ["The edges"], "failures": [], "summary": "Wrote it."}'
`
	files["specs/agents/coder.yaml"] = agentSpec("coder", "role: engineer, workspace: clone, sandbox: {level: none}, runner: {command: {argv: [sh, agents/coder.sh], output: json}}")
	files["specs/agents/lead.yaml"] = agentSpec("lead", "role: architect, workspace: inPlace, sandbox: {level: none}, runner: {command: {argv: [sh, agents/lead.sh], output: json}}")
	files["agents/coder.sh"] = liveHead + `case $RECONCILE_NODE$(cat) in
mend*'assert 2 == 3'*) echo good > old.py ;;
mend*) echo neither > old.py ;;
*'sent back by the tester'*) echo good > adder.py ;;
*'It is neither.'*) echo fails > adder.py ;;
*'sent back by the inspector'*) echo neither > adder.py ;;
*'as pipeline 1 of it'*) echo bad > adder.py ;;
*) echo half > adder.py; echo '{"reconcile": 1, "status": "needs_handoff", "summary": "Half.", "remaining": ["the rest"]}'; exit ;;
esac
echo '{"reconcile": 1, "status": "done", "result": "ok"}'
`
	files["agents/lead.sh"] = liveHead + `case $(cat) in
*'Plan how it is mended'*) echo '{"tasks": [{"name": "mend", "agent": "coder", "files": ["old.py"], "prompt": "Mend it."}]}' ;;
*) echo '{"accept": true, "instructions": "Be good."}' ;;
esac
`
	files["specs/dags/team.yaml"] = `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: team}
spec: {session: work, nodes: [{name: adder, agent: coder, prompt: Write adder.py.}]}
`
	return files
}

// TestSessionKilledAtEachStep has programs kill the reconcile that started them, as they begin or end their work: every turn of the engineer
// and of the architect, each inspection and each test, of the pipelines and of the session. What began before the kill goes on beside the next
// run until that ends it. In one tree steps are struck once each, in another one a step ten times in a row. The end is always that of a run
// that nothing happened to. By default a sample of the steps is struck, else all of them with RECONCILE_SWEEP=all.
func TestSessionKilledAtEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a session with many kills")
	}
	t.Parallel()
	undisturbed := newPipelineTree(t, verifiedFiles(), "adder.py", "old.py")
	undisturbed.run(0)
	want, steps := undisturbed.verified(), len(undisturbed.starts())
	for _, text := range []string{"session Completed Verified True", "\nadder.py: good", "\nold.py: good", "\nTest adder of dag/team\n", "dag/team:adder/0 dag/team:adder/1 ", "\nDo mend of dag/work-fix-2\n"} {
		if !strings.Contains(want, text) {
			t.Fatalf("undisturbed, it ended without %q:\n%s", text, want)
		}
	}
	type plan struct {
		name    string
		strikes map[string]string
	}
	var plans []plan
	t.Logf("%d steps", steps)
	for _, when := range []string{"begin", "end"} {
		each := map[string]string{}
		for step := range steps {
			if mutants.All() || rand.IntN(3) == 0 {
				each[fmt.Sprint("strikes/", 1+step+len(each), ".", when)] = "" // each kill adds a start
			}
		}
		plans = append(plans, plan{"each at its " + when, each})
		for step := range steps {
			if !mutants.All() && rand.IntN(2*steps) != 0 {
				continue
			}
			ten := map[string]string{}
			for i := range 10 {
				ten[fmt.Sprint("strikes/", 1+step+i, ".", when)] = ""
			}
			plans = append(plans, plan{fmt.Sprintf("step %d ten times at its %s", step+1, when), ten})
		}
	}
	for _, p := range plans {
		t.Run(p.name, func(t *testing.T) {
			k := newPipelineTree(t, verifiedFiles(), "adder.py", "old.py")
			writeFiles(t, filepath.Dir(k.dir), p.strikes)
			for before := -1; before < k.kills; {
				before = k.kills
				k.run(0)
			}
			if k.kills < len(p.strikes) {
				t.Errorf("%d of %d kills in %d starts", k.kills, len(p.strikes), len(k.starts()))
			}
			if got := k.verified(); got != want {
				t.Errorf("after %d kills:\n%s", k.kills, firstDifference(want, got))
			}
			if twice, err := os.ReadFile(filepath.Join(k.dir, "../twice")); err == nil {
				t.Errorf("these ran beside another one in their workspace: %s", twice)
			}
			if left := k.git("status", "--porcelain", "--untracked-files=no"); left != "" {
				t.Errorf("not committed: %s", left)
			}
			starts := len(k.starts())
			if k.run(0); len(k.starts()) != starts {
				t.Errorf("a further run did something: %q", k.starts()[starts:])
			}
		})
	}
}

// starts are the keys of the runs that began, in their order.
func (k *killedTree) starts() []string {
	data, _ := os.ReadFile(filepath.Join(k.dir, "../effects"))
	return strings.Fields(string(data))
}

// landed is the end of a tree, with its hand-offs and the commits.
func (k *killedTree) landed() string { return k.handedOver() + k.git("log", "--format=%s") }

// handedOver is the end of a DAG, with its hand-offs and their records.
func (k *killedTree) handedOver() string {
	var lines []string
	for _, n := range k.nodes() {
		if h := n.Handoff; h != nil {
			lines = append(lines, fmt.Sprintln("pipeline", h.Index))
			for _, x := range h.Chain {
				lines = append(lines, fmt.Sprintln(x.Index, x.Phase, x.Reason, x.Instructions))
			}
		}
	}
	err := eachJSON(k.dir, "state/checkpoints/*/*.json", func(c schemas.Checkpoint) error {
		lines = append(lines, fmt.Sprintln(c.Handoff.OldPipelineID, c.Handoff.NewPipelineID, c.Handoff.HandoffReason, c.Handoff.Engineer.Remaining, len(c.Handoff.Inspector.PendingForEngineer)))
		return nil
	})
	if err != nil {
		k.Fatal(err)
	}
	return k.end() + "\n" + strings.Join(lines, "")
}

// verified is the end of a tree whose session was verified.
func (k *killedTree) verified() string {
	k.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, "state/sessions/work.json"))
	var st struct{ Status schemas.SessionStatus }
	if err = errors.Join(err, json.Unmarshal(data, &st)); err != nil {
		k.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "session %s", st.Status.Phase)
	for _, c := range st.Status.Conditions {
		if c.Type == "Verified" {
			fmt.Fprintf(&b, " Verified %s %s", c.Status, c.Reason)
		}
	}
	team := k.dag
	defer func() { k.dag = team }()
	for _, k.dag = range []string{team, "work-fix-1-plan", "work-fix-1", "work-fix-2-plan", "work-fix-2"} {
		end := k.handedOver()
		if k.dag != team { // whose keys have a commit, and so the time of it
			end = regexp.MustCompile("sha256:[0-9a-f]+").ReplaceAllString(end, "")
		}
		b.WriteString("\n" + end)
	}
	return b.String() + k.git("log", "--format=%s")
}

// eachJSON calls do with the value of each file that matches.
func eachJSON[T any](root, pattern string, do func(T) error) error {
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return err
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for _, line := range w {
		if !strings.Contains(got, line) {
			fmt.Fprintf(&b, "missing: %s\n", line)
		}
	}
	for _, line := range g {
		if !strings.Contains(want, line) {
			fmt.Fprintf(&b, "added:   %s\n", line)
		}
	}
	return b.String()
}
