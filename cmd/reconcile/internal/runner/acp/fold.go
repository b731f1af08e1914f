package acp

import (
	"encoding/json"
	"hash/maphash"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Event is something that happened in a session, for a log.
type Event struct {
	Kind string // one of the Event constants
	Text string
	// Used and Size are those of EventUsage.
	Used, Size int64
}

// Kinds of events.
const (
	EventText    = "text"    // a part of the agent's message; a message has many
	EventTool    = "tool"    // a tool call began, or ended: its title and status
	EventFailure = "failure" // a typed failure, or a warning of one
	EventUsage   = "usage"   // the use of the context; Text is the message so far
	EventNoise   = "noise"   // a line that is no message
)

// State is the state of a session, folded from its messages. Its values are those of the last turn, unless they are named as counts.
type State struct {
	// Text is the agent's last message. TextCut says that its end is missing.
	Text    string
	TextCut bool
	// ContextUsed and ContextSize are the tokens in the agent's context and the size of its window; 0: not known.
	ContextUsed, ContextSize int64
	// Cost is what the session has cost, in USD; nil: not known.
	Cost *float64
	// Chunks is the sum of the tokens that came with parts of messages; nil without any.
	Chunks *Usage
	// Usage is that of the answer, with which Model answered.
	Usage *Usage
	Model string
	// Failure is the last typed failure of the turn whose severity is error.
	Failure *Failure
	// ToolCalls counts the tool calls of the turn; Open are those that have not ended, and Asking the open requests for
	// permission.
	ToolCalls, Open, Asking int
	Mode                    string

	// Messages counts all lines. Skipped were too long, Noise were no messages, Foreign belonged to another session, Dropped
	// did not fit, Unmatched answered nothing, Late came after the answer. Refused are requests for permission that were
	// cancelled unheard.
	Messages, Skipped, Noise, Foreign, Dropped, Unmatched, Late, Refused int
	// Others counts unknown updates and requests, by kind.
	Others map[string]int
}

// Idle reports whether the agent waits for nothing that it has announced: no tool runs, and no permission is asked for.
func (s *State) Idle() bool { return s.Open == 0 && s.Asking == 0 }

// Failure is a typed failure (_meta.jetbrains.air.sessionFailure).
type Failure struct {
	Category string `json:"category"` // limit, service, access, connection, request, unknown
	Severity string `json:"severity"` // error, warning, …
	Title    string `json:"title"`
	Message  string `json:"message"`
	Details  string `json:"details"`
}

const (
	kindsLimit = 64     // kinds that are counted by name
	nameLimit  = 100    // bytes of such a name
	callsLimit = 10_000 // tool calls whose ids are remembered
	titleLimit = 200
)

// updateFold makes a State of messages.
type updateFold struct {
	State
	o       Options
	text    strings.Builder
	message string // id of the message that text is of
	broken  bool   // the next text begins a new message
	// ended and grew say that since the last text a tool ended, and the context grew: a message without an id is over then.
	ended, grew bool
	active      bool // a prompt was sent
	over        bool // and answered
	seed        maphash.Seed
	calls       map[uint64]bool // by the digest of the id: whether it is open
}

func newFold(o Options) updateFold {
	return updateFold{State: State{Others: map[string]int{}}, o: o, seed: maphash.MakeSeed(), calls: map[uint64]bool{}}
}

// snapshot returns a copy of the state.
func (f *updateFold) snapshot() State {
	s := f.State
	s.Text = f.text.String()
	s.Others = make(map[string]int, len(f.Others))
	for k, n := range f.Others {
		s.Others[k] = n
	}
	return s
}

// begin begins a turn.
func (f *updateFold) begin() {
	f.text.Reset()
	f.message, f.broken, f.active, f.over = "", false, true, false
	f.TextCut, f.Chunks, f.Usage, f.Model, f.Failure, f.ToolCalls, f.Open = false, nil, nil, "", nil, 0, 0
	clear(f.calls)
}

// end ends a turn with its answer. Later parts of the message still belong to it.
func (f *updateFold) end(result json.RawMessage) {
	f.over = true
	var a Answer
	decodeLoosely(result, &a)
	f.Usage, f.Model = a.usage()
	f.failure(a.Meta)
}

// other counts something of an unknown kind.
func (f *updateFold) other(kind string) {
	kind = oneLine(kind, nameLimit)
	if _, known := f.Others[kind]; !known && len(f.Others) >= kindsLimit {
		kind = "more"
	}
	f.Others[kind]++
}

// update is the part of an update that is read.
type update struct {
	Kind      string          `json:"sessionUpdate"`
	Content   json.RawMessage `json:"content"`
	MessageID string          `json:"messageId"`
	CallID    string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Status    string          `json:"status"`
	Used      int64           `json:"used"`
	Size      int64           `json:"size"`
	Cost      *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
	Mode string          `json:"currentModeId"`
	Meta json.RawMessage `json:"_meta"`
}

func (f *updateFold) update(session string, params json.RawMessage) {
	var p struct {
		Session string          `json:"sessionId"`
		Update  json.RawMessage `json:"update"`
	}
	var u update
	switch {
	case !decodeLoosely(params, &p) || !decodeLoosely(p.Update, &u):
		f.other("update without an object")
		return
	case p.Session != session:
		f.Foreign++
		return
	}
	if f.over {
		f.Late++
	}
	f.apply(&u)
}

func (f *updateFold) apply(u *update) {
	switch u.Kind {
	case "agent_message_chunk":
		f.chunk(u)
	case "user_message_chunk", "agent_thought_chunk":
		f.broken = true
		f.tokens(u.Meta)
	case "tool_call", "tool_call_update":
		f.call(u)
	case "usage_update":
		f.grew = f.grew || u.Used > f.ContextUsed
		f.ContextUsed, f.ContextSize = min(max(u.Used, 0), tokensLimit), min(max(u.Size, 0), tokensLimit)
		if u.Cost != nil && u.Cost.Currency == "USD" && u.Cost.Amount >= 0 && u.Cost.Amount <= schemas.MaxCostUSD {
			f.Cost = &u.Cost.Amount
		}
		f.o.Host.Observe(Event{Kind: EventUsage, Text: f.text.String(), Used: f.ContextUsed, Size: f.ContextSize})
	case "current_mode_update":
		f.Mode = u.Mode
	case "session_info_update":
		f.failure(u.Meta)
	case "plan", "available_commands_update", "config_option_update":
	default:
		f.other("update " + u.Kind)
	}
}

// chunk adds a part of the agent's message. What a loaded session replays belongs to no turn.
func (f *updateFold) chunk(u *update) {
	if !f.active {
		return
	}
	f.tokens(u.Meta)
	var content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	decodeLoosely(u.Content, &content)
	if content.Type != "text" {
		f.other("content " + content.Type)
		return
	}
	if content.Text == "" {
		return
	}
	if f.text.Len() > 0 && (u.MessageID != f.message || u.MessageID == "" && (f.broken || f.ended && f.grew)) {
		f.text.Reset()
		f.TextCut = false
		f.o.Host.Observe(Event{Kind: EventText, Text: "\n"})
	}
	f.message, f.broken, f.ended, f.grew = u.MessageID, false, false, false
	f.o.Host.Observe(Event{Kind: EventText, Text: content.Text})
	room := max(f.o.TextLimit-f.text.Len(), 0)
	if len(content.Text) > room {
		f.TextCut = true
	}
	f.text.WriteString(content.Text[:min(len(content.Text), room)])
}

// call begins, changes or ends a tool call.
func (f *updateFold) call(u *update) {
	if !f.active {
		return
	}
	id := maphash.String(f.seed, u.CallID)
	was, known := f.calls[id]
	open := was
	switch u.Status {
	case "completed", "failed", "cancelled":
		open, f.ended = false, true
	case "pending", "in_progress":
		open = true
	default:
		open = open || !known
	}
	if !known {
		f.ToolCalls++
		f.broken = true
		if len(f.calls) >= callsLimit {
			return
		}
	}
	f.calls[id] = open
	if open != was {
		f.Open += map[bool]int{true: 1, false: -1}[open]
	}
	if !known || open != was {
		f.o.Host.Observe(Event{Kind: EventTool, Text: strings.TrimSpace(oneLine(u.Title, titleLimit) + " " + oneLine(u.Status, nameLimit))})
	}
}

// failure takes a typed failure from the _meta of a message.
func (f *updateFold) failure(meta json.RawMessage) {
	var m struct {
		JetBrains struct {
			Air struct {
				Failure *Failure `json:"sessionFailure"`
			} `json:"air"`
		} `json:"jetbrains"`
	}
	if !decodeLoosely(meta, &m) || m.JetBrains.Air.Failure == nil {
		return
	}
	failure := *m.JetBrains.Air.Failure
	f.o.Host.Observe(Event{Kind: EventFailure, Text: oneLine(failure.Severity+" "+failure.Category+": "+failure.Title, titleLimit)})
	if failure.Severity == "error" {
		f.Failure = &failure
	}
}
