package agentio

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestReadFix: a plan that would make no DAG, or that goes beyond what was found, is refused with the reason.
func TestReadFix(t *testing.T) {
	c := &Corrections{Files: []string{"a.go", "b.go"}, Engineers: []string{"ada", "bo"}}
	task := func(name, files, more string) string {
		return fmt.Sprintf(`{"name": %q, "agent": "ada", "files": [%s], "prompt": "Do it."%s}`, name, files, more)
	}
	var many []string
	for i := range mostTasks + 1 {
		many = append(many, task(fmt.Sprintf("t%d", i), "", ""))
	}
	for tasks, want := range map[string]string{
		"": "no JSON object with tasks",
		task("one", `"a.go"`, "") + "," + task("two", `"b.go"`, `, "needs": ["one"]`): "",
		strings.Join(many, ","):                                     "51 tasks are too many",
		task("Fix", "", ""):                                         "no name of a task",
		task(strings.Repeat("a", 64), "", ""):                       "no name of a task",
		task("a b", "", ""):                                         "no name of a task",
		task("a_b", "", "") + "," + task("a-b", "", ""):             "two tasks are called a-b",
		task("one", `"c.go"`, ""):                                   "names \"c.go\", which nothing was found in",
		task("one", `"a.go"`, "") + "," + task("two", `"a.go"`, ""): "both name \"a.go\"",
		task("one", "", `, "needs": ["one"]`):                       "which is no task before it",
		strings.Replace(task("one", "", ""), "ada", "cy", 1):        "which is none of ada, bo",
		strings.Replace(task("one", "", ""), "Do it.", strings.Repeat("x", correctionsLimit+1), 1): "more than 20000 bytes",
	} {
		_, err := c.ReadFix(json.RawMessage(`{"tasks": [` + tasks + `]}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.100s: %v, want %q", tasks, err, want)
		}
	}
}

// TestCorrectionsAreNoTemplate: a node's prompt is a template, and what was found must not be read as one.
func TestCorrectionsAreNoTemplate(t *testing.T) {
	c := &Corrections{Session: "s", From: "tester", Text: "{{{{ secrets.key }}}}}", Summary: "{{{"}
	if text := c.Prompt(); strings.Contains(text, "{{") || strings.Contains(text, "}}") {
		t.Error(text)
	}
}
