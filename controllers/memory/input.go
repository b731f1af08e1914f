package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Formats of the input. FormAuto detects one of the others.
const (
	FormAuto         = "auto"
	FormConversation = "conversation"
	FormSummary      = "summary"
)

// inputError says why nothing can be learned from a text.
type inputError struct{ text string }

func (e *inputError) Error() string { return e.text }

// BadRequest marks the input error as that of a bad request.
func (e *inputError) BadRequest() {}

func badInput(format string, args ...any) error { return &inputError{fmt.Sprintf(format, args...)} }

// Read reads a conversation or a summary into the source; name is that of the text in errors, "" for none. skipped counts
// the lines of a conversation that could not be read. The error is an *inputError.
func (s *Source) Read(form, name string, text []byte) (skipped int, err error) {
	if form != FormSummary {
		said, err := readTranscript(text)
		switch {
		case err == nil:
			s.Messages = said.Messages
			return said.Skipped, nil
		case form == FormConversation && said.Skipped == 0:
			return 0, nil // there are no messages
		case form == FormConversation:
			return 0, badInput("%s is no conversation, and nothing of it was kept: %v", cmp.Or(name, "the text"), err)
		case looksLikeJSON(text):
			return 0, badInput("the text looks like JSON, and no message was found in it: %v; --format summary takes it as text", err)
		}
	}
	if !isText(text) {
		return 0, badInput("what was given is no text; give a conversation or a summary")
	}
	s.Text = strings.ToValidUTF8(string(text), "\uFFFD")
	return 0, nil
}

// looksLikeJSON reports whether a text is JSON, also truncated JSON: it is not a written summary.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return false
	}
	next := bytes.TrimSpace(text[1:])
	switch text[0] {
	case '{':
		return len(next) == 0 || next[0] == '"' || next[0] == '}'
	case '[':
		return len(next) == 0 || bytes.IndexByte([]byte(`{["]`), next[0]) >= 0
	}
	return json.Valid(text)
}

// isText reports whether bytes are those of a text: few of them belong to no character, or are controls.
func isText(text []byte) bool {
	bad := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && !unicode.IsSpace(r) && r != '\x1b' {
			bad++
		}
		i += size
	}
	return bad*10 <= len(text)
}

// ReadConversation returns the messages of a conversation, as [readTranscript] does.
func ReadConversation(data []byte) ([]Message, error) {
	t, err := readTranscript(data)
	return t.Messages, err
}
