package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
	"reconcile.dev/reconcile/controllers/mirror"
)

// newRunner returns a machine with the workflows, on which act runs them as GitHub would. It has no network: of actions
// of others there are stand-ins, and instead of our action one that puts program on the PATH, a folder.
func newRunner(t *testing.T, program string) *machine {
	t.Helper()
	act, err := exec.LookPath("act")
	if err != nil {
		t.Skipf("SKIPPED, the workflows were not run as wholes: %v\n\"go install github.com/nektos/act@v0.2.89\" installs it", err)
	}
	m := newMachine(t)
	m.env = append(m.env, "ACT="+act)
	if program == "" {
		program, _, _ = strings.Cut(strings.TrimPrefix(m.env[0], "PATH="), string(filepath.ListSeparator))
	}
	m.must("git init -q -b main; " + identity + "reconcile init -q --example; reconcile init -q --github --release v1.2.3")
	m.stub(".github/actions/reconcile", "echo '"+program+"' >> \"$GITHUB_PATH\"")
	m.must("git add .; git commit -qm First")
	return m
}

// stub writes an action in a folder that does a script, and takes whatever input the workflows give to any.
func (m *machine) stub(dir, script string) string {
	m.Helper()
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(m.dir, dir)
	}
	text := "name: stub\ndescription: stands in\ninputs:\n"
	for _, in := range []string{"name", "path", "run-id", "github-token", "if-no-files-found", "retention-days"} {
		text += "  " + in + ": {description: as there, required: false}\n"
	}
	text += "runs:\n  using: composite\n  steps:\n    - shell: bash\n      env: {AT: \"${{ inputs.path }}\"}\n      run: " + script + "\n"
	writeFiles(m.T, dir, map[string]string{"action.yml": text})
	return dir
}

// act runs a workflow for an event, and returns what act prints. stubs are the folders of stand-ins by the hash in a pin.
func (m *machine) act(workflow, name string, event any, stubs map[string]string, env ...string) (int, string) {
	m.Helper()
	data, err := json.Marshal(event)
	if err != nil {
		m.Fatal(err)
	}
	writeFiles(m.T, m.temp, map[string]string{"event.json": string(data)})
	script := "\"$ACT\" " + name + " -W .github/workflows/" + workflow + " -e \"$RUNNER_TEMP/event.json\" -P ubuntu-latest=-self-hosted " +
		"-s GITHUB_TOKEN=" + githubtest.Token(githubtest.Bot)
	for pin, dir := range stubs {
		script += " --local-repository '" + pin + "=" + dir + "'"
	}
	return m.sh(script, env...)
}

// pin is an action as a workflow names it, with its hash.
func pin(t *testing.T, workflow, action string) string {
	t.Helper()
	text, err := os.ReadFile("internal/engine/scaffold/actions/.github/workflows/" + workflow)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(regexp.QuoteMeta(action) + "@[0-9a-f]{40}").FindString(string(text))
	if name == "" {
		t.Fatalf("%s does not use %s", workflow, action)
	}
	return name
}

type fields = map[string]any

