package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/validator"
)

// Approve says who lets a node start, or what a person's task asks for.
type Approve struct {
	// Form is a JSON Schema (draft 2020-12) for the answer that comes with the approval. The answer to a person's task is the
	// node's result.
	Form json.RawMessage `json:"form,omitempty" jsonschema:"type=object"`
	// By names people and teams of settings.people; only they can approve, and it has to be proved who they are. Default: any person.
	By []string `json:"by,omitempty" jsonschema:"maxItems=100"`
	// Count is how many different people have to approve. Default 1.
	Count int `json:"count,omitempty" jsonschema:"minimum=1,maximum=100,default=1"`
	// Expires is how long an approval counts for a node that has not started. Default: for ever.
	Expires *Duration `json:"expires,omitempty"`
	// Local says that the name that is given for an approval is proof enough for by.
	Local bool `json:"local,omitempty"`
}

// Quorum is how many different people have to approve.
func (a *Approve) Quorum() int { return max(a.Count, 1) }

// check reports an approval that no one could give. compiled caches the result for each text of a form.
func (a *Approve) check(at Spot, compiled map[string]*validator.Error) {
	if a == nil {
		return
	}
	for i, who := range a.By {
		checkFilled(at.At("by", i), who)
		checkLine(at.At("by", i), who)
	}
	if a.Local && len(a.By) == 0 {
		at.At("local").Errorf("conflict", "local is about the people of by").suggest("add by, or remove local")
	}
	if a.Expires != nil && *a.Expires <= 0 {
		at.At("expires").Errorf("bad-duration", "an approval that expires at once lets nothing start").suggest("write a duration such as 8h")
	}
	checkJSONSchema(at.At("form"), a.Form, compiled)
}

// checkJSONSchema reports a text that is no JSON Schema; an empty one is fine.
func checkJSONSchema(at Spot, schema json.RawMessage, compiled map[string]*validator.Error) {
	if len(schema) == 0 {
		return
	}
	invalid, known := compiled[string(schema)]
	if !known {
		if _, err := validator.Compile(schema, nil); err != nil {
			errors.As(err, &invalid)
		}
		compiled[string(schema)] = invalid
	}
	if invalid != nil {
		document, _ := validator.Value(schema) // it is part of the canonical form
		at.At(validator.Steps(document, invalid.Path)...).Errorf("bad-schema", "is no JSON Schema: %s", invalid.Message)
	}
}

// AnswerValue is the value of an answer: of what is JSON that value, of anything else the text. Where schemas are given, the
// value keeps all of them; the error says what is wrong with it. An empty answer keeps no schema.
func AnswerValue(answer string, given ...json.RawMessage) (json.RawMessage, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	read := json.RawMessage(text)
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(answer)) == nil {
		if key := RepeatedKey([]byte(answer)); key != "" {
			return nil, fmt.Errorf("the answer has the key %s twice", key)
		}
		read = compact.Bytes()
	}
	var why error
	for _, schema := range given {
		if len(schema) == 0 {
			continue
		}
		if strings.TrimSpace(answer) == "" {
			return nil, fmt.Errorf("the form asks for %s, and there is no answer", FormOutline(schema))
		}
		if why = keepsForm(read, schema); why != nil {
			if keepsForm(text, schema) != nil {
				return nil, why
			}
			read = text
		}
	}
	return read, nil
}

// FormOutline returns in one line what a form asks for, such as {"ok": boolean, "note"?: string}: fields that may be left out
// have a question mark. A form without a type and values is returned as it is, and so are deeply nested ones.
func FormOutline(form json.RawMessage) string { return formOutline(form, 4) }

func formOutline(form json.RawMessage, depth int) string {
	var s struct {
		Type       string
		Enum       []json.RawMessage
		Properties map[string]json.RawMessage
		Required   []string
	}
	switch err := json.Unmarshal(form, &s); {
	case err != nil || depth == 0:
	case len(s.Enum) > 0:
		parts := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			parts[i] = string(v)
		}
		return strings.Join(parts, " or ")
	case len(s.Properties)+len(s.Required) > 0:
		var parts []string
		for _, name := range s.Required {
			parts = append(parts, fmt.Sprintf("%q: %s", name, formOutline(s.Properties[name], depth-1)))
			delete(s.Properties, name)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			parts = append(parts, fmt.Sprintf("%q?: %s", name, formOutline(s.Properties[name], depth-1)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case s.Type != "":
		return s.Type
	}
	return cmp.Or(string(form), "anything")
}

// keepsForm says why a value does not keep a schema.
func keepsForm(value, schema json.RawMessage) error {
	compiled, err := validator.Compile(schema, nil)
	if err != nil {
		return err
	}
	v, err := validator.Value(value)
	if err != nil {
		return err
	}
	found, err := compiled.Validate(v)
	if err != nil || len(found) == 0 {
		return err
	}
	parts := make([]string, len(found))
	for i, f := range found {
		if parts[i] = f.Message; len(f.Path) > 0 {
			parts[i] = strings.Join(f.Path, ".") + ": " + f.Message
		}
	}
	return fmt.Errorf("the answer does not keep the form: %s", strings.Join(parts, "; "))
}

// Approval is the approval of a node that its status has.
type Approval struct {
	// Action is the name of the Action that brought it.
	Action string `json:"action"`
	// By is the person, Proof says how that is known: a Proof constant.
	By    string `json:"by"`
	Proof string `json:"proof,omitempty"`
	At    Time   `json:"at"`
	// Digest is that of what was approved; empty for a person's task.
	Digest string `json:"digest,omitempty"`
	// Answer is the value that came with it.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Ignores is the step of the pipeline, a Step constant, whose verdict about the change does not count; empty for an approval of
	// the whole. Reason says why.
	Ignores string `json:"ignores,omitempty"`
	Reason  string `json:"reason,omitempty"`
}
