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
