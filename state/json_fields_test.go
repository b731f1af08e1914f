package state

import (
	"bytes"
	"strings"
	"testing"
)

// TestUnknownRunFieldsStay reads and writes records with fields of a newer version. The tests of the journal do so across
// processes, checkpoints and damage: their records have such fields.
func TestUnknownRunFieldsStay(t *testing.T) {
	r := finished(1)
	text, err := EncodeRun(&r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("\n  \"usage\": {\n    \"tokens\": 7\n  }\n}\n")) {
		t.Errorf("the record is\n%s", text)
	}
	again, err := DecodeRun(text)
	if err != nil {
		t.Fatal(err)
	}
	again.Message = "changed"
	changed, err := EncodeRun(again)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(string(text), `"outcome": "Succeeded",`, `"outcome": "Succeeded",`+"\n  \"message\": \"changed\",", 1); string(changed) != want {
		t.Errorf("after a change the record is\n%s", changed)
	}
	r.Unknown = nil
	plain, err := EncodeRun(&r)
	if err != nil {
		t.Fatal(err)
	}
	if known, err := DecodeRun(plain); err != nil || known.Unknown != nil {
		t.Errorf("of a record without such fields: %s, %v", known.Unknown, err)
	}
}
