package state

import (
	"encoding/json"
	"testing"
)

// An error tells the line, and neither Go's types nor what stands there.
func TestInJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n\"a\": \x1b[31m}":         `line 2: invalid character '\x1b' looking for beginning of value`,
		"{\n\n\"a\": {\"b\": \"s\"}}": "line 3: a.b cannot be of the type string",
		"[1]":                         "line 1: the file holds one array",
		"{\"a\"\n":                    "line 1: unexpected end of JSON input",
		"":                            "line 1: unexpected end of JSON input",
	} {
		var to struct {
			A struct {
				B int `json:"b"`
			} `json:"a"`
		}
		if err := InJSON([]byte(text), json.Unmarshal([]byte(text), &to)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
