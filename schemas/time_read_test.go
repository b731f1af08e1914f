package schemas_test

import (
	"encoding/json"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestReadTime: times are read from any JSON text, and from nothing else.
func TestReadTime(t *testing.T) {
	const want = `"2026-02-27T10:00:00.12Z"`
	for in, ok := range map[string]bool{
		want: true, `"2026-02-27T10:00:00.1200001Z"`: true, `"2026-02-27T12:00:00.12+02:00"`: true, `"2026-02-27T10:00:00.12\u005a"`: true,
		`"2026-02-27T10:00:00.12Z`: false, `2026-02-27T10:00:00.12Z"`: false, `"`: false, `""`: false, `5`: false, `"2026-02-27"`: false,
		`"2026-02-27T10:00:00.12Z\"`: false, `""2026-02-27T10:00:00.12Z""`: false,
	} {
		var got schemas.Time
		err := got.UnmarshalJSON([]byte(in))
		if (err == nil) != ok {
			t.Errorf("%s: %v", in, err)
		}
		if text, _ := json.Marshal(got); ok && string(text) != want {
			t.Errorf("%s is read as %s", in, text)
		}
	}
}
