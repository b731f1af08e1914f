// Package progresstest plays runs for those who test what shows them: trees that are really decided, and reports as a
// performer makes them.
package progresstest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Play is a run of some DAGs of one session. The agent ada is a person, the agent coder a program that asks for permissions.
type Play struct {
	testing.TB
	Now  time.Time
	Tree *state.Tree
}

// New makes a play whose tree has a session, the agents and the DAGs of the specs, by name, and decides it.
func New(t testing.TB, now time.Time, dags map[string]*schemas.DAGSpec) *Play {
	entries := []*state.Entry{
		entry(t, schemas.SessionKind, "work", &schemas.SessionSpec{}),
		entry(t, schemas.AgentKind, "ada", &schemas.AgentSpec{Runner: schemas.Runner{Human: &schemas.HumanRunner{}}}),
		entry(t, schemas.AgentKind, "coder", &schemas.AgentSpec{Runner: schemas.Runner{ACP: &schemas.ACPRunner{}}}),
	}
	for name, spec := range dags {
		spec.Session = "work"
		entries = append(entries, entry(t, schemas.DAGKind, name, spec))
	}
	p := &Play{TB: t, Now: now, Tree: state.NewTree(controllers.Schemas(), nil, nil, entries...)}
	p.Turn()
	return p
}

func entry(t testing.TB, k schemas.Kind, name string, spec schemas.Spec) *state.Entry {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
	path := "specs/" + k.Plural + "/" + name + ".yaml"
	o := schemas.NewObject(k, schemas.Metadata{Name: name}, path, digest, raw, spec.References())
	return &state.Entry{Ref: o.Ref, Object: o}
}

// Turn settles the play's tree as it is now, and returns it.
func (p *Play) Turn() *state.Tree {
	p.Tree = settle.Tree(p.Tree, p.Now, nil).Tree
	return p.Tree
}

// Pass lets time pass.
func (p *Play) Pass(d time.Duration) { p.Now = p.Now.Add(d) }

// Start claims a node of a DAG and starts a run, an attempt of it, and returns the report. The next Turn knows of it.
func (p *Play) Start(dag, node string) settle.Report {
	e := p.entry(dag)
	st := e.Status().(*schemas.DAGStatus).Nodes.Of(node)
	run := schemas.Run{Owner: e.Ref.String(), Node: node, NodeKey: st.Key, Seq: 1, StartedAt: schemas.NewTime(p.Now)}
	for _, r := range e.Runs() {
		if r.Node == node && r.NodeKey == st.Key {
			run.Seq = max(run.Seq, r.Seq+1)
		}
	}
	run.Key = fmt.Sprintf("dags/%s/%s-%.16s-%d", dag, node, st.Key[len("sha256:"):], run.Seq)
	e.Claims = append(slices.Clone(e.Claims), state.Claim{Run: run, Process: "test"})
	p.Tree = p.Tree.With(&e)
	return settle.Report{Kind: settle.Started, Key: run.Key, At: p.Now}
}

// Ask has the agent of a node that was started wait for a person to allow a command.
func (p *Play) Ask(dag, node string, command ...string) {
	e := p.entry(dag)
	e.Claims = slices.Clone(e.Claims)
	for i := range e.Claims {
		if run := &e.Claims[i].Run; run.Node == node {
			run.Agent = "coder"
			run.Turn = &schemas.Turn{Permissions: []schemas.Permission{{Title: "run it", Argv: command, Decision: schemas.PermissionWaiting}}}
		}
	}
	p.Tree = p.Tree.With(&e)
}

// Finish ends the run of a node of a DAG that was started, with an outcome and an output, and returns the report.
func (p *Play) Finish(dag, node, outcome, output string) settle.Report {
	p.Helper()
	e := p.entry(dag)
	i := slices.IndexFunc(e.Claims, func(c state.Claim) bool { return c.Node == node })
	if i < 0 {
		p.Fatalf("%s of dag/%s does not run", node, dag)
	}
	run := e.Claims[i].Run
	e.Claims = slices.Delete(slices.Clone(e.Claims), i, i+1)
	run.Outcome, run.FinishedAt, run.Output, run.Log = outcome, schemas.NewTime(p.Now), output, state.LogPath(run.Key)
	if outcome == schemas.OutcomeFailed {
		run.Message = "exit code 1"
	}
	e.SetRuns(append(slices.Clone(e.Runs()), &run))
	slices.SortStableFunc(e.Runs(), func(a, b *schemas.Run) int {
		if a.Node != b.Node {
			return strings.Compare(a.Node, b.Node)
		}
		return strings.Compare(a.NodeKey, b.NodeKey)
	})
	p.Tree = p.Tree.With(&e)
	return settle.Report{Kind: settle.Finished, Key: run.Key, At: p.Now, Run: &run}
}

// entry is a copy of a DAG's entry.
func (p *Play) entry(dag string) state.Entry {
	return *p.Tree.Entry(schemas.Ref{Kind: schemas.DAGKind.Name, Name: dag})
}
