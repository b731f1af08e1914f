package main

import "testing"

// TestCrashNotify kills a run that reports the end of a DAG before calls that change files. The next run reports it, and no report that is
// on record is made again.
func TestCrashNotify(t *testing.T) {
	files := map[string]string{
		"specs/s.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: one}\nspec: {title: One}\n",
		"specs/d.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: nightly}\nspec:\n  session: one\n" +
			"  onSuccess: [{command: [sh, tell.sh]}, {command: [sh, tell.sh, again]}]\n  nodes: [{name: a, run: ['true']}]\n",
		"tell.sh": "cat > /dev/null\necho told\n",
	}
	s := strike{name: "notify", files: files}
	s.run(t, blows(t, 37, 0, 0, 0))
}
