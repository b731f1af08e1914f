//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

// A tool leaves its start as an agent does: under the key of the verification in whose checkout it is.
const (
	toolHead = `#!/bin/sh
case "$*" in *--version*) exit ;; esac
case $PWD in *reconcile-control-*) echo "./adder.py:1:1: F401 'os' imported but unused"; exit 1 ;; esac
export RECONCILE_ROOT='TREE'; at=${PWD##*/check.}; RECONCILE_RUN=dags/${at%%.*}/${at#*.}
`
	inspectTool = toolHead + liveHead + `for f in adder sorter viewer; do
  if grep -qs bad $f.py; then echo "./$f.py:1:1: F401 'os' imported but unused"; code=1; fi
done
exit ${code-0}
`
	testTool = toolHead + agentHead + `for a; do case $a in --junitxml=*) report=${a#--junitxml=} ;; esac; done
` + takesLong + `exec > "$report"
echo '<testsuite>'
for f in adder sorter viewer; do
  [ -e $f.py ] || continue
  echo "<testcase classname='test_$f' name='test_one' file='test_$f.py' time='0.01'>"
  if ! grep -q good $f.py; then echo "<failure message='assert 2 == 3'>E   assert 2 == 3</failure>"; code=1; fi
  echo '</testcase>'
done
echo '</testsuite>'
exit ${code-0}
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
