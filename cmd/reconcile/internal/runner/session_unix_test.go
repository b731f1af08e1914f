//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// agentWithSession is a run of a program that continues the sessions whose files are in the tree, and says in the file calls what it did. Where
// the file waits is there it waits in its turn until it is killed.
func agentWithSession() settle.Effect {
	const program = `case $1 in continue) echo "continues $2" >> calls; [ -e "$2" ] || { echo "$why" >&2; exit 1; } ;; *) echo begins >> calls ;; esac
echo '{"id":"s2"}'
[ ! -e waits ] || { echo '{"out":1}'; exec sleep 60; }
[ ! -e tokens ] || { echo '{"out":5}'; exit 1; }
echo '{"done":"Done."}'`
	e := effect(theKey, "sh", "-c", program, "agent", "begin")
	c := e.Command()
	c.Output, c.ProfileName, c.Stdin = "text", "mine", "Go."
	c.Env = []string{"why=No such session."}
	c.Continue = &settle.Continuation{Argv: []string{"sh", "-c", program, "agent", "continue", schemas.ArgValue}}
	c.Profile = &schemas.Profile{Output: "jsonl", Events: []schemas.ProfileEvent{
		{When: map[string]string{"id": "*"}, Session: "id"},
		{When: map[string]string{"out": "*"}, Usage: schemas.ProfileUsage{Output: "out"}},
		{When: map[string]string{"done": "*"}, End: "success", Text: "done"},
	}}
	return e
}

// TestLostSessions: a run whose session the agent does not have any more is given up without a record, and the next one begins a new session.
// A failure that says nothing about the session is a failure.
func TestLostSessions(t *testing.T) {
	s1 := &schemas.Turn{Runner: schemas.RunnerCommand, SessionID: "s1"}
	for _, c := range []struct {
		name        string
		killed, has bool // a run was killed in session s2; the agent has the session
		before      *schemas.Turn
		why         string
		want, calls string
	}{
		{name: "no session", want: "Succeeded", calls: "begins"},
		{name: "it is there", before: s1, has: true, want: "Succeeded", calls: "continues s1"},
		{name: "it is lost", before: s1, want: "", calls: "continues s1\nbegins"},
		{name: "killed, it is there", killed: true, has: true, want: "Succeeded", calls: "begins\ncontinues s2"},
		{name: "killed, it is lost", killed: true, want: "", calls: "begins\ncontinues s2\nbegins"},
		{name: "killed in another one", killed: true, before: s1, has: true, want: "Succeeded", calls: "continues s1\ncontinues s2"},
		{name: "access", before: s1, why: "401 Unauthorized", want: "Failed", calls: "continues s1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			g := newRig(t, Options{Root: dir})
			e := agentWithSession()
			e.Command().Resumes = c.before
			if c.has {
				g.write("s1", "")
				g.write("s2", "")
			}
			if c.why != "" {
				e.Command().Env = []string{"why=" + c.why}
			}
			if c.killed {
				g.write("waits", "")
				g.Submit(e)
				g.until(func(r settle.Report) bool { return r.Kind == settle.Progressed && r.Turn.SessionID == "s2" })
				g.end()
				os.Remove(filepath.Join(dir, "waits"))
				g = newRig(t, Options{Root: dir})
			}
			g.Submit(e)
			got := ""
			if r := g.await(e.Key); r.Run != nil {
				got = r.Run.Outcome
			} else {
				g.Submit(e)
				if run := g.record(e.Key); run.Outcome != schemas.OutcomeSucceeded {
					t.Errorf("the new session: %s %s", run.Outcome, run.Message)
				}
			}
			if calls := g.text("calls"); got != c.want || calls != c.calls {
				t.Errorf("%q %q, want %q %q", got, calls, c.want, c.calls)
			}
		})
	}
}

// TestSessionsThatWorked: a turn that produced something has its session, however it fails.
func TestSessionsThatWorked(t *testing.T) {
	g := newRig(t, Options{})
	g.write("s1", "")
	g.write("tokens", "")
	e := agentWithSession()
	e.Command().Resumes = &schemas.Turn{Runner: schemas.RunnerCommand, SessionID: "s1"}
	if run := g.do(e); run.Outcome != schemas.OutcomeFailed || run.Turn.Failure.Class != schemas.FailureUnknown {
		t.Errorf("%s %s", run.Outcome, run.Message)
	}
}
