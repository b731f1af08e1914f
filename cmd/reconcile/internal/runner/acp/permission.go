package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
)

// Kinds of options of a permission request.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// PermissionRequest is the agent's request to allow a tool call.
type PermissionRequest struct {
	ToolCallID string
	Title      string
	Kind       string // read, edit, execute, …
	// Command is the command that the tool is to run: a list of arguments, or one text for a shell; nil if the agent does not
	// name one.
	Command []string
	Shell   bool   // Command is one text for a shell
	Dir     string // of the command, if the agent names it
	// Why is the agent's reason, Paths the files that the tool is about, if the agent names them.
	Why     string
	Paths   []string
	Options []PermissionOption
}

// PermissionOption is an answer that the agent offers.
type PermissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Option returns the first option of the first of the kinds that is offered; nil if none is.
func (r *PermissionRequest) Option(kinds ...string) *PermissionOption {
	for _, kind := range kinds {
		for i := range r.Options {
			if r.Options[i].Kind == kind {
				return &r.Options[i]
			}
		}
	}
	return nil
}

// requested answers a request of the agent; c.mu is held.
func (c *Client) requested(m *message) {
	if m.Method != methodPermission {
		c.fold.other("request " + m.Method)
		c.reply(&message{ID: m.ID, Error: &Error{Code: codeMethodNotFound, Message: "not offered: " + oneLine(m.Method, nameLimit)}})
		return
	}
	session, r := readPermission(m.Params)
	if session != c.session || c.asked == openRequests {
		c.fold.Refused++
		c.reply(chosen(m.ID, ""))
		return
	}
	c.asked++
	c.fold.Asking++
	ctx := c.giveUp
	go func() {
		option := c.o.Host.Permit(ctx, r)
		if ctx.Err() != nil || !offered(r, option) {
			option = ""
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked--
		c.fold.Asking--
		c.reply(chosen(m.ID, option))
		c.tell()
	}()
}

func offered(r PermissionRequest, id string) bool {
	for _, o := range r.Options {
		if o.ID == id {
			return true
		}
	}
	return false
}

// chosen is the answer with an option; "" means cancelled.
func chosen(id json.RawMessage, option string) *message {
	outcome := map[string]string{"outcome": "cancelled"}
	if option != "" {
		outcome = map[string]string{"outcome": "selected", "optionId": option}
	}
	raw, _ := json.Marshal(map[string]any{"outcome": outcome}) // texts always marshal
	return &message{ID: id, Result: raw}
}

// reply answers the agent. An agent that lets answers pile up gets none.
func (c *Client) reply(m *message) {
	if c.post(m) != nil {
		c.fold.Dropped++
	}
}

// toolCall is the tool call of a request.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Input     json.RawMessage `json:"rawInput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
}

// toolInput is what tools of known agents call their arguments.
type toolInput struct {
	Command       json.RawMessage `json:"command"`
	Dir           string          `json:"cwd"`
	Description   string          `json:"description"`
	Justification string          `json:"justification"`
	Reason        string          `json:"reason"`
	Path          string          `json:"path"`
	FilePath      string          `json:"file_path"`
	AbsolutePath  string          `json:"absolute_path"`
	NotebookPath  string          `json:"notebook_path"`
}

// readPermission reads the parameters of a request. Fields of an unexpected type are empty.
func readPermission(params json.RawMessage) (session string, r PermissionRequest) {
	var p struct {
		Session  string             `json:"sessionId"`
		ToolCall toolCall           `json:"toolCall"`
		Options  []PermissionOption `json:"options"`
	}
	decodeLoosely(params, &p)
	r = PermissionRequest{ToolCallID: p.ToolCall.ID, Title: p.ToolCall.Title, Kind: p.ToolCall.Kind, Options: p.Options}
	var input toolInput
	decodeLoosely(p.ToolCall.Input, &input)
	r.Dir, r.Why = input.Dir, cmp.Or(input.Description, input.Justification, input.Reason)
	for _, l := range p.ToolCall.Locations {
		r.Paths = append(r.Paths, l.Path)
	}
	for _, path := range []string{input.Path, input.FilePath, input.AbsolutePath, input.NotebookPath} {
		if path != "" {
			r.Paths = append(r.Paths, path)
		}
	}
	if s := text(input.Command); s != "" {
		r.Command, r.Shell = []string{s}, true
	} else if bytes.HasPrefix(bytes.TrimSpace(input.Command), []byte("[")) {
		if json.Unmarshal(input.Command, &r.Command) != nil {
			r.Command = nil
		}
	}
	return p.Session, r
}
