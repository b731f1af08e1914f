package document

import (
	"bytes"
	"encoding/json"
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
