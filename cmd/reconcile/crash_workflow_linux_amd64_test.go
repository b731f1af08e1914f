package main

import (
	"strings"
	"testing"
)

// workflowStrikes are the run of the workflow of examples/issue-to-change: from the start to the question to a person, and from the answer to
// the end.
func workflowStrikes(t *testing.T) []strike {
	files := folderFiles(t, "../../examples/issue-to-change", agentHead)
	files["specs/actions/go.yaml"] = startGo
	answer := map[string]string{"specs/actions/release.yaml": answerRelease}
	return []strike{{name: "start", files: files}, {name: "answer", files: files, before: [][]string{{"run"}}, change: answer}}
}

// TestCrashWorkflow kills a workflow's run before calls that change files: while its session and DAG are made, in each step, on the way back
// from the review, during the question and after a person's answer. The next run always ends in the same way; no recorded result is made
// again, and no key has two runs. By default a sample of the calls is struck, else all of them with RECONCILE_SWEEP=all.
func TestCrashWorkflow(t *testing.T) {
	ways := blows(t, 61, 0, 0, 0)
	for _, s := range workflowStrikes(t) {
		s.run(t, ways)
	}
}

// expandedStrikes are the run of the DAG of expandedFiles: to the task of a person, and from there to the end.
func expandedStrikes() []strike {
	files := expandedFiles(agentHead)
	// The architect learns how the nodes are, so all others have ended.
	files["specs/change.yaml"] = strings.Replace(files["specs/change.yaml"], "plan, needs: [list]", "plan, needs: [judge]", 1)
	return []strike{{name: "expanded", files: files},
		{name: "signed", files: files, before: [][]string{{"run"}}, change: map[string]string{"specs/actions/sign.yaml": answerSign}}}
}

// TestCrashExpanded kills the run of a DAG with matrices, a loop, a call, final nodes and a change of its plan before calls that change
// files, as TestCrashWorkflow does.
func TestCrashExpanded(t *testing.T) {
	ways := blows(t, 73, 0, 0, 0)
	for _, s := range expandedStrikes() {
		s.run(t, ways)
	}
}
