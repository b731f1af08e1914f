package schemas_test

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestScenario_TOMLParsing: the fields about clarifications are read from a workflow of AgentX, and have the defaults of
// its specification where they are absent.
func TestScenario_TOMLParsing(t *testing.T) {
	steps := decodeSteps(t, `[workflow]
name = "feature"

[[steps]]
id = "implement"
agent = "engineer"
can_clarify = ["architect", "product-manager"]
clarify_max_rounds = 3
clarify_sla_minutes = 0
clarify_blocking_allowed = false

[[steps]]
id = "review"
agent = "reviewer"
needs = ["implement"]
`)
	full, bare := steps[0], steps[1]
	if !slices.Equal(full.CanClarify, []string{"architect", "product-manager"}) || full.ClarifyMaxRounds != 3 ||
		full.ClarifySLAMinutes == nil || *full.ClarifySLAMinutes != 0 || *full.ClarifyBlockingAllowed {
		t.Errorf("read %+v", full)
	}
	// Rounds and minutes that are absent stay so: those of the request and of the settings come next, then these.
	if len(bare.CanClarify) != 0 || bare.ClarifyMaxRounds != 0 || bare.ClarifySLAMinutes != nil ||
		!*bare.ClarifyBlockingAllowed {
		t.Errorf("defaults %+v", bare)
	}
	if schemas.ClarifyRoundsBlocking != 5 || schemas.DefaultClarifySLAMinutes != 30 {
		t.Error("the defaults are 5 rounds and 30 minutes")
	}
}

// TestTOMLRefusals: a wrong value is refused at its place, and a misspelt field with the right one.
func TestTOMLRefusals(t *testing.T) {
	for line, want := range map[string]string{
		`can_clarify = "architect"`:      "steps[0].can_clarify",
		`clarify_max_rounds = 0`:         "steps[0].clarify_max_rounds",
		`clarify_sla_minutes = -1`:       "steps[0].clarify_sla_minutes",
		`clarify_blocking_allowed = "y"`: "steps[0].clarify_blocking_allowed",
		`can_clarfy = ["architect"]`:     "can_clarify",
		`can_clarify = ["engineer"]`:     "cannot ask itself",
	} {
		src := "[workflow]\nname = \"f\"\n[[steps]]\nid = \"a\"\nagent = \"engineer\"\n" + line + "\n"
		out := schemas.NewDecoder(all, 0).Decode("specs/f.toml", []byte(src))
		if out.Object != nil || len(out.Problems) == 0 {
			t.Errorf("%s is accepted", line)
			continue
		}
		if p := out.Problems[0]; p.Line != 6 || !strings.Contains(p.Error(), want) {
			t.Errorf("%s: %v, want line 6 and %q", line, p, want)
		}
	}
}

// decodeSteps reads the steps of a workflow in TOML.
func decodeSteps(t *testing.T, src string) []schemas.Step {
	t.Helper()
	out := schemas.NewDecoder(all, 0).Decode("specs/f.toml", []byte(src))
	if out.Object == nil {
		t.Fatalf("%v", out.Problems)
	}
	return out.Object.Spec().(*schemas.WorkflowSpec).Steps
}
