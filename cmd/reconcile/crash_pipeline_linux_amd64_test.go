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

// TestCrashPipeline kills reconcile, the engineer and the tools before calls that change files of the tree during a pipeline: while the
// engineer works, the inspector and the tester look at its commit and send it back, and when it lands. The next run always ends in the same
// way: no recorded run is performed again, no two are in one workspace, and the change lands once. By default a sample of the calls is
// struck, else all of them with RECONCILE_SWEEP=all.
func TestCrashPipeline(t *testing.T) {
	for _, b := range blows(t, 61, 0, 0, 0) {
		b.run(t, "pipeline", func(t *testing.T) (int, error) {
			var k *killedTree
			fixture := func() (crashtest.Spec, error) {
				var err error
				if k != nil {
					err = errors.Join(os.RemoveAll(filepath.Dir(k.dir)), os.RemoveAll(k.home))
				}
				k = onePipeline(t)
				return crashtest.Spec{Cmd: []string{k.bin, "-q"}, Dir: k.dir, Root: k.dir, Env: k.env, Mode: b.mode}, err
			}
			s, err := fixture()
			if err != nil {
				return 0, err
			}
			if out, err := rerun(s); err != nil {
				return 0, fmt.Errorf("undisturbed: %w\n%s", err, out)
			}
			want := k.end() + "\n" + k.git("log", "--format=%s")
			if !strings.Contains(want, "\nadder.py: good\n") || strings.Count(want, "\nDo adder of dag/team\n") != 1 {
				return 0, fmt.Errorf("undisturbed: %s", want)
			}
			return crashtest.EveryNth(t.Context(), b.every, fixture, func(s crashtest.Spec, r crashtest.Result) error {
				if err := k.verifiedOnce(s, want); err != nil {
					return fmt.Errorf("%w\n%s", err, r.Stderr)
				}
				return nil
			})
		})
	}
}

// verifiedOnce runs a tree once more after a crash, and compares its end with that of a run that nothing happened to.
func (k *killedTree) verifiedOnce(s crashtest.Spec, want string) error {
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
	if got := k.end() + "\n" + k.git("log", "--format=%s"); got != want {
		return fmt.Errorf("another end than without the crash\n%s", firstDifference(want, got))
	}
	if left := k.git("status", "--porcelain", "--untracked-files=no"); left != "" {
		return fmt.Errorf("not committed: %s", left)
	}
	end, err := outcomeOf(k.dir)
	if out, failed := rerun(s); err != nil || failed != nil {
		return fmt.Errorf("a further run: %w\n%s", errors.Join(err, failed), out)
	}
	again, err := outcomeOf(k.dir)
	if err == nil && again != end {
		err = fmt.Errorf("a further run changed something\n%s", firstDifference(end, again))
	}
	return errors.Join(err, wholeRecords(k.dir))
}
