package slash

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// taskQuery shows how a task is; taskVerbs are the others of /task, which become Actions.
const taskQuery = "query"

var taskVerbs = []string{schemas.VerbPrompt, schemas.VerbInterrupt, schemas.VerbIgnoreInspector, schemas.VerbIgnoreTester, schemas.VerbHandoff, schemas.VerbStopHandoff}

// task interprets "/task NAME VERB [TEXT]". NAME is that of a node of the issue, dag/NAME:NODE, or the only one that is like it.
func (d *commandDecider) task(c *Comment, cmd Command, name string) (*derive.Spec, string, error) {
	words := strings.Fields(cmd.Line)
	if len(words) < 2 {
		return nil, "", errors.New("write " + codeText("/task NAME VERB TEXT") + ", with the name of a task")
	}
	verb := strings.ReplaceAll(strings.ToLower(words[1]), "_", "-")
	e, node, err := d.taskNamed(words[0], verb == taskQuery)
	if err != nil {
		return nil, "", err
	}
	text := strings.TrimSpace(cmd.Text[strings.Index(cmd.Text, words[0])+len(words[0]):])
	text = strings.TrimSpace(text[len(words[1]):])
	switch {
	case verb == taskQuery:
		return nil, d.Show(d.tree, View{Verb: Task, Objects: []schemas.Ref{e.Ref}, Node: node}), nil
	case !slices.Contains(taskVerbs, verb):
		all := append([]string{taskQuery}, taskVerbs...)
		return nil, "", fmt.Errorf("a task cannot be told to %s%s", codeText(verb), nearestQuestion(verb, all))
	case verb == schemas.VerbPrompt && text == "":
		return nil, "", errors.New("there is nothing to tell")
	}
	spec := &schemas.ActionSpec{Target: e.Ref.String(), Node: node, Verb: verb, By: writtenBy(c.Author), Proof: schemas.ProofGitHub, At: schemas.NewTime(c.Created)}
	if schemas.IsMessage(verb) {
		spec.Text = redactedText(text)
	} else {
		if schemas.IgnoredStep(verb) != "" {
			spec.Digest, text = digestIn(text)
		}
		spec.Reason = redactedText(text)
	}
	if p := schemas.NodesIn(e.Status()).Of(node).Pipeline; schemas.IgnoredStep(verb) != "" {
		if d.authors[schemas.ActionKind.Ref(name)] = c.Author.Login; spec.Digest == "" && p != nil && p.Digest != "" {
			return nil, "", fmt.Errorf("say which change you mean, by its digest. Now it is %s",
				codeText(strings.Join([]string{"/" + Task, e.Ref.String() + ":" + node, verb, p.Digest}, " ")))
		}
	}
	out, _, err := d.propose(schemas.ActionKind, name, spec)
	if err == nil {
		err = d.applied(spec, name)
	}
	return out, "", err
}

// taskNamed finds the node of an agent that a word names, and its DAG. like also accepts the only name that is like the word.
func (d *commandDecider) taskNamed(word string, like bool) (*state.Entry, string, error) {
	dag, node, qualified := strings.Cut(word, ":")
	if !qualified {
		node = word
	}
	var names, ways []string
	var found []*state.Entry
	for _, e := range d.dags() {
		for _, n := range schemas.SpecAs[*schemas.DAGSpec](e.Object).Nodes {
			if n.Agent == "" || qualified && e.Ref.String() != dag {
				continue
			}
			names = append(names, n.Name)
			if n.Name == node {
				found, ways = append(found, e), append(ways, "/"+Task+" "+e.Ref.String()+":"+node)
			}
		}
	}
	near := schemas.OnlyNear(node, names)
	switch {
	case len(found) == 1:
		return found[0], node, nil
	case len(found) > 1:
		return nil, "", fmt.Errorf("say which is meant: %s", questionChoices(ways))
	case like && near != "" && near != node && qualified:
		return d.taskNamed(dag+":"+near, false)
	case like && near != "" && near != node:
		return d.taskNamed(near, false)
	}
	return nil, "", fmt.Errorf("no agent has a task %s here%s", codeText(word), nearestQuestion(node, names))
}
