package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// GivenPlanAnswer is an answer to a plan change as an architect or a person writes it.
type GivenPlanAnswer struct {
	Accept       *bool     `json:"accept"`
	Reason       string    `json:"reason"`
	Instructions string    `json:"instructions"`
	Edit         *PlanEdit `json:"edit"`
}

// ReadPlanAnswer reads an answer to a plan change. A JSON object has the fields accept, reason, instructions and edit, and no others;
// any other text is the instructions. The JSON object may be the whole of a JSON string, or stand in a fenced block of a text.
func ReadPlanAnswer(text string) (*GivenPlanAnswer, error) {
	text, object := AnswerObject(text)
	if object == "" {
		return &GivenPlanAnswer{Instructions: text}, nil
	}
	if json.Valid([]byte(object)) {
		if key := RepeatedKey([]byte(object)); key != "" {
			return nil, fmt.Errorf("the answer has the key %s twice", key)
		}
	}
	var a GivenPlanAnswer
	d := json.NewDecoder(bytes.NewReader([]byte(object)))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return nil, fmt.Errorf("the answer is no answer to a plan change: %w; its fields are accept, reason, instructions and edit", PlainJSON(err))
	}
	if d.More() {
		return nil, errors.New("the answer has more than one JSON object")
	}
	if e := a.Edit; e != nil {
		var r Report
		e.check(r.At("edit"), ChangeModify)
		for _, f := range r.Findings() {
			return nil, fmt.Errorf("%s: %s", pathText(f.Field), f.Message)
		}
	}
	return &a, nil
}

// AnswerObject finds the text of an answer, which may be a JSON string, and the JSON object in it; "" for none.
func AnswerObject(text string) (plain, object string) {
	text = strings.TrimSpace(text)
	var inner string
	if json.Unmarshal([]byte(text), &inner) == nil {
		text = strings.TrimSpace(inner)
	}
	return text, planObject(text)
}

// planObject finds the JSON object of an answer: the whole text, or what the last fenced block has; "" for none.
func planObject(text string) string {
	if strings.HasPrefix(text, "{") {
		return text
	}
	const fence = "```"
	parts := strings.Split(text, fence)
	for i := len(parts) - 2; i > 0; i -= 2 {
		body := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(parts[i]), "json"))
		if strings.HasPrefix(body, "{") && i%2 == 1 {
			return body
		}
	}
	return ""
}
