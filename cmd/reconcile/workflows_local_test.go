package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// local is a small runner of GitHub Actions. It takes the steps of a job in their order: actions/checkout is a fresh clone of hub with
// the depth 1, actions of the repository run by their own steps (Go is there), and the scripts run in bash with the environment of their step, where
// GITHUB_OUTPUT sets outputs and GITHUB_PATH adds to the PATH. It knows the conditions that compare the event's name or the output of a step with a text; another one, or another action,
// fails the test. It does not interpret when a workflow starts, nor permissions, concurrency and time limits: act does (see newRunner).
type local struct {
	*machine
	hub     string
	event   string
	secrets map[string]string
	outputs map[string]string // by steps.ID.outputs.NAME, and inputs of an action by inputs.NAME
	path    string            // what was added to the PATH
}

type localStep struct {
	Name, ID, If, Uses, Run string
	Env                     map[string]string
}

// run runs the only job of a workflow that stands in the branch main of the hub, and returns what its scripts print.
func (l *local) run(workflow string) (code int, out string) {
	l.Helper()
	text := l.must("git -C '" + l.hub + "' show main:.github/workflows/" + workflow)
	var w struct {
		Jobs map[string]struct{ Steps []localStep }
	}
	if err := yaml.Unmarshal([]byte(text), &w); err != nil || len(w.Jobs) != 1 {
		l.Fatalf("%s: %v, %d jobs", workflow, err, len(w.Jobs))
	}
	l.outputs, l.path = map[string]string{}, ""
	for _, job := range w.Jobs {
		for _, s := range job.Steps {
			if !l.holds(s.If) {
				continue
			}
			c, said := l.step(s)
			if out += said; c != 0 {
				return c, out
			}
		}
	}
	return 0, out
}

var localCondition = regexp.MustCompile(`^(github\.event_name|steps\.[\w-]+\.outputs\.[\w-]+) (==|!=) '([^']*)'$`)

// holds evaluates the condition of a step.
func (l *local) holds(condition string) bool {
	l.Helper()
	if condition == "" {
		return true
	}
	m := localCondition.FindStringSubmatch(condition)
	if m == nil {
		l.Fatalf("this runner cannot evaluate %q", condition)
	}
	value := l.outputs[m[1]]
	if m[1] == "github.event_name" {
		value = l.event
	}
	return (value == m[3]) == (m[2] == "==")
}

func (l *local) step(s localStep) (code int, out string) {
	l.Helper()
	switch {
	case strings.HasPrefix(s.Uses, "actions/checkout@"):
		dir := filepath.Join(l.TempDir(), "checkout")
		l.dir = l.temp
		out = l.must("git clone -q --depth=1 'file://" + l.hub + "' '" + dir + "'")
		l.dir = dir
	case strings.HasPrefix(s.Uses, "./"):
		return l.action(s.Uses)
	case s.Uses != "":
		l.Fatalf("this runner has no action %s", s.Uses)
	default:
		file, added := filepath.Join(l.temp, "output"), filepath.Join(l.temp, "path")
		env := []string{"GITHUB_OUTPUT=" + file, "GITHUB_PATH=" + added, "RUNNER_TEMP=" + l.temp}
		if l.path != "" {
			env = append(env, "PATH="+l.path+string(filepath.ListSeparator)+strings.TrimPrefix(l.env[0], "PATH="))
		}
		for name, value := range s.Env {
			env = append(env, name+"="+l.value(value))
		}
		code, out = l.sh(s.Run, env...)
		l.readOutputs(s.ID, file)
		if data, err := os.ReadFile(added); err == nil {
			l.path = strings.TrimSpace(string(data))
			_ = os.Remove(added)
		}
	}
	return code, out
}

// action runs the steps of an action of the repository, with the defaults of its inputs.
func (l *local) action(dir string) (code int, out string) {
	l.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, dir, "action.yml"))
	var a struct {
		Inputs map[string]struct{ Default string }
		Runs   struct{ Steps []localStep }
	}
	if err == nil {
		err = yaml.Unmarshal(data, &a)
	}
	if err != nil || len(a.Runs.Steps) == 0 {
		l.Fatalf("%s: %v", dir, err)
	}
	for name, in := range a.Inputs {
		l.outputs["inputs."+name] = in.Default
	}
	for _, s := range a.Runs.Steps {
		if strings.HasPrefix(s.Uses, "actions/setup-go@") {
			continue
		}
		c, said := l.step(s)
		if out += said; c != 0 {
			return c, out
		}
	}
	return 0, out
}

