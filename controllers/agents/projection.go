package agents

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ErrNoAgentStatus means that the file is not a JSON object of agents.
var ErrNoAgentStatus = errors.New("agent-status.json is not a JSON object of agents")

// FoldStatus updates state/agent-status.json (agentx-spec 4.3): old is the present file, or nil. It keeps the
// entries of agents that the tree does not know, and unknown fields. It drops agents that are gone and still have a
// status file of ours in the tree, and those in removed, whose status file is removed in this turn.
//
// It returns ErrNoAgentStatus if old is not a JSON object: an unreadable file is not replaced.
func FoldStatus(old []byte, t *state.Tree, removed ...string) ([]byte, error) {
	file := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(old)) > 0 {
		if err := json.Unmarshal(old, &file); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoAgentStatus, err)
		}
	}
	if file == nil {
		file = map[string]json.RawMessage{} // the file said null
	}
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if e.Gone() {
			delete(file, e.Name)
			continue
		}
		st, ok := e.Status().(*schemas.AgentStatus)
		if !ok {
			continue
		}
		entry, err := foldAgent(file[e.Name], st.AgentActivity)
		if err != nil {
			return nil, err
		}
		file[e.Name] = entry
	}
	for _, name := range removed {
		if e := t.Entry(schemas.AgentKind.Ref(name)); e == nil || e.Gone() {
			delete(file, name)
		}
	}
	return encodeProjection(file)
}

// foldAgent sets the six fields of the format and keeps all others.
func foldAgent(old json.RawMessage, a schemas.AgentActivity) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(old, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{} // nothing there, or no object: nothing to keep
	}
	ours, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode an agent's status: %w", err)
	}
	if err := json.Unmarshal(ours, &fields); err != nil {
		return nil, fmt.Errorf("encode an agent's status: %w", err)
	}
	return encodeProjection(fields)
}

// encodeProjection writes sorted keys, indented by two, no HTML escapes, so that an unchanged file stays byte for byte.
func encodeProjection(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode agent-status.json: %w", err)
	}
	return b.Bytes(), nil
}
