package memory

import (
	"encoding/json"
	"strings"
)

// record takes one record of a transcript; false: it is of no known form.
func (r *transcriptReader) record(o transcriptObject) bool {
	if o == nil {
		return false
	}
	if cwd := o.text("cwd"); cwd != "" {
		r.root = cwd
	}
	if inner := wrappedRecord(o); inner != nil {
		r.record(inner) // the envelope is known, whatever is in it
		return true
	}
	if r.container(o) || r.failure(o) || bookkeeping(o) {
		return true
	}
	if o.is("isCompactSummary") {
		r.say(roleSummary, textIn(o, "message", "content"), len(r.edits))
		return true
	}
	return r.call(o) || r.message(o)
}

// envelopes are the records that wrap what matters, by their type: Codex' sessions, what "codex exec --json" prints,
// and Copilot's events. (VS Code's journal of a chat has "kind": 0 and the whole of it in "v".)
var envelopes = map[string]string{
	"response_item": "payload", "event_msg": "payload", "session_meta": "payload", "turn_context": "payload",
	"compacted": "payload", "item.completed": "item", "session.start": "data", "session.resume": "data",
	"user.message": "data", "assistant.message": "data", "tool.execution_start": "data",
}

// wrappedRecord is the record inside of an envelope, with the envelope's type where it has none of its own; nil for none.
func wrappedRecord(o transcriptObject) transcriptObject {
	typ := o.text("type")
	if typ == "" && string(o["kind"]) == "0" {
		return o.object("v")
	}
	inner := o.object(envelopes[typ])
	if inner == nil {
		return nil
	}
	if inner.text("type") == "" || strings.Contains(typ, ".message") {
		inner["type"] = o["type"]
	}
	if inner.text("cwd") == "" && inner.object("context") != nil { // Copilot names it there
		inner["cwd"] = inner.object("context")["cwd"]
	}
	delete(inner, "payload") // a nested envelope is not a known form, and could nest without end
	return inner
}

// bookkeeping reports whether a record is known, and holds no message: settings, thoughts, output of tools, notes of
// the program itself.
func bookkeeping(o transcriptObject) bool {
	switch typ := o.text("type"); typ {
	case "system", "summary", "progress", "attachment", "mode", "last-prompt", "ai-title", "custom-title", "agent-name",
		"session_meta", "turn_context", "reasoning", "agent_reasoning", "token_count", "task_started", "task_complete",
		"thought", "info", "error", "warning", "ghost_snapshot", "world_state", "web_search_call", "todo_list",
		"tool_result", "tool", "pr-link":
		return true
	default:
		if strings.HasSuffix(typ, "_output") || strings.HasSuffix(typ, "_end") || strings.HasSuffix(typ, "_begin") ||
			strings.HasPrefix(typ, "session.") || strings.HasPrefix(typ, "tool.") && typ != "tool.execution_start" ||
			strings.HasPrefix(typ, "assistant.") && typ != "assistant.message" || strings.HasPrefix(typ, "thread.") ||
			strings.HasPrefix(typ, "turn.") || strings.HasPrefix(typ, "item.") || strings.HasPrefix(typ, "queue-") ||
			strings.HasPrefix(typ, "hook.") || strings.HasPrefix(typ, "file-history-") {
			return true
		}
	}
	role := o.text("role")
	return role == "system" || role == "developer" || role == "tool" || o.is("isMeta") || o.is("isApiErrorMessage") ||
		o.is("isSidechain") && o.text("type") == roleUser || o.text("record_type") != ""
}

// roles are the names that programs give to who spoke, as role or type.
var roles = map[string]string{
	"user": roleUser, "human": roleUser, "user.message": roleUser, "user_message": roleUser, "usermessage": roleUser,
	"assistant": roleAssistant, "model": roleAssistant, "gemini": roleAssistant, "ai": roleAssistant,
	"bot": roleAssistant, "agent": roleAssistant, "copilot": roleAssistant, "agent_message": roleAssistant, "agentmessage": roleAssistant,
	"assistant.message": roleAssistant, "result": roleAssistant, "compacted": roleSummary,
}

func roleOf(o transcriptObject) string {
	for _, name := range []string{"role", "type", "sender", "from"} {
		if role := roles[strings.ToLower(o.text(name))]; role != "" {
			return role
		}
	}
	return ""
}

