package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// CheckpointName is the kind in the files of checkpoints. It is not a kind of objects: no one declares them.
const CheckpointName = "Checkpoint"

// Checkpoint is state/checkpoints/<session>/<agent>-<n>.json: what an agent knew when it had used a share of its context. It
// is derived from records.
type Checkpoint struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"` // CheckpointName
	Metadata   RunMetadata `json:"metadata"`
	// Timestamp is when the share was reached.
	Timestamp Time `json:"timestamp"`
	// SessionID is the session of the tree; CheckpointIndex counts the agent's checkpoints in it, from 1.
	SessionID       string `json:"sessionId"`
	CheckpointIndex int    `json:"checkpointIndex"`
	// ContextUsage is the used part of the window, 0 to 1; Threshold the share in percent that was reached.
	ContextUsage float64 `json:"contextUsage"`
	Threshold    int     `json:"threshold,omitempty"` // 0 for a hand-off
	Agent        string  `json:"agent"`
	// AgentSession is the conversation as the agent calls it.
	AgentSession string `json:"agentSession,omitempty"`
	// Run is the key of the effect, Node its node as dag/x:node, and NodeKey the key of that.
	Run     string `json:"run"`
	Node    string `json:"node"`
	NodeKey string `json:"nodeKey"`
	// Summary is the kind of the fields below.
	Summary string `json:"summary"`
	// Fields are those of the summary that records tell; Unknown names the others.
	Fields  map[string]json.RawMessage `json:"fields"`
	Unknown []string                   `json:"unknown,omitempty"`
	// Work is what records tell of any agent's work.
	Work CheckpointWork `json:"work"`
	// Handoff is what the work is handed over with; nil for a checkpoint of a share of the context.
	Handoff *PipelineHandoff `json:"handoff,omitempty"`
}

// CheckpointWork is what an agent had done and said, by the records.
type CheckpointWork struct {
	Task      string   `json:"task,omitempty"`
	Results   []string `json:"results,omitempty"`   // of the nodes that it needs, as name: text
	Questions []string `json:"questions,omitempty"` // and answers, oldest first
	// FilesChanged are the paths that differ in its workspace.
	FilesChanged []string `json:"filesChanged,omitempty"`
	Reported     string   `json:"reported,omitempty"`
	Remaining    []string `json:"remaining,omitempty"`
	// ToolCalls are the latest ones, oldest first.
	ToolCalls []string `json:"toolCalls,omitempty"`
	Said      string   `json:"said,omitempty"` // the end of its last message
}

// Name is the name of a checkpoint: <session>/<agent>-<n>.
func (c *Checkpoint) Name() string {
	return fmt.Sprintf("%s/%s-%d", c.SessionID, c.Agent, c.CheckpointIndex)
}

// SameCause reports whether two checkpoints are of the same share of the same conversation, or of the same hand-off.
func (c *Checkpoint) SameCause(d *Checkpoint) bool {
	if c.Handoff != nil || d.Handoff != nil {
		return c.Handoff != nil && d.Handoff != nil && c.hands(d.Run, d.Handoff.HandoffReason, d.Timestamp)
	}
	return c.Agent == d.Agent && c.Threshold == d.Threshold && c.conversation() == d.conversation()
}

// Hands reports whether a checkpoint is the record of a hand-off.
func (c *Checkpoint) Hands(h *Handoff) bool { return c.hands(h.Run, h.Reason, h.At) }

// hands reports whether a checkpoint is the record of the hand-off of a run for a reason. A run has several where a person stopped one.
func (c *Checkpoint) hands(run, reason string, at Time) bool {
	return c.Handoff != nil && c.Run == run && c.Handoff.HandoffReason == reason && c.Timestamp.Equal(at.Time)
}

// conversation identifies the agent's session: agents number theirs as they like, so that the node's key is part of it.
func (c *Checkpoint) conversation() string {
	if c.AgentSession == "" {
		return c.Run
	}
	return c.NodeKey + " " + c.AgentSession
}

// Check checks what a checkpoint that was read must have.
func (c *Checkpoint) Check() error {
	dag, _, ok := SplitRunKey(c.Run)
	owner, node, _ := strings.Cut(c.Node, ":")
	switch {
	case c.Kind != CheckpointName:
		return fmt.Errorf("kind is %q instead of %s", c.Kind, CheckpointName)
	case c.Metadata.Name != c.Name():
		return fmt.Errorf("metadata.name is %q instead of %s", c.Metadata.Name, c.Name())
	case CheckName(c.Agent) != nil || CheckName(c.SessionID) != nil || c.CheckpointIndex < 1:
		return errors.New("agent, sessionId or checkpointIndex is missing")
	case !ok || owner != "dag/"+dag || node == "" || c.NodeKey == "":
		return errors.New("run, node and nodeKey do not name the run of a node")
	case c.Timestamp.IsZero() || c.Handoff == nil && c.Threshold < 1 || c.Threshold > 100 || c.ContextUsage < 0:
		return errors.New("timestamp, threshold or contextUsage is missing")
	}
	return nil
}

// ContextMark is the moment at which an agent's context had reached a share of its window, and what was known then.
type ContextMark struct {
	Percent int   `json:"percent"` // the share
	At      Time  `json:"at"`
	Used    int64 `json:"used"`
	Window  int64 `json:"window"`
	// Session is the conversation as the agent calls it.
	Session string `json:"session,omitempty"`
	// Tools are the latest tool calls, oldest first; Files the paths that differ in the workspace; Said the end of the last
	// message.
	Tools []string `json:"tools,omitempty"`
	Files []string `json:"files,omitempty"`
	Said  string   `json:"said,omitempty"`
}

// Usage is the used part of the window, 0 to 1; more where the agent says so.
func (m *ContextMark) Usage() float64 {
	if m.Window <= 0 {
		return 0
	}
	return float64(m.Used*10000/m.Window) / 10000
}

// ContextShare is the used share of a turn's context in percent; -1 if it is not known. window is that of the agent's spec, for
// turns that do not name theirs.
func (t *Turn) ContextShare(window int) int {
	if t == nil || t.Usage == nil || t.Usage.ContextUsed <= 0 {
		return -1
	}
	size := t.Usage.ContextWindow
	if size <= 0 {
		size = int64(window)
	}
	if size <= 0 {
		return -1
	}
	return int(min(t.Usage.ContextUsed, 1<<40) * 100 / size)
}

// Delivery says that a text of a person reached an agent.
type Delivery struct {
	Action string `json:"action"` // the name of the Action
	At     Time   `json:"at,omitzero"`
}
