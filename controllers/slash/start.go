package slash

import (
	"errors"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Starts reports whether a comment has the command to start a workflow.
func Starts(body string) bool {
	for _, c := range Parse(body).Commands {
		if c.Verb == Start {
			return true
		}
	}
	return false
}

// start makes an Action that starts a workflow for the issue: NAME [why].
func (d *commandDecider) start(c *Comment, cmd Command, name string) (*derive.Spec, string, error) {
	words := strings.Fields(cmd.Line)
	if len(words) == 0 {
		return nil, "", fmt.Errorf("say which workflow, as %s", codeText("/start feature"))
	}
	workflow := strings.TrimPrefix(strings.TrimRight(words[0], ",.:;"), "workflow/")
	var names []string
	for _, e := range d.tree.Entries(schemas.WorkflowKind.Name) {
		if e.Object != nil && e.Name == workflow {
			return d.started(c, cmd, name, workflow)
		}
		names = append(names, e.Name)
	}
	return nil, "", fmt.Errorf("there is no workflow %s%s", codeText(workflow), nearestQuestion(workflow, names))
}

func (d *commandDecider) started(c *Comment, cmd Command, name, workflow string) (*derive.Spec, string, error) {
	_, why, _ := strings.Cut(strings.TrimSpace(cmd.Text), " ")
	spec := &schemas.ActionSpec{Target: "workflow/" + workflow, Verb: schemas.VerbStart, Issue: d.issue.File.Issue, Text: redactedText(d.issue.Text),
		By: writtenBy(c.Author), Proof: schemas.ProofGitHub, Reason: redactedText(strings.TrimSpace(why)), At: schemas.NewTime(c.Created)}
	for _, s := range d.issue.Said {
		spec.Comments = append(spec.Comments, schemas.IssueComment{From: s.From, Text: redactedText(s.Text)})
	}
	out, _, err := d.propose(schemas.ActionKind, name, spec)
	if err != nil {
		return nil, "", err
	}
	ready := d.tree.Entry(schemas.ActionKind.Ref(name)).Status().Base().Condition(schemas.Ready)
	if ready != nil && ready.Reason == settle.ReasonCannotStart {
		return nil, "", errors.New(codeText(ready.Message))
	}
	return out, "", nil
}
