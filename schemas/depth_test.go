package schemas_test

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestTooDeep(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	tests := []struct {
		name, text string
		want       bool
	}{
		{"short", `{"a":[1]}`, false},
		{"long and flat", `["` + long + `"]`, false},
		{"many values", "[" + strings.Repeat("[],{},", 200_000) + "1]", false},
		{"brackets in a text", `["` + strings.Repeat(`\"[{`, 300_000) + `"]`, false},
		{"lists", strings.Repeat("[", 2_000_000), true},
		{"objects", strings.Repeat(`{"a":`, 500_000) + "1", true},
		{"behind a text", `["` + long + `",` + strings.Repeat("[", 20_000), true},
	}
	for _, tt := range tests {
		if got := schemas.TooDeep([]byte(tt.text)); got != tt.want {
			t.Errorf("%s: TooDeep is %v, want %v", tt.name, got, tt.want)
		}
	}
}
