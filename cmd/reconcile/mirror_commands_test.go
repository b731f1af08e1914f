package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// commandedTree is added to that of a desk: a workflow, and a task of an agent that is a program.
var commandedTree = map[string]string{
	"specs/agents/coder.yaml": agentSpec("coder", "role: coder, workspace: inPlace, runner: {command: {argv: [sh, -c, 'cat > asked.txt; echo done']}}"),
	"specs/workflows/feature.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Workflow\nmetadata: {name: feature}\n" +
		"spec: {params: {tone: {enum: [calm, 'very calm'], default: calm}}, steps: [{id: ask, agent: ada, prompt: \"{{ issue.title }}\"}]}\n",
	"specs/dags/build.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: build}\n" +
		"spec: {session: health, nodes: [{name: plan, agent: ada, prompt: Plan it.}, {name: code, needs: [plan], agent: coder, prompt: Code it.}]}\n",
}

// TestEachCommandOnGitHub writes each command in a comment. It has its effect in the next run, once, and its author is told.
func TestEachCommandOnGitHub(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	writeFiles(t, d.dir, commandedTree)
	d.run()
	const checks, build, question = "state/dags/checks.json", "state/dags/build.json", "state/clarificationrequests/release.json"
	run := fmt.Sprintf("feature-%d", d.issue)
	for _, step := range []struct {
		comment, receipt string
		path, has        string // a file, and a pattern that is in it
		reply            string
	}{
		{"/hold dag/checks publish until Monday", "eyes +1", checks, `"verb": "hold"`, ""},
		{"/explain dag/checks publish", "+1", "", "", "it waits for review"},
		{"/approve dag/checks publish", "eyes +1", checks, `"verb": "approve"`, ""},
		{"/skip dag/checks review, not this time", "eyes +1", checks, `"state": "Skipped"`, ""},
		{"/retry dag/checks review", "eyes +1", checks, `"state": "Blocked"`, ""},
		{"/cancel dag/checks enough", "confused", "", "", "there is no node `enough`"},
		{"/cancel dag/checks - enough", "eyes +1", checks, `"phase": "Cancelled"`, ""},
		{"/retry dag/checks", "eyes +1", checks, `"phase": "Paused"`, ""},
		{"/task code prompt Mind the tests.", "eyes +1", build, `"verb": "prompt"`, ""},
		{"/task code query", "+1", "", "", "code"},
		{"/approve dag/build plan\n```\nBig.\n```", "eyes +1", "asked.txt", `Mind the tests\.`, ""},
		{"/deny dag/build code no", "confused", "", "", "/deny dag/build code no"},
		{"/clarify", "+1", "", "", fmt.Sprintf("CLR-%d-001", d.issue)},
		{fmt.Sprintf("/answer CLR-%d-001 On Monday.", d.issue), "eyes +1", question, `"phase": "answered"`, ""},
		{fmt.Sprintf("/escalate CLR-%d-001 not sure", d.issue), "eyes +1", question, `"phase": "escalated"`, ""},
		{fmt.Sprintf("/resolve CLR-%d-001 On Tuesday.", d.issue), "eyes +1", question, `"phase": "resolved"`, ""},
		{"/remember The port is 5432.", "eyes +1", "specs/observations/gh-*.yaml", `The port is 5432`, ""},
		{"/start feature tone=loud", "confused", "", "", "is not one of"},
		{"/start feature tone=\"very calm\" for the release", "eyes +1", "state/dags/" + run + ".json", `"phase": "Paused"`, ""},
		{"/start feature tone=calm", "confused", "", "", "another value of the parameter tone"},
		{"/start feature once more", "eyes +1", "state/sessions/" + run + ".json", `"phase": "Active"`, ""},
		{"/start faeture", "confused", "", "", "feature"},
		{"/status", "+1", "", "", run},
		{"/frobnicate", "", "", "", ""},
	} {
		before := d.comments()
		comment := d.rig.Comment(t, githubtest.Owner, d.issue, step.comment)
		d.run()
		d.expect(comment, strings.Fields(step.receipt)...)
		if reply := strings.TrimPrefix(d.comments(), before); !strings.Contains(reply, step.reply) {
			t.Errorf("%q: the reply lacks %q: %s", step.comment, step.reply, reply)
		}
		if step.path == "" {
			continue
		}
		paths, _ := filepath.Glob(filepath.Join(d.dir, step.path))
		if len(paths) != 1 {
			t.Errorf("%q: files %q", step.comment, paths)
			continue
		}
		name, _ := filepath.Rel(d.dir, paths[0])
		if got := d.reads(name); !regexp.MustCompile(step.has).MatchString(got) {
			t.Errorf("%q: %s does not have %s:\n%s", step.comment, name, step.has, got)
		}
	}
	if spec := d.reads("specs/dags/" + run + ".yaml"); !strings.Contains(spec, "tone: very calm") {
		t.Errorf("the start gave the parameter no value:\n%s", spec)
	}
	if more, _ := filepath.Glob(filepath.Join(d.dir, "specs/dags/feature-*")); len(more) != 1 {
		t.Errorf("two starts for the issue made %q", more)
	}
	d.quiet()
}
