package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // one of the Role constants
	Content string // text; of RoleEdit one line a file: "Modified src/db/adapter.go"
}

// Roles of messages. System prompts, hidden thoughts of agents and the output of their tools are skipped, except for
// the output of a failing command.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleSummary   = "summary" // an earlier part of the conversation, summed up by the agent's program
	RoleEdit      = "edit"    // files that an agent changed through its tools
	RoleFailure   = "failure" // what a command printed that an agent ran, and that failed
)

// ErrNoConversation reports that the input has no messages: it may be a text, but not a conversation.
var ErrNoConversation = errors.New("no conversation: neither JSON lines of role and content nor a transcript of " +
	"Claude Code, Codex, Copilot or Gemini")

// Transcript is a conversation as it was read.
type Transcript struct {
	Messages []Message
	Skipped  int // broken lines, and records of no known form
}

// ReadConversation returns the messages of a conversation, as [ReadTranscript] does.
func ReadConversation(data []byte) ([]Message, error) {
	t, err := ReadTranscript(data)
	return t.Messages, err
}

// ReadTranscript reads the messages of a conversation from a transcript, in any of the known JSON documents or lines.
// It reads JSON lines of {"role", "content"}, a JSON array or object of such messages, and the formats of agents'
// command lines: Claude Code and Codex (sessions, and their JSON output), Copilot (command line and VS Code), Gemini
// (chats, checkpoints and logs), Cursor. None of these formats is specified, so records are recognized by the fields
// that matter; unknown records are skipped and counted, as are broken lines. The error is ErrNoConversation if no
// message was found. Time and memory are linear in the data.
func ReadTranscript(data []byte) (Transcript, error) {
	r := reader{seen: map[Message]bool{}}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case isDocument(data):
		r.value(data)
	default:
		r.lines(data)
	}
	r.flushEdits(len(r.edits))
	if len(r.out.Messages) == 0 {
		return Transcript{Skipped: r.out.Skipped}, ErrNoConversation
	}
	return r.out, nil
}

// isDocument reports whether data is one JSON value over several lines, not one a line.
func isDocument(data []byte) bool {
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return false
	}
	first, _, several := bytes.Cut(data, []byte("\n"))
	return !several || !json.Valid(first) && json.Valid(data)
}

// reader gathers the messages of a transcript.
type reader struct {
	out   Transcript
	root  string // the working folder of the agent, if known
	edits []edit // since the last message
	seen  map[Message]bool
}

func (r *reader) lines(data []byte) {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			r.value(line)
		}
	}
}

// value takes a record or a list of records.
func (r *reader) value(raw json.RawMessage) {
	switch {
	case raw[0] == '[':
		r.each(raw)
	case !r.record(objectOf(raw)):
		r.out.Skipped++
	}
}

// each reads the records of a list; false if raw is not a list.
func (r *reader) each(raw json.RawMessage) bool {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		r.out.Skipped++
		return false
	}
	for _, one := range list {
		if !r.record(objectOf(one)) {
			r.out.Skipped++
		}
	}
	return list != nil
}

// say adds a message, once: transcripts repeat messages when a session is resumed or displayed; marks of private text,
// however, count every time. The first before edits were made before it.
func (r *reader) say(role, text string, before int) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	m := Message{Role: role, Content: text}
	if text == "" || isScaffold(role, text) || r.seen[m] && !bounds(text) {
		return
	}
	r.flushEdits(before)
	r.seen[m] = true
	r.out.Messages = append(r.out.Messages, m)
}

// bounds reports whether a text has what may be a mark of private text.
func bounds(text string) bool { return strings.Contains(strings.ToLower(text), "private") }

// flushEdits makes one message of the first n files that were changed since the last one.
func (r *reader) flushEdits(n int) {
	if n == 0 {
		return
	}
	r.out.Messages = append(r.out.Messages, Message{RoleEdit, editLines(r.edits[:n])})
	r.edits = slices.Clone(r.edits[n:])
}

// scaffolds begin what programs put into a user's mouth.
var scaffolds = []string{"<environment_context>", "<user_instructions>", "<permissions instructions>", "<command-name>",
	"<command-message>", "<local-command-", "<system-reminder>", "<turn_aborted>", "<bash-input>", "<bash-stdout>",
	"<task-notification>", "<environment_details>", "# AGENTS.md instructions", "[Request interrupted by user",
	"Caveat: The messages below were generated by the user while running local commands"}

func isScaffold(role, text string) bool {
	if role != RoleUser {
		return false
	}
	for _, s := range scaffolds {
		if strings.HasPrefix(text, s) {
			return true
		}
	}
	return false
}

// object is a JSON object whose fields are read when they are needed: fields of another type than expected are as good
// as absent.
type object map[string]json.RawMessage

// objectOf returns nil if raw is not an object.
func objectOf(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// text is the first of the named fields that is a string and not empty.
func (o object) text(names ...string) string {
	for _, name := range names {
		var s string
		if raw := o[name]; len(raw) > 1 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

func (o object) is(name string) bool { return string(o[name]) == "true" }

// object is the first of the named fields that is an object.
func (o object) object(names ...string) object {
	for _, name := range names {
		if raw := o[name]; len(raw) > 1 && raw[0] == '{' {
			if inner := objectOf(raw); inner != nil {
				return inner
			}
		}
	}
	return nil
}

// list are the elements of the first of the named fields that is a list.
func (o object) list(names ...string) []json.RawMessage {
	for _, name := range names {
		var list []json.RawMessage
		if raw := o[name]; len(raw) > 1 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil {
			return list
		}
	}
	return nil
}
