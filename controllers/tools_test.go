package controllers

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// toolSim has a DAG whose nodes declare the tool go: a command, and a task of the agent ben.
func toolSim(t *testing.T) *sim {
	s := newSim(t)
	s.put("specs/sessions/s.yaml", head("Session", "s")+"spec: {title: s}\n")
	s.put("specs/agents/ben.yaml", head("Agent", "ben")+"spec: {runner: {command: {argv: [ben]}}}\n")
	s.put("specs/dags/d.yaml", head("DAG", "d")+"spec:\n  session: s\n  nodes:\n    - {name: n, tools: [go], run: [build]}\n"+
		"    - {name: a, tools: [go], agent: ben, prompt: Go.}\n")
	return s
}

// tellVersion sets what the tools say.
func (s *sim) tellVersion(is settle.Tool) {
	s.checks = false // compares with decisions that know nothing of it
	s.decider.Tool = func(string) (settle.Tool, bool) { return is, true }
	s.dirty[schemas.DAGKind.Ref("d")] = true
	s.settle()
}

// doBoth makes both nodes succeed and returns the keys of their effects.
func (s *sim) doBoth(t *testing.T) (keys string) {
	for _, node := range []string{"n", "a"} {
		e, ok := s.find("d", node)
		if !ok {
			t.Fatalf("%s does not want to run: %+v", node, s.dag("d").Nodes.Of(node))
		}
		if e.Claim().Tools["go"] == "" {
			t.Errorf("the record of %s will not say which version it had", node)
		}
		keys += e.Key + " "
		s.start(e)
		s.finish("d", node, schemas.OutcomeSucceeded, nil)
	}
	s.settle()
	return keys
}

func TestToolVersions(t *testing.T) {
	s := toolSim(t)
	s.tellVersion(settle.Tool{Why: "it is not found"})
	if n := s.dag("d").Nodes.Of("n"); n.State != schemas.NodeBlocked || n.Reason != settle.ReasonToolUnknown || !strings.Contains(n.Message, "go is not known: it is not found") {
		t.Errorf("without the tool the node is %s: %s: %s", n.State, n.Reason, n.Message)
	}
	s.tellVersion(settle.Tool{Version: "go1"})
	first := s.doBoth(t)
	s.tellVersion(settle.Tool{Version: "go2"})
	if why := whySteps(s, settle.Tool{Version: "go3"}); !strings.Contains(why, `the version of go changed from "go2" to "go3"`) {
		t.Errorf("plan says %q", why)
	}
	second := s.doBoth(t)
	if first == second {
		t.Errorf("two versions have the keys %s", first)
	}
	for _, is := range []settle.Tool{{Why: "it is not found"}, {Version: "go2"}, {Version: "go1"}, {Version: "go2"}} {
		s.tellVersion(is)
		for _, node := range []string{"n", "a"} {
			if n := s.dag("d").Nodes.Of(node); n.State != schemas.NodeSucceeded {
				t.Errorf("with %+v, %s is %s: %s", is, node, n.State, n.Message)
			}
		}
	}
	if got := s.dag("d").Nodes.Of("n").Tools["go"]; got != "go2" {
		t.Errorf("the status has the version %q", got)
	}
}

// whySteps is what a plan says with a version of the tools.
func whySteps(s *sim, is settle.Tool) string {
	var out []string
	for _, st := range Plan(s.tree(), s.now, func(string) (settle.Tool, bool) { return is, true }, nil) {
		out = append(out, st.Why)
	}
	return strings.Join(out, "\n")
}
