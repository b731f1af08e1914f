package schemas_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// stepEffects are a value of each field of a step, and what it does to the node: the field that differs from that of a step without it.
var stepEffects = map[string]struct{ toml, node string }{
	"id":                       {`id = "other"`, "Name"},
	"title":                    {`title = "Build it"`, "Description"},
	"agent":                    {`agent = "architect"`, "Agent"},
	"needs":                    {`needs = ["first"]`, "Needs"},
	"optional":                 {`optional = true`, "Optional"},
	"condition":                {"needs = [\"first\"]\ncondition = \"needs.first.exitCode == 0\"", "When"},
	"output":                   {`output = "docs/out.md"`, "Outputs"},
	"prompt":                   {`prompt = "Build {{ issue.title }}."`, "Prompt"},
	"template":                 {`template = "docs/template.md"`, "Prompt"},
	"iterate":                  {`iterate = true`, "Repeat"},
	"iterate_from":             {"needs = [\"first\"]\niterate = true\niterate_from = \"first\"", "Repeat"},
	"max_iterations":           {"iterate = true\nmax_iterations = 7", "Repeat"},
	"completion_criteria":      {`completion_criteria = "all tests pass"`, "Acceptance"},
	"approve":                  {"[steps.approve]\ncount = 2", "Approve"},
	"status_on_start":          {`status_on_start = "In Progress"`, "IssueStatus"},
	"status_on_complete":       {`status_on_complete = "Done"`, "IssueStatus"},
	"can_clarify":              {`can_clarify = ["architect"]`, "Clarify"},
	"clarify_max_rounds":       {`clarify_max_rounds = 2`, "Clarify"},
	"clarify_sla_minutes":      {`clarify_sla_minutes = 5`, "Clarify"},
	"clarify_blocking_allowed": {`clarify_blocking_allowed = false`, "Clarify"},
}

// TestStepFieldsHaveAnEffect goes through all fields of a step: each of them changes the node that the step becomes.
func TestStepFieldsHaveAnEffect(t *testing.T) {
	const head = "[workflow]\nname = \"w\"\n\n[[steps]]\nid = \"first\"\nagent = \"engineer\"\n\n[[steps]]\n"
	of := func(own string) *schemas.Node {
		for _, line := range []string{`agent = "engineer"`, `id = "build"`} {
			field, _, _ := strings.Cut(line, " ")
			if !strings.HasPrefix(own, field+" ") && !strings.Contains(own, "\n"+field+" ") {
				own = line + "\n" + own
			}
		}
		steps := decodeSteps(t, head+own)
		return &(&schemas.WorkflowSpec{Steps: steps}).Nodes()[1]
	}
	plain := of("")
	kind := reflect.TypeFor[schemas.Step]()
	for i := range kind.NumField() {
		field, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		effect, ok := stepEffects[field]
		if !ok {
			t.Errorf("nobody says what %s does", field)
			continue
		}
		got := of(effect.toml)
		was, is := reflect.ValueOf(*plain).FieldByName(effect.node), reflect.ValueOf(*got).FieldByName(effect.node)
		if reflect.DeepEqual(was.Interface(), is.Interface()) {
			t.Errorf("%s changes nothing in %s of its node: %+v", field, effect.node, is)
		}
	}
}

// TestIterateEnds has both forms of criteria: an expression, and text that the agent judges.
func TestIterateEnds(t *testing.T) {
	steps := decodeSteps(t, "[workflow]\nname = \"w\"\n\n[[steps]]\nid = \"a\"\nagent = \"engineer\"\niterate = true\n"+
		"completion_criteria = \"all tests pass\"\n\n[[steps]]\nid = \"b\"\nagent = \"engineer\"\niterate = true\nmax_iterations = 4\n"+
		"completion_criteria = \"result.verdict == 'accept'\"\n")
	nodes := (&schemas.WorkflowSpec{Steps: steps}).Nodes()
	if a := nodes[0]; a.Repeat.Until != "result.complete == true" || !slices.Equal(a.Acceptance, []string{"all tests pass"}) ||
		!strings.Contains(string(a.Outputs.Schema), "all tests pass") {
		t.Errorf("text became %+v", a)
	}
	if b := nodes[1]; b.Repeat.Until != "result.verdict == 'accept'" || b.Repeat.Max != 4 || b.Acceptance != nil || b.Outputs.Schema != nil {
		t.Errorf("an expression became %+v", b)
	}
}

// TestSplitIssue takes the first heading for the title.
func TestSplitIssue(t *testing.T) {
	for text, want := range map[string][2]string{
		"# A title\n\nText.\n":                  {"A title", "Text."},
		"Before.\n## Second ##\nAfter":          {"Second", "Before.\nAfter"},
		"```\n# no title\n```\n# Title\nx":      {"Title", "```\n# no title\n```\nx"},
		"#no title\nText":                       {"", "#no title\nText"},
		"":                                      {"", ""},
		"####### seven\n#\n# \n#  Spaces   \nx": {"Spaces", "####### seven\n#\n# \nx"},
	} {
		title, body := schemas.SplitIssue(text)
		if title != want[0] || body != want[1] {
			t.Errorf("%q: %q and %q, want %q", text, title, body, want)
		}
	}
}
