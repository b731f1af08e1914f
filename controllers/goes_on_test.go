package controllers

import (
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestWorkGoesOnInItsWorkspace: what a run changed before it waited for a permission or handed its task off is where the next one works.
// After a retry the next one works where the attempts before it worked.
func TestWorkGoesOnInItsWorkspace(t *testing.T) {
	s := newSim(t)
	s.put("specs/sessions/s.yaml", head("Session", "s")+"spec: {title: s}\n")
	s.put("specs/agents/ben.yaml", head("Agent", "ben")+"spec: {workspace: clone, runner: {command: {argv: [ben]}}}\n")
	s.put("specs/dags/d.yaml", head("DAG", "d")+"spec: {session: s, nodes: [{name: n, agent: ben, prompt: Go., retry: {limit: 0}}]}\n")
	last := ""
	for _, outcome := range []string{schemas.OutcomeNotPermitted, schemas.OutcomeHandedOff, schemas.OutcomeFailed} {
		s.settle()
		e, ok := s.find("d", "n")
		if !ok || e.Command().Workspace.Continues != last {
			t.Fatalf("before %s: %v, %+v, want %q", outcome, ok, e.Command(), last)
		}
		s.start(e)
		s.finish("d", "n", outcome, nil)
		last = e.Key
		if outcome == schemas.OutcomeFailed {
			s.put("specs/actions/a.yaml", head("Action", "a")+"spec: {target: dag/d, node: n, verb: retry}\n")
			s.settle()
			again, ok := s.find("d", "n")
			if was, is := e.Command().Workspace, again.Command().Workspace; !ok || is.Before != was.Attempts || is.Attempts == was.Attempts || was.Before != "" {
				t.Errorf("before the retry %+v, after it %+v", was, is)
			}
		}
	}
}
