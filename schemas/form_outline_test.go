package schemas

import (
	"encoding/json"
	"testing"
)

func TestFormOutline(t *testing.T) {
	for form, want := range map[string]string{
		`{"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}, "note": {"type": "string"}}}`: `{"ok": boolean, "note"?: string}`,
		`{"properties": {"verdict": {"enum": ["accept", "reject"]}}, "required": ["verdict"]}`:                          `{"verdict": "accept" or "reject"}`,
		`{"type": "object", "required": ["verdict"]}`:                                                                   `{"verdict": anything}`,
		`{"type": "integer", "minimum": 1}`:                                                                             "integer",
		`{"minLength": 3}`:                                                                                              `{"minLength": 3}`,
		`{"type": ["string", "null"]}`:                                                                                  `{"type": ["string", "null"]}`,
	} {
		if got := FormOutline(json.RawMessage(form)); got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
}
