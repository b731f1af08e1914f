package runner

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// newSupervised is a rig whose agents have supervisors.
func newSupervised(t *testing.T) *rig {
	return newRig(t, Options{Runs: graceOf(20 * time.Millisecond), Sandbox: sandbox.NewHost("")})
}

// agentActor is actor as the program of an agent.
func agentActor(args ...string) settle.Effect {
	e := actor(args...)
	e.Agent, e.Command().Output = "coder", "text"
	return e
}

// fled are trees whose last process left its parents, its group, its environment and its lease.
var fled = [][]string{
	{"exits", "forker", "stubborn+noenv+nolease+session"},
	{"exits", "forker", "polite+noenv+nolease+session", "forker+session", "stubborn+session"},
	{"stubborn", "forker", "stubborn+noenv+nolease+session"},
}

// TestSupervisedRunsEnd: a process of an agent's run stays one, whatever it leaves, and ends with it.
func TestSupervisedRunsEnd(t *testing.T) {
	for _, how := range []string{"cancel", "close", "signalled", "check"} {
		for _, players := range fled {
			g, args := newSupervised(t), append([]string{"tree"}, players...)
			e := agentActor(args...)
			if how == "check" { // of a landing, whose program is no agent
				e = actor(args...)
				e.Command().Workspace = &settle.Workspace{Kind: settle.CheckWorkspace}
				g.o.Workspaces = &lookout{dir: g.dir}
			}
			gate, pids := g.fifo("gate"), g.fifo("pids")
			all := g.stage(e, pids, players)
			at := slices.IndexFunc(all, func(pid int) bool { return len(environOf(pid)) == 0 })
			last, ok := readMember(all[max(at, 0)])
			if env := string(environOf(last.parent)); at < 0 || !ok || !strings.Contains(env, "RECONCILE_RUN="+e.Key) || how != "check" && !strings.Contains(env, tokenVar+"=") {
				t.Errorf("%q: the parent of what fled is not in the run: %q", players, env)
				how = "cancel" // it is no process of the test
			}
			switch {
			case how == "close":
				g.end()
			case how == "signalled":
				unix.Kill(last.parent, unix.SIGTERM)
				g.Cancel(e.Key, "no longer wanted")
			case players[0] == "exits":
				gate.release()
			default:
				g.Cancel(e.Key, "no longer wanted")
			}
			g.await(e.Key)
			assertGone(t, all)
			g.end()
			if last.parent > 1 && alive(last.parent) {
				t.Errorf("%q: the supervisor survived", players)
			}
		}
	}
}

// TestUnconfinedProgramsAreMarked: while the program of an agent runs that nothing confines, a mark says so; that of a DAG has none.
func TestUnconfinedProgramsAreMarked(t *testing.T) {
	for _, c := range []struct {
		agent string
		level string
		want  bool
	}{{"", "", false}, {"coder", "", true}, {"coder", schemas.SandboxNone, true}} {
		g := newSupervised(t)
		e := effect(theKey, "sh", "-c", "ls .reconcile/unconfined/*.run || echo none")
		if c.agent != "" {
			e.Agent, e.Command().Output = c.agent, "text"
		}
		if c.level != "" {
			e.Command().Sandbox = &settle.Sandbox{Sandbox: schemas.Sandbox{Level: c.level}}
		}
		g.Submit(e)
		if run := g.record(e.Key); strings.HasSuffix(strings.TrimSpace(run.Output), ".run") != c.want {
			t.Errorf("%+v: marks of unconfined runs: %q", c, run.Output)
		}
	}
}

// TestSupervisedStatus: the end of an agent's program is as without a supervisor.
func TestSupervisedStatus(t *testing.T) {
	for script, want := range map[string]string{
		"echo done":               "",
		"echo no; exit 3":         "exit code 3",
		"echo no; kill -TERM $$":  "ended by SIGTERM",
		"echo no; kill -9 $PPID":  "ended by SIGKILL",
		"(exit 3) & echo x; wait": "",
	} {
		g := newSupervised(t)
		e := effect(theKey, "sh", "-c", script)
		e.Agent, e.Command().Output = "coder", "text"
		g.Submit(e)
		if run := g.record(e.Key); (run.Outcome == schemas.OutcomeSucceeded) != (want == "") || !strings.Contains(run.Message, want) {
			t.Errorf("%s: %s %q, want %q", script, run.Outcome, run.Message, want)
		}
	}
	g := newSupervised(t)
	g.write("broken", "#!/does/not/exist\n")
	e := effect(theKey, "./broken")
	e.Agent, e.Command().Output = "coder", "text"
	g.Submit(e)
	if run := g.record(e.Key); !strings.Contains(run.Message, "the interpreter in its first line does not") {
		t.Errorf("%q", run.Message)
	}
}

// TestSupervisorsServeAgain: a run has the supervisor of one that has ended, which shows the later run alone; without a run it shows none.
func TestSupervisorsServeAgain(t *testing.T) {
	g := newSupervised(t)
	serve := func(node string) (pid int, shown []string) {
		t.Helper()
		e := effect("dags/checks/"+node+"-0123456789abcdef-1", "sh", "-c", `echo $PPID; (exit 3) & wait; (setsid sleep 600 3>&- &); tr '\0' '\n' < /proc/$PPID/environ`)
		e.Agent, e.Node, e.Command().Output = "coder", node, "text"
		g.Submit(e)
		run := g.record(e.Key)
		var text string
		_ = json.Unmarshal(run.Result, &text) // an empty one has no number
		lines := strings.Split(text, "\n")
		pid, err := strconv.Atoi(lines[0])
		if err != nil || run.Outcome != schemas.OutcomeSucceeded {
			t.Fatalf("%s: %+v", node, run)
		}
		if left := string(environOf(pid)); strings.Trim(left, "\x00") != "" {
			t.Errorf("%s: after its run the supervisor shows %q", node, left)
		}
		return pid, lines[1:]
	}
	first, _ := serve("first")
	second, shown := serve("second")
	text := strings.Join(shown, "\n")
	if second != first || !strings.Contains(text, "RECONCILE_RUN=dags/checks/second-") || !strings.Contains(text, tokenVar+"=") || strings.Contains(text, "first") {
		t.Errorf("supervisor %d, then %d, which shows %q", first, second, shown)
	}
	unix.Kill(second, unix.SIGKILL)
	third, _ := serve("third")
	if third == second {
		t.Error("a supervisor served after its end")
	}
	g.end()
	if alive(third) {
		t.Error("a supervisor without a run survived")
	}
}

// TestSupervisorsHaveRoom: a supervisor serves only runs whose marks it can show.
func TestSupervisorsHaveRoom(t *testing.T) {
	env := []string{"PATH=/bin", "RECONCILE_RUN=dags/x/y-0123456789abcdef-1", "RECONCILE_RUNNER=no"}
	room := len(marksIn(env))
	narrow, wide := &supervisor{room: room - 1}, &supervisor{room: room}
	all := &supervisors{idle: []*supervisor{narrow, wide}}
	if s, err := all.take(env); s != wide || err != nil || len(all.idle) != 1 {
		t.Errorf("%d bytes of %q: %v, %v; %d supervisors are left", room, env, s, err, len(all.idle))
	}
}
