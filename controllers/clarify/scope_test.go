package clarify

import (
	"errors"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func ptr[T any](v T) *T { return &v }

// engineerScope is that of an engineer with an Agent object, in the run of a node that allows more.
func engineerScope(node *schemas.Clarify) Scope {
	return NewScope("engineer", &schemas.AgentSpec{CanClarify: []string{"product-manager", "architect"}}, node)
}

// polish is a node that names an agent, and does not let its questions block.
func polish() *schemas.Clarify {
	return &schemas.Clarify{Agents: []string{"designer"}, MaxRounds: 99, SLAMinutes: ptr(0), BlockingAllowed: ptr(false)}
}

func TestScenario_ScopeValidation(t *testing.T) {
	inRun, outside := engineerScope(polish()), engineerScope(nil)
	if got := inRun.Allowed(); !slices.Equal(got, []string{"architect", "designer", "product-manager"}) {
		t.Errorf("allowed %v", got)
	}
	const noBlock = "its step has clarify_blocking_allowed = false; ask without blocking"
	for _, c := range []struct {
		scope    Scope
		to       string
		blocking bool
		want     string
	}{
		{outside, "architect", true, ""}, {outside, "product-manager", true, ""}, {inRun, "designer", false, ""}, {inRun, "architect", false, ""},
		{inRun, "designer", true, "SCOPE_VIOLATION: agent 'engineer' cannot block on 'designer': " + noBlock},
		{inRun, "architect", true, "SCOPE_VIOLATION: agent 'engineer' cannot block on 'architect': " + noBlock},
		{inRun, "guide", false,
			"SCOPE_VIOLATION: agent 'engineer' cannot clarify with 'guide'; allowed: [architect, designer, product-manager]"},
		// What a node allows is about its own runs.
		{outside, "designer", false,
			"SCOPE_VIOLATION: agent 'engineer' cannot clarify with 'designer'; allowed: [architect, product-manager]"},
		// As in the issue.
		{outside, "reviewer", false,
			"SCOPE_VIOLATION: agent 'engineer' cannot clarify with 'reviewer'; allowed: [architect, product-manager]"},
	} {
		err := c.scope.Check(&schemas.ClarificationRequestSpec{From: "engineer", To: c.to, Blocking: c.blocking})
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s, blocking %t: %v, want %q", c.to, c.blocking, err, c.want)
		}
		if err != nil && (!errors.Is(err, &Error{Kind: ScopeViolation}) || errors.Is(err, &Error{Kind: NotFound})) {
			t.Errorf("kind of %v", err)
		}
	}
	if err := NewScope("tester", nil, nil).Check(&schemas.ClarificationRequestSpec{From: "tester", To: "architect"}); err == nil {
		t.Error("nothing is listed, and something is allowed")
	}
}

func TestLimits(t *testing.T) {
	build := engineerScope(&schemas.Clarify{MaxRounds: 3, SLAMinutes: ptr(10)})
	set := schemas.ClarificationSettings{SLAMinutes: ptr(45), RetryAfter: ptr(schemas.Duration(time.Second))}
	for _, c := range []struct {
		scope Scope
		spec  schemas.ClarificationRequestSpec
		set   schemas.ClarificationSettings
		want  Limits
	}{
		{build, schemas.ClarificationRequestSpec{To: "architect", Blocking: true}, set, Limits{3, 10 * time.Minute, time.Second}},
		{build, schemas.ClarificationRequestSpec{To: "architect", Blocking: true, MaxRounds: 4, SLAMinutes: ptr(0)}, set,
			Limits{4, 0, time.Second}},
		{build, schemas.ClarificationRequestSpec{To: "architect", Blocking: true, MaxRounds: 100}, set,
			Limits{5, 10 * time.Minute, time.Second}},
		{build, schemas.ClarificationRequestSpec{To: "architect", MaxRounds: 100}, set, Limits{6, 10 * time.Minute, time.Second}},
		{engineerScope(polish()), schemas.ClarificationRequestSpec{To: "designer"}, set, Limits{6, 0, time.Second}},
		{engineerScope(nil), schemas.ClarificationRequestSpec{To: "product-manager", Blocking: true}, set,
			Limits{5, 45 * time.Minute, time.Second}},
		{engineerScope(nil), schemas.ClarificationRequestSpec{To: "product-manager"}, schemas.ClarificationSettings{},
			Limits{6, 30 * time.Minute, 30 * time.Second}},
	} {
		if got := c.scope.Limits(&c.spec, c.set); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.spec, got, c.want)
		}
	}
}

func TestIDs(t *testing.T) {
	for id, want := range map[string][2]int{"CLR-42-001": {42, 1}, "CLR-0-999": {0, 999}, "CLR-7-1000": {7, 1000}} {
		issue, seq, ok := ParseID(id)
		if !ok || issue != want[0] || seq != want[1] || FormatID(issue, seq) != id {
			t.Errorf("%s: %d %d %t", id, issue, seq, ok)
		}
	}
	for _, id := range []string{"", "CLR-42-01", "CLR-042-001", "CLR-42-0001", "clr-42-001", "CLR-42", "CLR-42-001-1"} {
		if _, _, ok := ParseID(id); ok {
			t.Errorf("%q is an id", id)
		}
	}
	if n := LastSeq(42, "CLR-42-007", "CLR-43-900", "x", "CLR-42-002"); n != 7 {
		t.Errorf("last %d", n)
	}
}

func TestErrors(t *testing.T) {
	for err, want := range map[error]string{
		NewNotFound("CLR-42-001"): "NOT_FOUND: clarification CLR-42-001 not found in ledger",
		NewMaxRounds("CLR-42-001", 5): "MAX_ROUNDS_EXCEEDED: CLR-42-001 reached max rounds (5); it is escalated. " +
			`Decide, then run: reconcile clarify resolve CLR-42-001 "what was decided"`,
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
