package document

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestJSONAndYAML(t *testing.T) {
	for _, s := range []string{"plain <b> & c", "esc \x1b del \x7f", "bidi \u202e, tag \U000e0041, bom \ufeff", "two\nlines"} {
		var j, y bytes.Buffer
		if err := JSON(&j, map[string]string{"k": s}); err != nil {
			t.Fatal(err)
		}
		if err := YAML(&y, map[string]string{"k": s}); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"json": j.String(), "yaml": y.String()} {
			if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), Hidden) {
				t.Errorf("%s of %q holds hidden characters: %q", name, s, text)
			}
		}
		var fromJSON, fromYAML map[string]string
		if err := json.Unmarshal(j.Bytes(), &fromJSON); err != nil || fromJSON["k"] != s {
			t.Errorf("json of %q reads as %q, %v", s, fromJSON["k"], err)
		}
		if err := yaml.Unmarshal(y.Bytes(), &fromYAML); err != nil || fromYAML["k"] != s {
			t.Errorf("yaml of %q reads as %q, %v", s, fromYAML["k"], err)
		}
	}
}

// TestYAMLOfAnyValue: what is written reads as the same value, with sorted keys; also where the library of Kubernetes does not
// read the keys.
func TestYAMLOfAnyValue(t *testing.T) {
	long := strings.Repeat("k ü", 1000)
	for _, want := range []map[string]any{
		{"b": []any{"yes", "12", "2026-02-27", "", " ", "a: b # c", "two\nlines\n"}, "a10": 1.5, "a9": map[string]any{"true": true, "": nil}},
		{"n": float64(1 << 53), "s": strings.Repeat("words in a line ", 30), long: map[string]any{long: "v", "n": float64(3)}},
	} {
		var b bytes.Buffer
		if err := YAML(&b, want); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := yaml.Unmarshal(b.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %v is read from\n%s", err, got, b.String())
		}
	}
	var b bytes.Buffer
	for _, v := range []any{math.MaxInt64, uint64(math.MaxUint64), 0.1, []any{}, nil} {
		if err := YAML(&b, map[string]any{long: v}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"9223372036854775807", "18446744073709551615", ": 0.1\n", ": []\n", ": null\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