// value is that of a variable: a text, an input, a secret or the token.
func (l *local) value(text string) string {
	l.Helper()
	name, isExpression := strings.CutPrefix(text, "${{ ")
	if !isExpression {
		return text
	}
	name = strings.TrimSuffix(name, " }}")
	if input, ok := l.outputs[name]; ok {
		return input
	}
	if name != "github.token" && !strings.HasPrefix(name, "secrets.") {
		l.Fatalf("this runner cannot evaluate %s", text)
	}
	return l.secrets[name]
}

// readOutputs reads the outputs that a step has written, and removes their file.
func (l *local) readOutputs(id, file string) {
	data, _ := os.ReadFile(file)
	for line := range bytes.Lines(data) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		l.outputs["steps."+id+".outputs."+name] = value
	}
	_ = os.Remove(file)
}

// startGo and answerRelease start the example by a file, and answer its question to a person.
const startGo = "apiVersion: reconcile.dev/v1alpha1\nkind: Action\nmetadata: {name: go}\n" +
	"spec: {verb: start, target: workflow/feature, issue: 42, text: \"# Greet people by name\"}\n"

const answerRelease = "apiVersion: reconcile.dev/v1alpha1\nkind: Action\nmetadata: {name: release}\n" +
	"spec: {verb: approve, target: dag/feature-42, node: release, answer: '{\"release\": true}'}\n"

// TestIssueToChangeInActions starts examples/issue-to-change by a committed file, in the workflow that init --github writes. Each run has
// a fresh checkout: the first goes on to the question to a person, the second takes the committed answer to the summary, and makes nothing
// again; one for a commit of its own does nothing.
func TestIssueToChangeInActions(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	hub := filepath.Join(t.TempDir(), "hub.git")
	if err := os.CopyFS(m.dir, os.DirFS("../../examples/issue-to-change")); err != nil {
		t.Fatal(err)
	}
	program := strings.TrimSpace(m.must("command -v reconcile"))
	writeFiles(t, m.dir, map[string]string{"tools/reconcile": "#!/bin/sh\necho \"$1\" >> \"$RUNNER_TEMP/calls\"\nexec '" + program + "' \"$@\"\n"})
	m.must("chmod +x tools/reconcile; git init -q -b main; " + identity + "reconcile init -q --github --release ./tools/reconcile; git add .; git commit -qm 'Declare the workflow'; " +
		"git clone -q --bare . " + hub + "; git remote add origin " + hub)
	l := &local{machine: &machine{T: t, dir: m.temp, temp: m.temp, env: m.env}, hub: hub, event: "push"}
	push := func(name, text string) string {
		t.Helper()
		writeFiles(t, m.dir, map[string]string{"specs/actions/" + name + ".yaml": text})
		m.must("git pull -q --rebase origin main; git add specs/actions; git commit -qm " + name + "; git push -q origin main")
		code, out := l.run("reconcile.yml")
		if code != 0 {
			t.Fatalf("%s: exit %d\n%s", name, code, out)
		}
		return out
	}
	out := push("go", startGo)
	for _, want := range []string{
		"reconcile comes from ./tools/reconcile in this repository: ",
		// A question of an agent, its answer, and the task of a person with the form of the answer.
		"[Engineer -> Architect] Clarification needed (CLR-42-001):\n  What about a second argument?\n",
		"[Architect] Only the first argument.\n",
		"dag/feature-42/release waits for the maintainer: Say whether it is released, and how it is announced; " +
			`go on with: reconcile approve dag/feature-42 release --answer TEXT, where TEXT is {"release": boolean, "announcement"?: string}`,
	} {
		if !strings.Contains(out, want) {
			t.Fatalf("the first run does not say %q:\n%s", want, out)
		}
	}
	if code, out := l.run("reconcile.yml"); code != 0 || out != "" {
		t.Errorf("for a commit of its own: exit %d\n%s", code, out)
	}
	out = push("release", answerRelease)
	if !strings.Contains(out, "dag/feature-42 summary Succeeded") || strings.Count(out, " Running\n") != 1 {
		t.Errorf("the second run:\n%s", out)
	}
	if calls, _ := os.ReadFile(filepath.Join(l.temp, "calls")); string(calls) != "version\n--push\nversion\n--push\n" {
		t.Errorf("the program of the action was called with %q", calls)
	}
	if said := m.must("git pull -q --rebase origin main; reconcile describe session/feature-42"); !strings.Contains(said, "Done") || !strings.Contains(said, "Completed") {
		t.Errorf("in another clone: %s", said)
	}
	if summary, err := os.ReadFile(filepath.Join(l.dir, "SUMMARY.md")); err != nil || !strings.Contains(string(summary), "greets a person by name") {
		t.Errorf("the summary: %v: %s", err, summary)
	}
}
