package main

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// workflowStrikes are the run of the workflow of examples/issue-to-change: from the start to the question to a person, and from the answer to
// the end.
func workflowStrikes(t *testing.T) []strike {
	files := folderFiles(t, "../../examples/issue-to-change")
	files["specs/actions/go.yaml"] = "apiVersion: reconcile.dev/v1alpha1\nkind: Action\nmetadata: {name: go}\n" +
		"spec: {verb: start, target: workflow/feature, issue: 42, text: \"# Greet people by name\"}\n"
	answer := map[string]string{"specs/actions/release.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Action\nmetadata: {name: release}\n" +
		"spec: {verb: approve, target: dag/feature-42, node: release, answer: '{\"release\": true}'}\n"}
	return []strike{{name: "start", files: files}, {name: "answer", files: files, before: [][]string{{"run"}}, change: answer}}
}

// TestCrashWorkflow kills a workflow's run before calls that change files: while its session and DAG are made, in each step, on the way back
// from the review, during the question and after a person's answer. The next run always ends in the same way; no recorded result is made
// again, and no key has two runs. By default a sample of the calls is struck, else all of them with RECONCILE_SWEEP=all.
func TestCrashWorkflow(t *testing.T) {
	for _, b := range blows(t, 29, 0, 0, 0) {
		for _, s := range workflowStrikes(t) {
			b.run(t, s.name, func(t *testing.T) (int, error) { return s.every(t, b) })
		}
	}
}

// folderFiles are the files of a folder by their paths in it.
func folderFiles(t *testing.T, dir string) map[string]string {
	out, tree := map[string]string{}, os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if out[name] = string(data); strings.HasPrefix(name, "agents/") {
			out[name] = agentHead + out[name]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
