package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// errCutOff says that a streamed answer ended before its end.
var errCutOff = errors.New("the answer was cut off")

// stream reads a streamed answer, and returns it as the endpoint would give it in one piece.
func (c *Conversation) stream(r io.Reader) ([]byte, error) {
	var a assembler = &openAIStream{talk: c, calls: map[int]*openAICall{}}
	if c.endpoint.Wire == schemas.WireAnthropic {
		a = &anthropicStream{talk: c}
	}
	in := bufio.NewReader(io.LimitReader(r, longestReply))
	for {
		line, err := in.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
			if err := a.event(bytes.TrimSpace(data)); err != nil {
				return nil, err
			}
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		return a.whole()
	}
}

// assembler puts the events of one answer together.
type assembler interface {
	// event takes the data of an event.
	event(data []byte) error
	// whole returns the answer, once all events are there.
	whole() ([]byte, error)
}

// openAIStream assembles an answer of Chat Completions.
type openAIStream struct {
	talk          *Conversation
	text, refusal strings.Builder
	calls         map[int]*openAICall
	finish        string
}

// openAICall is a call of a tool in the form of Chat Completions.
type openAICall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (s *openAIStream) event(data []byte) error {
	if string(data) == "[DONE]" {
		return nil
	}
	var e struct {
		Error   json.RawMessage
		Choices []struct {
			Delta struct {
				Content, Refusal string
				Calls            []struct {
					Index int
					openAICall
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("the answer is not what /chat/completions streams: %w", err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return errRefused
	}
	for _, choice := range e.Choices {
		s.talk.heard(choice.Delta.Content)
		s.text.WriteString(choice.Delta.Content)
		s.refusal.WriteString(choice.Delta.Refusal)
		for _, part := range choice.Delta.Calls {
			s.add(part.Index, part.openAICall)
		}
		if choice.Finish != "" {
			s.finish = choice.Finish
		}
	}
	return nil
}

// add adds a part of the call of an index.
func (s *openAIStream) add(index int, part openAICall) {
	call := s.calls[index]
	if call == nil {
		call = &openAICall{Type: "function"}
		s.calls[index] = call
	}
	if part.ID != "" {
		call.ID = part.ID
	}
	if part.Function.Name != "" {
		call.Function.Name = part.Function.Name
	}
	call.Function.Arguments += part.Function.Arguments
}

func (s *openAIStream) whole() ([]byte, error) {
	if s.finish == "" {
		return nil, errCutOff
	}
	message := object{"role": "assistant", "content": s.text.String()}
	if s.refusal.Len() > 0 {
		message["refusal"] = s.refusal.String()
	}
	var calls []*openAICall
	for _, i := range slices.Sorted(maps.Keys(s.calls)) {
		calls = append(calls, s.calls[i])
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return json.Marshal(object{"choices": []any{object{"message": message, "finish_reason": s.finish}}})
}

// anthropicStream assembles an answer of Messages.
type anthropicStream struct {
	talk   *Conversation
	blocks []object
	input  strings.Builder // of the tool call that is the last block, as JSON
	stop   string
}

func (s *anthropicStream) event(data []byte) error {
	var e struct {
		Type  string
		Block object `json:"content_block"`
		Delta struct {
			Type, Text, Thinking, Signature string
			JSON                            string `json:"partial_json"`
			Stop                            string `json:"stop_reason"`
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("the answer is not what /v1/messages streams: %w", err)
	}
	switch e.Type {
	case "error":
		return errRefused
	case "content_block_start":
		s.blocks = append(s.blocks, e.Block)
		s.input.Reset()
	case "content_block_delta":
		s.talk.heard(e.Delta.Text)
		s.input.WriteString(e.Delta.JSON)
		s.extend("text", e.Delta.Text)
		s.extend("thinking", e.Delta.Thinking)
		s.extend("signature", e.Delta.Signature)
	case "content_block_stop":
		return s.endBlock()
	case "message_delta":
		s.stop = e.Delta.Stop
	}
	return nil
}

// extend adds a part to a field of the last block.
func (s *anthropicStream) extend(field, part string) {
	if part == "" || len(s.blocks) == 0 {
		return
	}
	last := s.blocks[len(s.blocks)-1]
	text, _ := last[field].(string)
	last[field] = text + part
}

// endBlock gives the last block its input, if it is a call.
func (s *anthropicStream) endBlock() error {
	if s.input.Len() == 0 || len(s.blocks) == 0 {
		return nil
	}
	if !json.Valid([]byte(s.input.String())) {
		return errors.New("the arguments of a tool call are not JSON")
	}
	s.blocks[len(s.blocks)-1]["input"] = json.RawMessage(s.input.String())
	return nil
}

func (s *anthropicStream) whole() ([]byte, error) {
	if s.stop == "" {
		return nil, errCutOff
	}
	return json.Marshal(object{"content": s.blocks, "stop_reason": s.stop})
}
