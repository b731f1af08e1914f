package modeltest

import (
	"encoding/json"
	"slices"
	"strings"
)

// request is the conversation in a request to a model, in any of the four formats.
type request struct {
	task    string // the latest text of the user
	results int    // of tools, since then
	tools   bool
	names   []string // of the tools
}

// tool returns the name if the agent has such a tool, else "".
func (q *request) tool(name string) string {
	if slices.Contains(q.names, name) {
		return name
	}
	return ""
}

// turn is one message, in the words of all formats.
type turn struct {
	Role, Type    string
	Content       json.RawMessage // a text, or a list of blocks
	Parts, Output json.RawMessage
}

// block is a part of a message: a text, or the result of a tool.
type block struct {
	Type, Text       string
	FunctionResponse json.RawMessage `json:"functionResponse"`
}

// read reads a request.
func read(body string) (q request) {
	var in struct {
		Messages, Contents []turn
		Input              json.RawMessage // a text, or a list
		Tools              []struct {
			Name     string
			Function struct{ Name string }
			Declared []struct{ Name string } `json:"functionDeclarations"`
		}
	}
	_ = json.Unmarshal([]byte(body), &in) // what is no request has no task
	var items []turn
	_ = json.Unmarshal(in.Input, &items)
	for _, t := range slices.Concat(in.Messages, in.Contents, items) {
		q.add(t)
	}
	for _, t := range in.Tools {
		q.names = append(q.names, t.Name, t.Function.Name)
		for _, d := range t.Declared {
			q.names = append(q.names, d.Name)
		}
	}
	q.tools = len(in.Tools) > 0
	return q
}

// add adds a message: a new task of the user, or results of tools.
func (q *request) add(t turn) {
	var text string
	var blocks []block
	if json.Unmarshal(t.Content, &text) != nil {
		_ = json.Unmarshal(append(t.Content[:len(t.Content):len(t.Content)], t.Parts...), &blocks)
	}
	found := 0
	for _, b := range blocks {
		switch {
		case b.Type == "tool_result" || b.FunctionResponse != nil:
			found++
		case !strings.HasPrefix(b.Text, "<system-reminder>") && !strings.HasPrefix(b.Text, "<environment_context>"):
			text += b.Text
		}
	}
	if t.Role == "tool" || t.Type == "function_call_output" {
		found, text = 1, ""
	}
	switch {
	case found > 0:
		q.results += found
	case t.Role == "user" && text != "":
		q.task, q.results = text, 0
	}
}
