package edit

import "testing"

func TestSetIn(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"spec:\n  a: 1 # one\n", "spec:\n  with: {\"env\": \"prod\"}\n  a: 1 # one\n"},
		{"spec:\n  with: {env: test, n: 2} # w\n", "spec:\n  with: {env: \"prod\", n: 2} # w\n"},
		{"spec:\n  with:\n    env: 'te st' # e\n    n: 2\n", "spec:\n  with:\n    env: \"prod\" # e\n    n: 2\n"},
		{"spec:\n  with:\n    n: 2\n", "spec:\n  with:\n    env: \"prod\"\n    n: 2\n"},
		{"spec:\n  with: {env: [a, {b: c}], n: 2}\n", "spec:\n  with: {env: \"prod\", n: 2}\n"},
		{`{"spec": {"a": 1}}`, `{"spec": {"with": {"env": "prod"}, "a": 1}}`},
		{`{"spec": {"with": {}}}`, `{"spec": {"with": {"env": "prod"}}}`},
	} {
		got, err := SetIn([]byte(c.src), "with", map[string]string{"env": `"prod"`})
		if err != nil || string(got) != c.want {
			t.Errorf("%q: %q, %v, want %q", c.src, got, err, c.want)
		}
	}
	for _, src := range []string{"a: 1\n", "spec: []\n", "spec:\n  with: 3\n", "spec:\n  with:\n    env: |\n      text\n"} {
		if got, err := SetIn([]byte(src), "with", map[string]string{"env": "1"}); err == nil {
			t.Errorf("%q became %q", src, got)
		}
	}
}
