package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Version is the version of the protocol.
const Version = 1

const (
	methodUpdate        = "session/update"
	methodPermission    = "session/request_permission"
	methodCancelRequest = "$/cancel_request"
)

// Agent is the self-description of an agent.
type Agent struct {
	ProtocolVersion int `json:"protocolVersion"`
	Info            struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	Capabilities struct {
		LoadSession bool `json:"loadSession"`
		Session     struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Meta json.RawMessage `json:"_meta"`
}

// AcceptsSteering reports whether the agent takes texts while a turn runs: _meta.steering.supported, an extension.
func (a *Agent) AcceptsSteering() bool {
	var m struct {
		Steering struct {
			Supported bool `json:"supported"`
		} `json:"steering"`
	}
	return decodeLoosely(a.Meta, &m) && m.Steering.Supported
}

// Loads reports whether the agent offers session/load, which replays the conversation.
func (a *Agent) Loads() bool { return a.Capabilities.LoadSession }

// Resumes reports whether the agent offers session/resume.
func (a *Agent) Resumes() bool {
	return len(a.Capabilities.Session.Resume) > 0 && string(a.Capabilities.Session.Resume) != "null"
}

// errVersion reports that the agent speaks another version of the protocol.
var errVersion = errors.New("the agent does not speak version 1 of the Agent Client Protocol")

// Initialize is the first request. The client offers nothing but typed failures, which some agents report if it does.
func (c *Client) Initialize(ctx context.Context, name, version string) (*Agent, error) {
	type object = map[string]any
	a := new(Agent)
	err := c.call(ctx, "initialize", object{
		"protocolVersion": Version,
		"clientInfo":      object{"name": name, "version": version},
		"clientCapabilities": object{
			"fs": object{"readTextFile": false, "writeTextFile": false}, "terminal": false,
			"_meta": object{"jetbrains": object{"air": object{"version": 1, "capabilities": []string{"sessionFailure"}}}},
		},
	}, a, nil)
	if err == nil && a.ProtocolVersion != Version {
		err = errVersion
	}
	return a, err
}

// Server is an MCP server that the agent starts and uses, with standard streams.
type Server struct {
	Name    string     `json:"name"`
	Command string     `json:"command"`
	Args    []string   `json:"args"`
	Env     []Variable `json:"env"`
}

// Variable is an environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Session is a conversation.
type Session struct {
	ID    string `json:"sessionId"`
	Modes *struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Options []ConfigOption `json:"configOptions"`
}

// ConfigOption is a setting of a session, as the mode or the model.
type ConfigOption struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Current  json.RawMessage `json:"currentValue"`
	Choices  json.RawMessage `json:"options"` // a list, or a list of groups with lists
}

// choice is a value that an option can have.
type choice struct {
	Value   string   `json:"value"`
	Name    string   `json:"name"`
	Choices []choice `json:"options"`
}

// named returns the value of the choice of a name; the name itself where no choice has that name, or where it is a value. It also returns the
// values of all choices.
func (o *ConfigOption) named(name string) (value string, offered []string) {
	var all []choice
	_ = json.Unmarshal(o.Choices, &all) // another form has no names
	value = name
	exact := false
	for i := 0; i < len(all); i++ {
		c := all[i]
		all = append(all, c.Choices...)
		if c.Value == "" {
			continue
		}
		offered = append(offered, oneLine(c.Value, nameLimit))
		if exact = exact || c.Value == name; c.Name == name && !exact {
			value = c.Value
		}
	}
	if exact {
		value = name
	}
	return value, offered
}

// setup are the parameters of requests that begin or continue a session.
type setup struct {
	Session string   `json:"sessionId,omitempty"`
	Dir     string   `json:"cwd"`
	Servers []Server `json:"mcpServers"`
}

// NewSession begins a session in a folder, given by its absolute path.
func (c *Client) NewSession(ctx context.Context, dir string, servers []Server) (*Session, error) {
	s := new(Session)
	err := c.call(ctx, "session/new", setup{Dir: dir, Servers: list(servers)}, s, func(result json.RawMessage) {
		var id struct {
			ID string `json:"sessionId"`
		}
		if decodeLoosely(result, &id) && schemas.IsSessionID(id.ID) {
			c.enter(id.ID)
		}
	})
	if err == nil && !schemas.IsSessionID(s.ID) {
		err = errors.New("the answer to session/new has no sessionId, or one that is no id")
	}
	return s, err
}

