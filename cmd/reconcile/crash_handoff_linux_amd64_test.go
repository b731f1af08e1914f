package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
	"reconcile.dev/reconcile/schemas"
)

// handoffTree has an agent whose context fills up until it is told of a checkpoint.
var handoffTree = map[string]string{
	"reconcile.yaml": `apiVersion: reconcile.dev/v1alpha1
kind: Settings
metadata: {name: settings}
spec:
  profiles:
    filling:
      argv: [sh, agent.sh, "{resume}"]
      resume: ["{value}"]
      events:
        - {when: {type: start}, session: id}
        - {when: {type: use}, usage: {contextUsed: used, contextWindow: window}}
        - {when: {type: end}, end: success, text: text}
`,
	"specs/sessions/s.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: s}\nspec: {owner: ada}\n",
	"specs/agents/l.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: l}\n" +
		"spec: {role: librarian, workspace: inPlace, runner: {profile: filling}}\n",
	"specs/dags/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: work}\n" +
		"spec: {session: s, nodes: [{name: n, agent: l, prompt: Read all.}]}\n",
	"agent.sh": `task=$(cat)
case $1$task in
first*) ;; # is as full as before
*'--- begin checkpoint'*)
  echo '{"type": "start", "id": "second"}'
  echo '{"type": "end", "text": "done"}'
  exit ;;
esac
echo '{"type": "start", "id": "first"}'
echo '{"type": "use", "used": 52000, "window": 100000}'
echo '{"type": "use", "used": 96000, "window": 100000}'
exec sleep 60
`,
}

// TestCrashHandoff kills reconcile and the agent before the calls that change files during a hand-off: before and after each checkpoint
// is written, the old session ends, and the new one begins. The next run always ends in the same way: one success in a new session,
// no checkpoint twice, and nothing to do after it. By default a sample of the calls is struck, else all of them with
// RECONCILE_SWEEP=all.
func TestCrashHandoff(t *testing.T) {
	for _, b := range blows(t, 23, 0, 0, 0) {
		b.run(t, "hand-off", func(t *testing.T) (int, error) {
			k := strike{files: handoffTree, cmd: []string{"run"}}
			return crashtest.EveryNth(t.Context(), b.every, k.fixture(t)(t, b), func(s crashtest.Spec, r crashtest.Result) error {
				if err := handedOff(s); err != nil {
					return fmt.Errorf("%w\n%s", err, r.Stderr)
				}
				return nil
			})
		})
	}
}

// handedOff runs a tree once more after a crash, and checks its end.
func handedOff(s crashtest.Spec) error {
	if err := parses(s.Root); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	if out, err := rerun(s); err != nil {
		return fmt.Errorf("the next run: %w\n%s", err, out)
	}
	successes := 0
	err := eachJSON(s.Root, "state/runs/dags/work/*.json", func(r schemas.Run) error {
		if r.Outcome != schemas.OutcomeSucceeded {
			return nil
		}
		if successes++; r.Turn == nil || r.Turn.SessionID != "second" {
			return fmt.Errorf("%s succeeded in the session %+v, not in a new one", r.Key, r.Turn)
		}
		return nil
	})
	if err != nil || successes != 1 {
		return errors.Join(err, fmt.Errorf("%d successes on record, want one", successes))
	}
	seen := map[string]bool{}
	err = eachJSON(s.Root, "state/checkpoints/s/*.json", func(c schemas.Checkpoint) error {
		key := fmt.Sprintf("%d %% of %s", c.Threshold, c.AgentSession)
		if seen[key] {
			return fmt.Errorf("two checkpoints at %s", key)
		}
		seen[key] = true
		return nil
	})
	if err != nil || !seen["95 % of first"] {
		return errors.Join(err, fmt.Errorf("checkpoints %v, want one at 95 %%", seen))
	}
	left, err := filepath.Glob(filepath.Join(s.Root, ".reconcile/work/*"))
	left = slices.DeleteFunc(left, func(name string) bool { return strings.HasSuffix(name, ".session.json") }) // goes when it is old
	if err != nil || len(left) != 0 {
		return errors.Join(err, fmt.Errorf("left %v", left))
	}
	before, err := outcomeOf(s.Root)
	if err != nil {
		return err
	}
	if out, err := rerun(s); err != nil {
		return fmt.Errorf("a further run: %w\n%s", err, out)
	}
	after, err := outcomeOf(s.Root)
	if err == nil && after != before {
		err = fmt.Errorf("a further run changed something\n%s", firstDifference(before, after))
	}
	return err
}
