package schemas_test

import (
	"cmp"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// TestBounds goes through changes of specs that an agent makes in a task of session health: want is what only people may do of it, "" if it may.
func TestBounds(t *testing.T) {
	free := schemas.Bounds{Session: "health", People: []string{"lead"}, Engineers: []string{"engineer", "second"}}
	budgeted := free
	budgeted.Beside = "the budget of dag/plan"
	unknown := free
	unknown.Session = ""
	dag := func(fields string, nodes ...string) string {
		return "kind: DAG\nmetadata: {name: d}\nspec: {" + fields + "nodes: [" + strings.Join(nodes, ", ") + "]}\n"
	}
	of := func(nodes ...string) string { return dag("session: health, ", nodes...) }
	final := func(nodes ...string) string { return dag("session: health, finally: ["+nodes[0]+"], ", nodes[1:]...) }
	session := func(fields string) string {
		return "kind: Session\nmetadata: {name: s}\nspec: {" + fields + "}\n"
	}
	workflow := func(steps ...string) string {
		return "kind: Workflow\nmetadata: {name: w}\nspec: {params: {tone: {}}, steps: [" + strings.Join(steps, ", ") + "]}\n"
	}
	const (
		a, b   = "{name: a, run: [x]}", "{name: b, needs: [a], run: [x]}"
		gate   = "{name: a, run: [x], approve: {count: 2}}"
		person = "{name: a, agent: lead, prompt: p}"
		work   = "{name: a, agent: engineer, prompt: p}"
		call   = "{name: a, dag: other}"
	)
	for _, c := range []struct {
		bounds              *schemas.Bounds
		name, before, after string
		want                string
	}{
		{&free, "a new DAG of its session", "", of(work), ""},
		{&free, "a new DAG of another session", "", dag("session: calm, ", a), "write dag/d for another session than that of this task"},
		{&unknown, "a new DAG of an unknown task", "", of(a), "write dag/d for another session than that of this task"},
		{&free, "a new template", "", dag("template: true, ", work), ""},
		{&budgeted, "a new DAG beside a budget", "", of(a), "write dag/d, for which the budget of dag/plan would not hold"},
		{&budgeted, "a new template beside a budget", "", dag("template: true, ", a), ""},
		{&budgeted, "a new node below a budget", of(a), of(a, b), ""},
		{&free, "a landing of a new DAG", "", of("{name: a, agent: engineer, prompt: p, land: {}}"), "change the checks of node a"},
		{&free, "a pipeline of a new DAG", "", of("{name: a, agent: engineer, prompt: p, pipeline: {failOn: critical}}"), "change the checks of node a"},
		{&free, "a pipeline of a new template", "", dag("template: true, ", "{name: a, agent: engineer, prompt: p, pipeline: {}}"), "change the checks of node a"},
		{&free, "checks of a new final node", "", final("{name: z, agent: engineer, prompt: p, land: {}}", a), "change the checks of node z"},
		{&free, "an environment of checks in a new DAG", "", of("{name: a, agent: engineer, prompt: p, env: {PATH: bin}}"), "change the environment of node a"},
		{&free, "an environment of a command", of(a), of("{name: a, run: [x], env: {A: b}}"), ""},
		{&free, "no environment of checks", of("{name: a, agent: engineer, prompt: p, env: {A: b}}"), of(work), "change the environment of node a"},
		{&free, "a task for another engineer", of(work), of("{name: a, agent: second, prompt: p}"), ""},
		{&free, "a task for an agent without a pipeline", of(work), of("{name: a, agent: writer, prompt: p}"), "change the agent of node a"},
		{&free, "an engineer's task is removed", of(b[:9]+"run: [x]}", work), of(b[:9] + "run: [x]}"), ""},
		{&free, "a person's task for an agent", of(person), of(work), "change the agent, or the call, of node a"},
		{&free, "a person's task is removed", of(person, "{name: b, run: [x]}"), of("{name: b, run: [x]}"), "change the agent, or the call, of node a"},
		{&free, "another text of a person's task", of(person), of("{name: a, agent: lead, prompt: q}"), ""},
		{&free, "a gate is skipped", of(gate), of("{name: a, run: [x], approve: {count: 2}, when: 'false'}"), "change the conditions of node a"},
		{&free, "a gate is optional", of(gate), of("{name: a, run: [x], approve: {count: 2}, optional: true}"), "change the conditions of node a"},
		{&free, "a gate is removed", of(gate, "{name: b, run: [x]}"), of("{name: b, run: [x]}"), "change the approval of node a"},
		{&free, "a gate is added", of(a), of(gate), ""},
		{&free, "a call of another DAG", of(call), of("{name: a, dag: mine}"), "change the agent, or the call, of node a"},
		{&free, "another value for a call", of(call), of("{name: a, dag: other, with: {x: 1}}"), ""},
		{&free, "a node goes around a gate", of(gate, b), of(gate, "{name: b, run: [x]}"), "let node b no longer wait for a, where people decide"},
		{&free, "a later node goes around a person", of(person, b, "{name: c, needs: [b], run: [x]}"), of(person, b, "{name: c, run: [x]}"), "let node c no longer wait for a, where people decide"},
		{&free, "a node waits for a gate by another", of(gate, b, "{name: c, needs: [a], run: [x]}"), of(gate, b, "{name: c, needs: [b], run: [x]}"), ""},
		{&free, "a node becomes a final one", of(gate, b), final("{name: b, run: [x]}", gate), "let node b no longer wait for a, where people decide"},
		{&free, "a node runs though a gate failed", of(gate, b), of(gate, "{name: b, needs: [a], run: [x], when: 'needs.a.state != \"\"'}"), "let node b start though a failed"},
		{&free, "a node has another condition", of(gate, b), of(gate, "{name: b, needs: [a], run: [x], when: 'needs.a.exitCode == 0'}"), ""},
		{&free, "a node after no gate runs always", of(a, b), of(a, "{name: b, needs: [a], run: [x], when: 'needs.a.state != \"\"'}"), ""},
		{&free, "a DAG with a gate is removed", of(gate), "", "change the approval of node a"},
		{&free, "a DAG is removed", of(a), "", ""},
		{&free, "a DAG moves to another session", of(a), dag("session: calm, ", a), "change the session of dag/d"},
		{&free, "a run of a workflow", "", dag("session: health, workflow: {name: w}, ", a), "make dag/d a run of a workflow"},
		{&free, "a DAG becomes a run of a workflow", of(a), dag("session: health, workflow: {name: w}, ", a), "make dag/d a run of a workflow"},
		{&free, "a node of a run of a workflow", dag("session: health, workflow: {name: w}, ", a), dag("session: health, workflow: {name: w}, ", a, b), ""},
		{&free, "a new session", "", session("title: S"), "write session/s"},
		{&free, "a session is removed", session("phase: Paused"), "", "remove session/s"},
		{&free, "another title", session("title: S"), session("title: T"), ""},
		{&free, "no landing of a session", session("land: {checks: [[make]]}"), session(""), "change the checks of session/s"},
		{&free, "no pipeline of a session", session("pipeline: {}"), session(""), "change the checks of session/s"},
		{&free, "no quality of a session", session("quality: {}"), session(""), "change the checks of session/s"},
		{&free, "the branch of a quality", session("quality: {}"), session("quality: {}, branch: b"), "change the checks of session/s"},
		{&free, "the environment of a pipeline", session("pipeline: {}"), session("pipeline: {}, env: {A: b}"), "change the checks of session/s"},
		{&free, "the environment of no checks", session(""), session("env: {A: b}"), ""},
		{&free, "a new workflow", "", workflow("{id: a, agent: engineer}"), ""},
		{&free, "a workflow without its gate", workflow("{id: a, agent: engineer, approve: {}}"), workflow("{id: a, agent: engineer}"), "change the approval of node a"},
		{&free, "a workflow is removed", workflow("{id: a, agent: engineer, approve: {}}"), "", "change the approval of node a"},
		{&free, "a workflow without its person", workflow("{id: a, agent: lead}"), workflow("{id: a, agent: engineer}"), "change the agent, or the call, of node a"},
		{&free, "a step goes around a person", workflow("{id: a, agent: lead}", "{id: b, agent: engineer, needs: [a]}"), workflow("{id: a, agent: lead}", "{id: b, agent: engineer}"), "let node b no longer wait for a, where people decide"},
		{&free, "a step has a condition on a parameter", workflow("{id: a, agent: lead}", "{id: b, agent: engineer, needs: [a]}"),
			workflow("{id: a, agent: lead}", "{id: b, agent: engineer, needs: [a], condition: 'params.tone == \"x\"'}"), ""},
	} {
		before, after := boundObject(t, c.before), boundObject(t, c.after)
		ref := schemas.Ref{}
		for _, o := range []*schemas.Object{before, after} {
			if o != nil {
				ref = o.Ref
			}
		}
		if got := c.bounds.OnlyPeople(ref, before, after); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestActsAs goes through changes of who acts that an agent makes: want is whom it may not let act.
func TestActsAs(t *testing.T) {
	b := schemas.Bounds{Agent: "engineer"}
	reply := func(fields string) string {
		return "kind: Reply\nmetadata: {name: r}\nspec: {clarification: CLR-1-001, type: answer, " + fields + "}\n"
	}
	action := func(fields string) string {
		return "kind: Action\nmetadata: {name: a}\nspec: {target: dag/d, verb: pause" + fields + "}\n"
	}
	for _, c := range []struct{ name, before, after, want string }{
		{"its own answer", "", reply("from: engineer, body: b"), ""},
		{"another's answer", "", reply("from: lead, body: b"), "name lead as who acts in reply/r"},
		{"another text of another", reply("from: lead, body: b"), reply("from: lead, body: c"), "name lead as who acts in reply/r"},
		{"another's answer as its own", reply("from: lead, body: b"), reply("from: engineer, body: b"), "name lead as who acts in reply/r"},
		{"another's answer is removed", reply("from: lead, body: b"), "", "name lead as who acts in reply/r"},
		{"a proof", "", reply("from: engineer, body: b, proof: github"), "give a proof of who acts in reply/r"},
		{"a claim", "", reply("from: engineer, body: b, proof: claimed"), ""},
		{"nobody", "", action(""), ""},
		{"another's pause", "", action(", by: lead"), "name lead as who acts in action/a"},
	} {
		before, after := boundObject(t, c.before), boundObject(t, c.after)
		if got := b.ActsAs(cmp.Or(after, before).Ref, before, after); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// boundObject is a valid object; nil for no text.
func boundObject(t *testing.T, text string) *schemas.Object {
	t.Helper()
	if text == "" {
		return nil
	}
	out := schemas.NewDecoder(all, 0).Decode("specs/a.yaml", []byte("apiVersion: "+schemas.APIVersion+"\n"+text))
	if out.Object == nil {
		t.Fatalf("%s: %v", text, out.Problems)
	}
	return out.Object
}

// TestMutants: the tests notice faults in what an agent may do of a change of a spec.
func TestMutants(t *testing.T) {
	const tests = "TestBounds|TestActsAs"
	mutants.Suite{Mutants: []mutants.Mutant{
		{"checks may be replaced", "bounds.go", "case !reflect.DeepEqual(n.Land, next.Land), !reflect.DeepEqual(n.Pipeline, next.Pipeline):", "case false:", tests},
		{"a new node may have checks of its own", "bounds.go", "{were, are}", "{were}", tests},
		{"final nodes lose their checks", "authority.go", "{s.Nodes, s.Finally}", "{s.Nodes}", tests},
		{"approvals may be taken away", "bounds.go", "case n.Approve != nil && !reflect.DeepEqual(n.Approve, next.Approve):", "case false:", tests},
		{"a DAG may be moved to a session without checks", "bounds.go", "old != nil && now != nil && old.Session != now.Session:", "false:", tests},
		{"a new DAG may belong to any session", "bounds.go", "now.Session != b.Session:", "now.Session == \"\":", tests},
		{"a new DAG escapes a budget", "bounds.go", "b.Beside != \"\":", "false:", tests},
		{"a start joins what an agent wrote", "bounds.go", "case now != nil && now.Workflow != nil &&", "case false && now.Workflow != nil &&", tests},
		{"an agent makes sessions without checks", "bounds.go", "case was == nil:\n\t\treturn \"write", "case false:\n\t\treturn \"write", tests},
		{"an agent removes what holds", "bounds.go", "case is == nil:\n\t\treturn \"remove \" + ref.String()", "case is == nil:\n\t\treturn \"\"", tests},
		{"checks run in another environment", "bounds.go", "len(n.Env)+len(next.Env) > 0:", "false:", tests},
		{"checks of a session run in another environment", "bounds.go", "!reflect.DeepEqual(was.Env, is.Env):", "false:", tests},
		{"an agent decides for a person", "bounds.go", "(n.Agent != next.Agent || n.DAG != next.DAG):", "false:", tests},
		{"a gate may be skipped", "bounds.go", "(n.When != next.When || n.Optional", "(n.Optional", tests},
		{"a task goes to who is not verified", "bounds.go", "!slices.Contains(b.Engineers, next.Agent):", "false:", tests},
		{"a node goes around a gate", "bounds.go", "case !waits[name]:", "case !waits[name] && false:", tests},
		{"a node starts after a refusal", "bounds.go", "readsState(now, is):", "false:", tests},
		{"an agent answers for a person", "bounds.go", "name != \"\" && name != b.Agent {", "false {", tests},
		{"an agent proves who it is", "bounds.go", "proof != ProofClaimed && proof != wasProof {", "proof != proof+wasProof {", tests},
		{"workflows lose their gates", "bounds.go", "was := SpecAs[*WorkflowSpec](before); was != nil {", "was := SpecAs[*WorkflowSpec](before); false {", tests},
	}}.Run(t)
}