// Resume continues a session that the agent has kept. It needs the same folder.
func (c *Client) Resume(ctx context.Context, a *Agent, id, dir string, servers []Server) (*Session, error) {
	method := "session/load"
	if a.Resumes() {
		method = "session/resume"
	}
	c.mu.Lock()
	c.enter(id)
	c.mu.Unlock()
	s := new(Session)
	err := c.call(ctx, method, setup{id, dir, list(servers)}, s, nil)
	if err != nil {
		c.mu.Lock()
		c.session = "" // another may follow
		c.mu.Unlock()
	}
	s.ID = id
	return s, err
}

// list is never null in JSON.
func list(servers []Server) []Server {
	if servers == nil {
		return []Server{}
	}
	return servers
}

// errMode reports that the agent does not offer a mode.
var errMode = errors.New("the agent does not offer this mode")

// SetMode sets the session's mode, if it is another one.
func (c *Client) SetMode(ctx context.Context, s *Session, mode string) error {
	if s.Modes != nil {
		if s.Modes.Current == mode {
			return nil
		}
		for _, m := range s.Modes.Available {
			if m.ID == mode {
				return c.call(ctx, "session/set_mode", map[string]any{"sessionId": s.ID, "modeId": mode}, nil, nil)
			}
		}
	}
	return c.setOption(ctx, s, "mode", mode, errMode)
}

// ErrModel reports that the agent lets no one choose the model.
var ErrModel = errors.New("the agent does not offer a choice of models")

// SetModel sets the session's model.
func (c *Client) SetModel(ctx context.Context, s *Session, model string) error {
	return c.setOption(ctx, s, "model", model, ErrModel)
}

// choicesShown bounds the choices in an error.
const choicesShown = 30

// setOption sets the option of that category or id to a choice, given by its value or name; missing is the error without such an option.
func (c *Client) setOption(ctx context.Context, s *Session, category, value string, missing error) error {
	for _, o := range s.Options {
		if o.Category == category || o.ID == category {
			value, offered := o.named(value)
			if text(o.Current) == value {
				return nil
			}
			params := map[string]any{"sessionId": s.ID, "configId": o.ID, "value": value}
			err := c.call(ctx, "session/set_config_option", params, nil, nil)
			if refused := (*Error)(nil); errors.As(err, &refused) && !slices.Contains(offered, value) {
				return fmt.Errorf("the agent refused it (%s); it offers %s", refused.Message, strings.Join(offered[:min(len(offered), choicesShown)], ", "))
			}
			return err
		}
	}
	return missing
}

// Answer is the answer to a prompt: how the agent describes the end of the turn.
type Answer struct {
	StopReason string          `json:"stopReason"`
	Usage      *Usage          `json:"usage"`
	Meta       json.RawMessage `json:"_meta"`
}

// Prompt takes a turn with a text, and returns when the agent says that the turn is over. The turn may have failed.
// What arrived meanwhile is in [Client.State], from which Prompt removes what earlier turns left.
func (c *Client) Prompt(ctx context.Context, session, prompt string) (*Answer, error) {
	c.mu.Lock()
	c.fold.begin()
	c.mu.Unlock()
	a := new(Answer)
	params := map[string]any{"sessionId": session, "prompt": []map[string]string{{"type": "text", "text": prompt}}}
	err := c.call(ctx, "session/prompt", params, a, func(result json.RawMessage) { c.fold.end(result) })
	return a, err
}

// Steer gives a text to the running turn of an agent that Steers. injected reports whether the turn got it; without a running
// turn the agent does nothing with it.
func (c *Client) Steer(ctx context.Context, session, prompt string) (injected bool, err error) {
	var answer struct {
		Outcome string `json:"outcome"`
	}
	params := map[string]any{"sessionId": session, "prompt": []map[string]string{{"type": "text", "text": prompt}},
		"_meta": map[string]any{"steering": map[string]string{"idleBehavior": "promptRequired"}}}
	err = c.call(ctx, "_session/steering", params, &answer, nil)
	return err == nil && answer.Outcome == "injected", err
}

// Cancel asks the agent to end the turn, and answers its open requests as cancelled. The prompt's answer still follows.
func (c *Client) Cancel(session string) error {
	err := c.notify("session/cancel", map[string]string{"sessionId": session})
	c.cancelRequests()
	return err
}

// cancelRequests cancels the open requests of the agent.
func (c *Client) cancelRequests() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.give()
	c.giveUp, c.give = context.WithCancel(context.Background())
}
