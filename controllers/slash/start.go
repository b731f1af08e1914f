package slash

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
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

// start makes an Action that starts a workflow for the issue: NAME [KEY=VALUE …] [why].
func (d *commandDecider) start(c *Comment, cmd Command, name string) (*derive.Spec, string, error) {
	words := strings.Fields(cmd.Line)
	if len(words) == 0 {
		return nil, "", fmt.Errorf("say which workflow, as %s", codeText("/start feature"))
	}
	workflow := strings.TrimPrefix(strings.TrimRight(words[0], ",.:;"), "workflow/")
	var names []string
	for _, e := range d.tree.Entries(schemas.WorkflowKind.Name) {
		if e.Object != nil && e.Name == workflow {
			return d.started(c, name, workflow, strings.TrimPrefix(cmd.Text, words[0]))
		}
		names = append(names, e.Name)
	}
	return nil, "", fmt.Errorf("there is no workflow %s%s", codeText(workflow), nearestQuestion(workflow, names))
}

func (d *commandDecider) started(c *Comment, name, workflow, behind string) (*derive.Spec, string, error) {
	line, below, _ := strings.Cut(behind, "\n")
	params, why, err := startParams(line)
	if err != nil {
		return nil, "", err
	}
	spec := &schemas.ActionSpec{Target: "workflow/" + workflow, Verb: schemas.VerbStart, Issue: d.issue.File.Issue, Text: redactedText(d.issue.Text),
		Params: params, By: writtenBy(c.Author), Proof: schemas.ProofGitHub, Reason: redactedText(strings.TrimSpace(why + "\n" + below)), At: schemas.NewTime(c.Created)}
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

// startParams reads the parameters at the beginning of a line, KEY=VALUE with the quotation of a shell, and returns the rest of the line.
func startParams(line string) (params map[string]any, rest string, err error) {
	for {
		line = strings.TrimLeft(line, " \t")
		if word, _, _ := strings.Cut(line, " "); len(word) > len("--") && strings.HasPrefix(word, "--") {
			return nil, "", fmt.Errorf("there are no options here; write parameters as %s", codeText("/start feature KEY=VALUE"))
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || key == "" || strings.ContainsFunc(key, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return params, line, nil
		}
		if value, line, ok = shellWord(value); !ok {
			return nil, "", fmt.Errorf("the quotation in the value of %s does not end in its line", codeText(key))
		}
		if params == nil {
			params = map[string]any{}
		}
		if _, twice := params[key]; twice {
			return nil, "", fmt.Errorf("the parameter %s has two values", codeText(key))
		}
		params[key] = secrets.Redact(value)
	}
}

// shellWord reads a word as a shell does, which expands nothing in it. ok is false if a quotation in it does not end.
func shellWord(text string) (word, rest string, ok bool) {
	var b strings.Builder
	quote, escaped := rune(0), false
	for i, r := range text {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' && r != '$' && r != '`' {
				b.WriteRune('\\')
			}
			b.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && (r == ' ' || r == '\t'):
			return b.String(), text[i:], true
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), "", quote == 0 && !escaped
}