// TestWhatStartsReconcile runs reconcile.yml for what may and what may not start it.
func TestWhatStartsReconcile(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	m := newRunner(t, bin)
	ran := filepath.Join(bin, "ran")
	fake := "#!/bin/sh\necho \"$@\" > " + ran + "\n"
	if err := os.WriteFile(filepath.Join(bin, "reconcile"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	repository := fields{"default_branch": "main"}
	push := func(branch, message string) fields {
		return fields{"ref": "refs/heads/" + branch, "head_commit": fields{"message": message}, "repository": repository}
	}
	comment := func(body, kind, role string) fields {
		return fields{"action": "created", "repository": repository, "issue": fields{"number": 1},
			"comment": fields{"body": body, "user": fields{"type": kind}, "author_association": role}}
	}
	for what, c := range map[string]struct {
		event  string
		data   fields
		starts bool
	}{
		"a push":                  {"push", push("main", "Declare"), true},
		"a push of ours":          {"push", push("main", "Record d\n\nReconcile-Objects: 1"), false},
		"a push that quotes ours": {"push", push("main", "Explain\n\nReconcile-Objects: 1\n\nis a trailer."), true},
		"a push to a topic":       {"push", push("topic", "Declare"), false},
		"a comment of a member":   {"issue_comment", comment("/approve", "User", "MEMBER"), true},
		"a comment of a stranger": {"issue_comment", comment("/approve", "User", "NONE"), false},
		"a comment of a program":  {"issue_comment", comment("/approve", "Bot", "MEMBER"), false},
		"a comment of ours":       {"issue_comment", comment("x\n\n<!-- reconcile status/dag/d 00 -->", "User", "OWNER"), false},
		"the clock":               {"schedule", fields{"repository": repository}, true},
		"by hand":                 {"workflow_dispatch", fields{"repository": repository}, true},
	} {
		_ = os.Remove(ran) // it is not there where nothing was started
		if head, ok := c.data["head_commit"].(fields); ok {
			m.must("git commit -q --amend --allow-empty -m \"$MESSAGE\"", "MESSAGE="+head["message"].(string))
		}
		code, out := m.act("reconcile.yml", c.event, c.data, nil)
		args, err := os.ReadFile(ran)
		if code != 0 || (err == nil) != c.starts || c.starts && string(args) != "--push\n" {
			t.Errorf("%s: started %v with %q, want %v; exit %d\n%s", what, err == nil, args, c.starts, code, out)
		}
	}
}

// TestPullRequestUnderAct runs plan.yml and plan-comment.yml from a pull request to the comment on it.
func TestPullRequestUnderAct(t *testing.T) {
	t.Parallel()
	p, m := newPulls(t), newRunner(t, "")
	settings, err := os.ReadFile(filepath.Join(p.dir, "reconcile.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, m.dir, map[string]string{"reconcile.yaml": string(settings)})
	m.must("git remote add origin https://github.com/" + p.rig.Repo + "; git commit -qam Settings; reconcile -q --commit; " +
		"git switch -qc change; sed -i 's/uname, -sm/uname, -s/' specs/dags/survey.yaml; git commit -qam Change; " +
		"git switch -q --detach main; git merge -q --no-ff --no-edit change")
	kept := filepath.Join(m.temp, "kept.json")
	upload := m.stub(filepath.Join(m.temp, "upload"), "cp \"$AT\" '"+kept+"'")
	download := m.stub(filepath.Join(m.temp, "download"), "mkdir -p \"$AT\" && cp '"+kept+"' \"$AT/plan.json\"")
	code, out := m.act("plan.yml", "pull_request", fields{"number": p.number, "pull_request": fields{"number": p.number}},
		map[string]string{pin(t, "plan.yml", "actions/upload-artifact"): upload})
	if code != 0 {
		t.Fatalf("plan.yml: exit %d\n%s", code, out)
	}
	m.must("git switch -q main")
	said := func(conclusion, event string) string {
		t.Helper()
		code, out := m.act("plan-comment.yml", "workflow_run", fields{"workflow_run": fields{"id": 1, "event": event,
			"conclusion": conclusion, "head_sha": p.head, "head_branch": "change", "head_repository": fields{"id": 2}}},
			map[string]string{pin(t, "plan-comment.yml", "actions/download-artifact"): download})
		if code != 0 {
			t.Fatalf("plan-comment.yml: exit %d\n%s", code, out)
		}
		return strings.Join(p.comments(p.number), "\n")
	}
	if got := said("cancelled", "pull_request") + said("success", "push"); got != "" {
		t.Errorf("of no plan there stands %s", got)
	}
	got := said("success", "pull_request")
	if !strings.Contains(got, "`dag/survey`: `machine` | definition changed") || strings.Count(got, mirror.PullKey(p.number)) != 1 {
		t.Errorf("there stands %s", got)
	}
}
