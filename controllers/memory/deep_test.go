package memory

import (
	"errors"
	"strings"
	"testing"
)

// TestDeepNesting would end the process, not fail.
func TestDeepNesting(t *testing.T) {
	deep := strings.Repeat("[", 4_000_000)
	for _, text := range []string{deep, `{"observations":` + deep, `{"x":` + deep} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrDamaged) {
			t.Errorf("Parse of %.20s…: %v, want ErrDamaged", text, err)
		}
		if _, err := ParseRecord([]byte(text)); !errors.Is(err, ErrDamaged) {
			t.Errorf("ParseRecord of %.20s…: %v, want ErrDamaged", text, err)
		}
		Salvage([]byte(text), 29)
	}
}

// What is wrong with a file is said in one line, with its line in the file, and without what stands there.
func TestDamageIsOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\"version\": 1,\n \"observations\": [\n  {\"id\": \"x\" oops\n\x1b[31msecret} ]}\n": "damaged: line 3: ",
		"{\"version\": 1,\n \"issueNumber\"":                                                  "damaged: line 2: ",
		"":                                                                                    "damaged: line 1: ",
		"{\"version\":\n \"one\n two\"}":                                                      "damaged: line 2: ",
		"{\"version\":\n \"secret\"}":                                                         "damaged: version: ",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x1b") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		_, err = ParseRecord([]byte(text))
		if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "secret") {
			t.Errorf("as a record, %q: %v", text, err)
		}
	}
}