// message reads a message, with the calls of tools in it.
func (r *transcriptReader) message(o transcriptObject) bool {
	before := len(r.edits)
	if user := o.object("message"); user != nil && o.list("response") != nil { // a turn in VS Code's form
		r.say(roleUser, user.text("text"), before)
		r.say(roleAssistant, r.pieces(o.list("response")), 0)
		return true
	}
	role := roleOf(o)
	if inner := o.object("message"); inner != nil { // Claude Code and Cursor have the message inside
		if roleOf(inner) == "" {
			inner["role"] = json.RawMessage(`"` + role + `"`)
		}
		return r.message(withoutMessage(inner))
	}
	if role == "" {
		return false
	}
	text := o.text("content", "text", "message", "result")
	if text == "" {
		text = r.parts(o.list("content", "parts"))
	}
	r.say(role, text, before)
	for _, raw := range o.list("tool_calls", "toolCalls", "toolRequests") {
		call := objectOf(raw)
		r.call(call)
		for _, result := range call.list("result") {
			r.failure(objectOf(result))
		}
	}
	return true
}

// withoutMessage keeps a message in a message in a message from being followed.
func withoutMessage(o transcriptObject) transcriptObject {
	if o.text("message") == "" {
		delete(o, "message")
	}
	return o
}

// parts joins the texts of a list of parts, and notes the tools that it calls.
func (r *transcriptReader) parts(list []json.RawMessage) string {
	var texts []string
	for _, raw := range list {
		part := objectOf(raw)
		if part == nil {
			var s string
			if json.Unmarshal(raw, &s) == nil {
				texts = append(texts, s)
			}
			continue
		}
		if text := partText(part); text != "" {
			texts = append(texts, text)
			continue
		}
		if !r.failure(part) {
			r.call(part)
		}
	}
	return strings.Join(texts, "\n\n")
}

// pieces joins the pieces of an answer in VS Code's form, where names of files stand between pieces of one sentence.
func (r *transcriptReader) pieces(list []json.RawMessage) string {
	var b strings.Builder
	for _, raw := range list {
		piece := objectOf(raw)
		switch text := partText(piece); {
		case text != "":
			b.WriteString(text)
		case piece.text("kind") == "inlineReference":
			b.WriteString("`" + referenceName(piece) + "`")
		default:
			r.call(piece)
		}
	}
	return b.String()
}

// partText is what a part says; "" for thoughts, pictures, and tools.
func partText(part transcriptObject) string {
	switch part.text("type", "kind") {
	case "", "text", "input_text", "output_text", "markdownContent":
		if part.is("thought") {
			return ""
		}
		if inner := part.object("content"); inner != nil {
			return inner.text("value")
		}
		return part.text("text", "value", "content")
	}
	return ""
}

// textIn returns the text of the first of the named fields, which may be a string or a message.
func textIn(o transcriptObject, names ...string) string {
	if text := o.text(names...); text != "" {
		return text
	}
	inner := o.object(names...)
	var texts []string
	for _, raw := range inner.list("content") {
		texts = append(texts, partText(objectOf(raw)))
	}
	return inner.text("content") + strings.Join(texts, "\n\n")
}

// transcriptObject is a JSON object whose fields are read when they are needed: fields of another type than expected are as good
// as absent.
type transcriptObject map[string]json.RawMessage

// objectOf returns nil if raw is not an object.
func objectOf(raw json.RawMessage) transcriptObject {
	var o transcriptObject
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// text is the first of the named fields that is a string and not empty.
func (o transcriptObject) text(names ...string) string {
	for _, name := range names {
		var s string
		if raw := o[name]; len(raw) > 1 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

func (o transcriptObject) is(name string) bool { return string(o[name]) == "true" }

// object is the first of the named fields that is an object.
func (o transcriptObject) object(names ...string) transcriptObject {
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
func (o transcriptObject) list(names ...string) []json.RawMessage {
	for _, name := range names {
		var list []json.RawMessage
		if raw := o[name]; len(raw) > 1 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil {
			return list
		}
	}
	return nil
}

// resultOf is the content of a tool's result: a string, or parts.
func resultOf(o transcriptObject) string {
	if text := o.text("content"); text != "" {
		return text
	}
	var texts []string
	for _, raw := range o.list("content") {
		texts = append(texts, partText(objectOf(raw)))
	}
	return strings.Join(texts, "\n")
}
