package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// arguments are those of a tool call as JSON text.
func (a *Answer) arguments() string {
	data, err := json.Marshal(a.Args)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func messages(a *Answer) (object, []object) {
	stop, block := cmp.Or(a.Stop, "end_turn"), object{"type": "text", "text": a.Text}
	begin, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": a.Text}
	if a.Tool != "" {
		id := fmt.Sprintf("toolu_%d", a.id)
		stop, block = "tool_use", object{"type": "tool_use", "id": id, "name": a.Tool, "input": a.Args}
		begin = object{"type": "tool_use", "id": id, "name": a.Tool, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": a.arguments()}
	}
	id := fmt.Sprintf("msg_%d", a.id)
	use := object{"input_tokens": a.Input - a.Cached - a.Written, "cache_read_input_tokens": a.Cached,
		"cache_creation_input_tokens": a.Written, "output_tokens": a.Output}
	first, last := object{"input_tokens": a.Input - a.Cached - a.Written, "cache_read_input_tokens": a.Cached,
		"cache_creation_input_tokens": a.Written, "output_tokens": 1}, object{"output_tokens": a.Output}
	if a.NoUsage {
		use, first, last = nil, nil, nil
	}
	head := object{"id": id, "type": "message", "role": "assistant", "model": a.Model, "content": []any{}}
	whole := object{"id": id, "type": "message", "role": "assistant", "model": a.Model, "content": []any{block}, "stop_reason": stop}
	if use != nil {
		head["usage"], whole["usage"] = first, use
	}
	end := object{"type": "message_delta", "delta": object{"stop_reason": stop}}
	if last != nil {
		end["usage"] = last
	}
	return whole, []object{{"type": "message_start", "message": head}, {"type": "content_block_start", "index": 0, "content_block": begin},
		{"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "content_block_stop", "index": 0}, end}
}

func responses(a *Answer) (object, []object) {
	item := object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": a.Text}}}
	if a.Tool != "" {
		item = object{"type": "function_call", "call_id": fmt.Sprintf("call_%d", a.id), "name": a.Tool, "arguments": a.arguments()}
	}
	resp := object{"id": "resp_1", "object": "response", "status": "completed", "model": a.Model, "output": []any{item}, "error": nil}
	if !a.NoUsage {
		resp["usage"] = object{"input_tokens": a.Input, "input_tokens_details": object{"cached_tokens": a.Cached},
			"output_tokens": a.Output, "total_tokens": a.Input + a.Output}
	}
	return resp, []object{{"type": "response.created", "response": object{"id": "resp_1", "model": a.Model, "usage": nil, "error": nil}},
		{"type": "response.output_text.delta", "delta": a.Text}, {"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": resp}}
}

func chat(a *Answer) (object, []object) {
	stop, message := cmp.Or(a.Stop, "stop"), object{"role": "assistant", "content": a.Text}
	if a.Tool != "" {
		stop = "tool_calls"
		message["tool_calls"] = []any{object{"index": 0, "id": "call_1", "type": "function",
			"function": object{"name": a.Tool, "arguments": a.arguments()}}}
	}
	whole := object{"id": "chat_1", "object": "chat.completion", "model": a.Model,
		"choices": []any{object{"index": 0, "message": message, "finish_reason": stop}}}
	events := []object{{"id": "chat_1", "model": a.Model, "choices": []any{object{"index": 0, "delta": message}}},
		{"id": "chat_1", "model": a.Model, "choices": []any{object{"index": 0, "delta": object{}, "finish_reason": stop}}}}
	if !a.NoUsage {
		use := object{"prompt_tokens": a.Input, "completion_tokens": a.Output, "prompt_tokens_details": object{"cached_tokens": a.Cached}}
		whole["usage"] = use
		events = append(events, object{"id": "chat_1", "model": a.Model, "choices": []any{}, "usage": use})
	}
	return whole, events
}

func generate(a *Answer) (object, []object) {
	part := object{"text": a.Text}
	if a.Tool != "" {
		part = object{"functionCall": object{"name": a.Tool, "args": a.Args}}
	}
	whole := object{"candidates": []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"modelVersion": a.Model}
	if !a.NoUsage {
		whole["usageMetadata"] = object{"promptTokenCount": a.Input, "candidatesTokenCount": a.Output, "cachedContentTokenCount": a.Cached}
	}
	return whole, []object{{"candidates": []any{}, "modelVersion": a.Model}, whole}
}
