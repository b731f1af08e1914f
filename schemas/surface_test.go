package schemas_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"reconcile.dev/reconcile/schemas"
)

func TestFormat(t *testing.T) {
	at := schemas.Place{Path: "specs/a.yaml", Line: 12, Column: 5}
	cases := []struct {
		name string
		p    schemas.Problem
		want string
	}{
		{"a file", schemas.Problem{Place: schemas.Place{Path: "a.yaml"}, Message: "is bad"}, "a.yaml: is bad\n"},
		{"a place", schemas.Problem{Place: at, Field: "spec.x", Message: "is bad", Suggestion: "did you mean \"y\"?", Source: "abcdefg"},
			"specs/a.yaml:12:5: spec.x: is bad; did you mean \"y\"?\n  12 | abcdefg\n     |     ^\n"},
		{"tabs", schemas.Problem{Place: at, Message: "m", Source: "a\tb\tc"},
			"specs/a.yaml:12:5: m\n  12 | a    b    c\n     |           ^\n"},
		{"wide characters", schemas.Problem{Place: at, Message: "m", Source: "日本é\u0301x"},
			"specs/a.yaml:12:5: m\n  12 | 日本é\u0301x\n     |      ^\n"},
		{"controls", schemas.Problem{Place: at, Message: "m", Source: "a\x1b[\u202ebc"},
			"specs/a.yaml:12:5: m\n  12 | a\uFFFD[\uFFFDbc\n     |     ^\n"},
		{"behind the end", schemas.Problem{Place: at, Message: "m", Source: "ab"}, "specs/a.yaml:12:5: m\n  12 | ab\n     |   ^\n"},
		{"a warning", schemas.Problem{Place: schemas.Place{Path: "a"}, Severity: schemas.Warning, Message: "m"}, "warning: a: m\n"},
		{"related", schemas.Problem{Place: schemas.Place{Path: "a"}, Message: "m", Related: []schemas.Place{at, {Path: "b"}},
			Notes: []string{"here too"}}, "a: m\n  specs/a.yaml:12:5: here too\n  b: see here\n"},
	}
	for _, c := range cases {
		if got := c.p.Format(); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	long := schemas.Problem{Place: schemas.Place{Path: "a", Line: 1, Column: 500}, Message: "m", Source: strings.Repeat("x", 1000)}
	for line := range strings.SplitSeq(long.Format(), "\n") {
		if len(line) > 130 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

func TestLocate(t *testing.T) {
	path, src := example(t, "dag.yaml")
	for _, c := range []struct {
		field []any
		want  string // "line:column text of the line"
	}{
		{[]any{"spec", "session"}, "7:12   session: health"},
		{[]any{"spec", "nodes", 1, "needs", 0}, "17:15       needs: [build]"},
		{[]any{"spec", "nodes", 1, "needs"}, "17:7       needs: [build]"},
		{[]any{"spec", "nodes", 1, "env", "X"}, "16:7     - name: unit_tests"},
		{[]any{"spec", "nodes", 99, "name"}, "12:3   nodes:"},
		{[]any{"metadata", "name"}, "5:9   name: checks"},
		{nil, "2:1 apiVersion: reconcile.dev/v1alpha1"},
	} {
		at, source := schemas.Locate(path, src, c.field...)
		got := strings.TrimPrefix(at.String(), path+":") + " " + source
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.field, got, c.want)
		}
	}
	path, src = example(t, "workflow.toml")
	if at, _ := schemas.Locate(path, src, "spec", "steps", 1, "needs", 0); at.Line != 16 || at.Column != 10 {
		t.Errorf("TOML: %v, want 16:10", at)
	}
	if at, source := schemas.Locate("a.yaml", []byte("a: ["), "a"); at.Line != 0 || source != "" {
		t.Errorf("a broken file: %v %q", at, source)
	}
}

func TestExplain(t *testing.T) {
	e, err := schemas.Explain(schemas.DAGKind, []string{"spec", "nodes", "needs"})
	if err != nil || e.Path != "dag.spec.nodes.needs" || e.Type != "list of text" || e.Description == "" || e.Required {
		t.Errorf("needs: %+v, %v", e, err)
	}
	e, err = schemas.Explain(schemas.SessionKind, []string{"spec", "priority"})
	if err != nil || e.Default != `"normal"` || len(e.Enum) != 5 {
		t.Errorf("priority: %+v, %v", e, err)
	}
	e, err = schemas.Explain(schemas.DAGKind, []string{"spec", "nodes"})
	if err != nil || len(e.Fields) < 15 || e.Fields[0].Path != "dag.spec.nodes.name" || !e.Fields[0].Required {
		t.Errorf("nodes: %+v, %v", e, err)
	}
	e, err = schemas.Explain(schemas.AgentKind, []string{"spec", "runner", "command", "timeout"})
	if err != nil || e.Type != "duration" || e.Default != `"10m"` || len(e.Examples) == 0 {
		t.Errorf("timeout: %+v, %v", e, err)
	}
	for path, want := range map[string]string{
		"spec.nods":         `did you mean "nodes"?`,
		"spec.session.x":    "dag.spec.session has no fields",
		"spec.xyzzyxyzzy.a": "fields: session, issue",
	} {
		if _, err := schemas.Explain(schemas.DAGKind, strings.Split(path, ".")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// TestPublishedSchemas holds every schema to what editors and this program need of it.
func TestPublishedSchemas(t *testing.T) {
	for _, k := range all {
		var doc map[string]any
		if err := json.Unmarshal(schemas.Schema(k), &doc); err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" || doc["$id"] == nil || doc["title"] != k.Name {
			t.Errorf("%s: $schema %v, $id %v, title %v", k.Name, doc["$schema"], doc["$id"], doc["title"])
		}
		closed(t, k.Name, doc)
	}
	if schemas.Schema(schemas.Kind{Name: "Nothing"}) != nil {
		t.Error("a kind without a schema has one")
	}
}

// closed fails unless every set of fields refuses others, and every field has a description.
func closed(t *testing.T, path string, s map[string]any) {
	t.Helper()
	props, _ := s["properties"].(map[string]any)
	if len(props) > 0 && s["additionalProperties"] != false {
		t.Errorf("%s: further fields are allowed", path)
	}
	for name, p := range props {
		p := p.(map[string]any)
		if p["description"] == nil {
			t.Errorf("%s.%s: no description", path, name)
		}
		closed(t, path+"."+name, p)
	}
	if items, ok := s["items"].(map[string]any); ok {
		closed(t, path+"[]", items)
	}
}

// TestTOMLSchema validates the fields of the TOML example against the schema for editors.
func TestTOMLSchema(t *testing.T) {
	s, err := jsonschema.Compile("workflow.toml.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	path, src := example(t, "workflow.toml")
	o := schemas.NewDecoder(all, 0).Decode(path, src).Object
	var spec map[string]any
	if err := json.Unmarshal(o.Canonical(), &spec); err != nil {
		t.Fatal(err)
	}
	doc := map[string]any{"workflow": map[string]any{"name": o.Name, "title": spec["title"]}, "steps": spec["steps"]}
	if err := s.Validate(doc); err != nil {
		t.Errorf("%#v", err)
	}
	doc["step"] = true
	if s.Validate(doc) == nil {
		t.Error("an unknown table is accepted")
	}
}

// TestSettingsFile: the settings are read from their own path and nowhere else, and nothing else is read there.
func TestSettingsFile(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	_, src := example(t, "settings.yaml")
	out := d.Decode(schemas.SettingsPath, src)
	s := schemas.SpecAs[*schemas.SettingsSpec](out.Object)
	if s == nil || s.Limits.Sessions != 10 || s.Limits.Engineers != 500 || s.Runs.Grace.String() != "10s" || !s.Git.Commit {
		t.Errorf("got %+v, %v", s, out.Problems)
	}
	if out := d.Decode("specs/s.yaml", src); out.Object != nil || out.Ref != (schemas.Ref{}) {
		t.Errorf("settings elsewhere: %v", out.Ref)
	}
	if out := d.Decode(schemas.SettingsPath, []byte(session)); out.Object != nil || out.Ref != (schemas.Ref{}) {
		t.Errorf("a session in place of the settings: %v", out.Ref)
	}
	if out := d.Decode(schemas.SettingsPath, []byte(strings.Replace(string(src), "name: settings", "name: mine", 1))); out.Object != nil {
		t.Error("settings of another name are accepted")
	}
}

// TestConcurrentDecoding is for the race detector: one decoder, every kind for the first time, from many sides.
func TestConcurrentDecoding(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, k := range all {
				path, src := example(t, k.Singular()+".yaml")
				if o := d.Decode(path, src).Object; o == nil || o.Spec() == nil {
					t.Errorf("%s: no object", k.Name)
				}
			}
		})
	}
	wg.Wait()
}
