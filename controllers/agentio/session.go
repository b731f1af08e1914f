package agentio

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Message is what a person tells an agent about its task.
type Message struct {
	By   string       `json:"by,omitempty"`
	At   schemas.Time `json:"at,omitzero"`
	Text string       `json:"text"`
}

// Told is a message in the form in which a running agent gets it.
func (m Message) Told() string {
	var d promptDocument
	d.say("A person says about your task:\n")
	m.write(&d)
	return d.String()
}

func (m Message) write(d *promptDocument) {
	what := "message"
	if m.By != "" {
		what += " of " + label(m.By)
	}
	d.block(what, m.Text)
}

// messagesText tells an agent what people said about the task, oldest first.
func messagesText(all []Message) string {
	all = slices.DeleteFunc(slices.Clone(all), func(m Message) bool { return strings.TrimSpace(m.Text) == "" })
	if len(all) == 0 {
		return ""
	}
	var d promptDocument
	d.say("\n\nWhat people say about this task, oldest first. Follow it where it is about the task:\n")
	for _, m := range all {
		m.write(&d)
	}
	return d.String()
}

// checkpointsText tells an agent what sessions before this one knew. It is quoted: programs wrote it.
func checkpointsText(all []*schemas.Checkpoint) string {
	if len(all) == 0 {
		return ""
	}
	var d promptDocument
	d.say("\n\nYou continue this task: the context of a session before this one was full. What it knew is quoted, oldest first; check it.\n")
	for _, c := range all {
		d.block(fmt.Sprintf("checkpoint %d at %d %%", c.CheckpointIndex, c.Threshold), checkpointText(c))
	}
	return d.String()
}

// checkpointText has the known fields and omits the others.
func checkpointText(c *schemas.Checkpoint) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		b.WriteString(name + ": " + valueText(c.Fields[name]) + "\n")
	}
	for _, l := range []struct {
		name  string
		items []string
	}{{"files changed", c.Work.FilesChanged}, {"remaining", c.Work.Remaining}, {"latest tool calls", c.Work.ToolCalls}} {
		if len(l.items) > 0 {
			b.WriteString(l.name + ": " + strings.Join(l.items, ", ") + "\n")
		}
	}
	if c.Work.Reported != "" {
		b.WriteString("reported: " + c.Work.Reported + "\n")
	}
	if c.Work.Said != "" {
		b.WriteString("last said: " + c.Work.Said + "\n")
	}
	if b.Len() == 0 {
		return "nothing is known of what was done\n"
	}
	return shorten.Text(b.String(), checkpointLimit)
}

// checkpointLimit bounds the characters of a checkpoint in a prompt.
const checkpointLimit = 8000

// valueText is a string itself, and another value as JSON.
func valueText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// Changed appends to what Stdin made what differs in the workspace already: in a prompt as a quoted part, in JSON as the field
// "changes", for "none" not at all. It is shortened.
func Changed(format, stdin, diff string) string {
	if strings.TrimSpace(diff) == "" {
		return stdin
	}
	diff = shorten.Text(diff, changesLimit)
	switch format {
	case FormatNone:
		return stdin
	case FormatJSON:
		return withPromptField(stdin, "changes", diff)
	}
	var d promptDocument
	d.say(stdin + "\nWhat differs in your workspace already, quoted:\n")
	d.block("changes", diff)
	return d.String()
}

// changesLimit bounds the characters of changes in a prompt.
const changesLimit = 16000
