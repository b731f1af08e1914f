package schemas

import (
	"encoding/json"
	"testing"
)

// FuzzJSONFields: an object falls into the fields that encoding/json finds, and no text makes it panic.
func FuzzJSONFields(f *testing.F) {
	for _, seed := range []string{`{}`, ` {"a": 1 , "b":[{"c":"}\""}],"d":{"e":null}} `, `{"a"`, `{"`, `{`, `[1]`, `"x"`, `{"a":}`, `{"a"::`, `{,}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := jsonFields(text)
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		if !ok {
			t.Fatalf("%s is no object", text)
		}
		last := map[string]string{}
		for _, field := range got {
			var name string
			if err := json.Unmarshal([]byte(`"`+field.name+`"`), &name); err != nil {
				t.Fatalf("%s has the field %s: %v", text, field.name, err)
			}
			last[name] = string(field.text)
		}
		if len(last) != len(want) {
			t.Fatalf("%s: %d fields, want %d", text, len(last), len(want))
		}
		for name, value := range want {
			if last[name] != string(value) {
				t.Errorf("%s: %s is %s, want %s", text, name, last[name], value)
			}
		}
	})
}
