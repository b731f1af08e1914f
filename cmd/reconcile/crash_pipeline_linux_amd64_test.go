package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// onePipeline is the tree of pipelineFiles with one engineer, whose change the inspector and then the tester send back before it lands.
func onePipeline(t *testing.T) *killedTree {
	files := maps.Clone(pipelineFiles)
	delete(files, "specs/agents/reviewer.yaml")
	files["agents/coder.sh"] = strings.Replace(files["agents/coder.sh"], takesLong, "", 1)
	files["specs/dags/team.yaml"] = `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: team}
spec: {session: work, nodes: [{name: adder, agent: coder, prompt: Write adder.py.}]}
`
	return newPipelineTree(t, files, "adder.py")
}

// handedOverPipeline is the tree of onePipeline with an engineer who hands over before it has a change, and when the inspector has found something.
func handedOverPipeline(t *testing.T) *killedTree {
	files := maps.Clone(pipelineFiles)
	delete(files, "specs/agents/reviewer.yaml")
	files[".gitignore"] += "specs/planchanges/\nspecs/observations/\nspecs/dags/team-*\nmemory/\n"
	files["reconcile.yaml"] = "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {runs: {grace: 1s}, commands: {allow: [git version]}}\n"
	files["specs/agents/coder.yaml"] = agentSpec("coder", "role: engineer, workspace: clone, sandbox: {level: none}, runner: {command: {argv: [sh, agents/coder.sh], output: json}}")
	files["specs/agents/architect.yaml"] = agentSpec("architect", "workspace: inPlace, sandbox: {level: none}, runner: {command: {argv: [sh, agents/architect.sh], output: json}}")
	head := strings.Replace(liveHead, takesLong, "", 1)
	files["agents/coder.sh"] = head + `prompt=$(cat)
case $prompt in
*'as pipeline 2 of it'*) echo good > adder.py ;;
*'sent back by the inspector'*) echo '{"reconcile": 1, "status": "needs_handoff", "summary": "Full.", "remaining": ["the finding"]}'; exit ;;
*'as pipeline 1 of it'*) echo bad > adder.py ;;
*) echo half > adder.py; echo '{"reconcile": 1, "status": "needs_handoff", "summary": "Half.", "remaining": ["the rest"]}'; exit ;;
esac
echo '{"reconcile": 1, "status": "done", "result": "ok"}'
`
	files["agents/architect.sh"] = head + `case $(cat) in
*Full.*) echo '{"accept": true, "instructions": "Be quick."}' ;;
*) echo '{"accept": true, "instructions": "Be good.", "edit": {"modify": {"more": {"run": ["git", "version"]}}}}' ;;
esac
`
	files["specs/dags/team.yaml"] = `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: team}
spec: {session: work, nodes: [{name: adder, agent: coder, prompt: Write adder.py.}, {name: more, needs: [adder], run: [git, nothing]}]}
`
	return newPipelineTree(t, files, "adder.py")
}

// TestCrashPipeline kills reconcile, the engineer and the tools before calls that change files of the tree during a pipeline: while the
// engineer works, the inspector and the tester look at its commit and send it back, and when it lands. The next run always ends in the same
// way: no recorded run is performed again, no two are in one workspace, and the change lands once. By default a sample of the calls is
// struck, else all of them with RECONCILE_SWEEP=all.
func TestCrashPipeline(t *testing.T) {
	strikePipeline(t, "pipeline", 97, onePipeline, (*killedTree).landed)
}

// TestCrashPipelineHandoff does the same where the engineer hands its work over at first, and after it was sent back. An architect has its
// say each time, and changes another node the first time.
func TestCrashPipelineHandoff(t *testing.T) {
	strikePipeline(t, "hand-off of a pipeline", 197, handedOverPipeline, (*killedTree).landed)
}

// TestCrashVerifiedSession does the same where the session is verified as a whole, and two DAGs mend it.
func TestCrashVerifiedSession(t *testing.T) {
	strikePipeline(t, "verified session", 401, func(t *testing.T) *killedTree {
		files := verifiedFiles()
		for name, text := range files {
			if strings.HasPrefix(name, "agents/") {
				files[name] = strings.Replace(text, takesLong, "", 1)
			}
		}
		return newPipelineTree(t, files, "adder.py", "old.py")
	}, (*killedTree).verified)
}

// strikePipeline kills what a tree does before every n-th call, and compares the end with that of a run that nothing happened to. Where all calls are
// struck, that takes long: it is done in parts, and each tells how far it is.
func strikePipeline(t *testing.T, name string, every int, tree func(*testing.T) *killedTree, end func(*killedTree) string) {
	for _, b := range inParts(blows(t, every, 0, 0, 0)) {
		b.run(t, name, func(t *testing.T) (int, error) {
			var k *killedTree
			fixture := func() (crashtest.Spec, error) {
				var err error
				if k != nil {
					err = errors.Join(os.RemoveAll(filepath.Dir(k.dir)), os.RemoveAll(k.home), os.RemoveAll(filepath.Dir(k.bin)))
				}
				k = tree(t)
				return crashtest.Spec{Cmd: []string{k.bin, "-q"}, Dir: k.dir, Root: k.dir, Env: k.env, Mode: b.mode}, err
			}
			s, err := fixture()
			if err != nil {
				return 0, err
			}
			if out, err := rerun(s); err != nil {
				return 0, fmt.Errorf("undisturbed: %w\n%s", err, out)
			}
			want := end(k)
			if !strings.Contains(want, "\nadder.py: good\n") || strings.Count(want, "\nDo adder of dag/team\n") != 1 {
				return 0, fmt.Errorf("undisturbed: %s", want)
			}
			return b.strike(t.Context(), fixture, func(s crashtest.Spec, r crashtest.Result) error {
				t.Logf("struck at call %d", s.K)
				if err := k.verifiedOnce(s, want, end); err != nil {
					return fmt.Errorf("%w\n%s", err, r.Stderr)
				}
				return nil
			})
		})
	}
}

// verifiedOnce runs a tree once more after a crash, and compares its end with that of a run that nothing happened to.
func (k *killedTree) verifiedOnce(s crashtest.Spec, want string, end func(*killedTree) string) error {
	if err := parses(k.dir); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	recorded, before := recordedKeys(k.dir), effects(k.dir)
	if out, err := rerun(s); err != nil {
		return fmt.Errorf("the next run: %w\n%s", err, out)
	}
	after := effects(k.dir)
	for _, key := range recorded {
		if after[key] != before[key] {
			return fmt.Errorf("%s was on record and ran again", key)
		}
	}
	if twice, err := os.ReadFile(filepath.Join(k.dir, "../twice")); err == nil {
		return fmt.Errorf("these ran beside another one in their workspace: %s", twice)
	}
	if got := end(k); got != want {
		return fmt.Errorf("another end than without the crash\n%s", firstDifference(want, got))
	}
	if left := k.git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!specs/dags"); left != "" {
		return fmt.Errorf("not committed: %s", left)
	}
	outcome, err := outcomeOf(k.dir)
	if out, failed := rerun(s); err != nil || failed != nil {
		return fmt.Errorf("a further run: %w\n%s", errors.Join(err, failed), out)
	}
	again, err := outcomeOf(k.dir)
	if err == nil && again != outcome {
		err = fmt.Errorf("a further run changed something\n%s", firstDifference(outcome, again))
	}
	return errors.Join(err, wholeRecords(k.dir))
}
