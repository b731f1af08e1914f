package dags

import (
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// binding is a plan in its context: what the keys and the effects of a DAG depend on in addition to its spec, and the
// results.
type binding struct {
	session  *schemas.Object   // nil while it cannot be used
	agents   []*schemas.Object // as plan.agents
	settings *schemas.SettingsSpec
	inputs   []string // digest of the declared inputs, by node
	gens     []int    // retry generation, by node

	keys   []string
	human  []bool                    // the node waits for a person
	groups map[string][]settle.Group // by agent; "" for commands
	// tasks are made when they are first asked for, since most nodes of a large DAG do not want to run at any one time.
	tasks []atomic.Pointer[settle.Command]
}

// bind puts the plan of a DAG into its surroundings. All agents must be usable.
func bind(in settle.In, p *plan, gens []int, inputs []string) *binding {
	b := &binding{settings: in.Tree.Settings()}
	if e := in.Tree.Entry(schemas.SessionKind.Ref(p.spec.Session)); e != nil {
		b.session = e.Object
	}
	for _, name := range p.agents {
		b.agents = append(b.agents, in.Tree.Entry(schemas.AgentKind.Ref(name)).Object)
	}
	last := p.last.Load()
	if last != nil && last.fits(b, gens, inputs) {
		return last
	}
	b.gens, b.inputs = slices.Clone(gens), slices.Clone(inputs)
	b.bindKeys(p)
	b.bindEffects(p)
	p.last.Store(b)
	return b
}

// fits reports whether b depends on the same values.
func (b *binding) fits(want *binding, gens []int, inputs []string) bool {
	return b.session == want.session && b.settings == want.settings && slices.Equal(b.agents, want.agents) &&
		slices.Equal(b.gens, gens) && slices.Equal(b.inputs, inputs)
}

func (b *binding) bindKeys(p *plan) {
	runners := make(map[string]string, len(b.agents))
	for i, o := range b.agents {
		runners[p.agents[i]] = agents.RunnerDigest(o.Spec().(*schemas.AgentSpec))
	}
	b.keys = make([]string, len(p.order))
	var buf []byte
	for _, i := range p.order {
		b.keys[i], buf = p.nodeKey(buf, i, b.keys, b.gens[i], b.inputs[i], runners[p.spec.Nodes[i].Agent])
	}
}

func (b *binding) bindEffects(p *plan) {
	b.tasks = make([]atomic.Pointer[settle.Command], len(b.keys))
	b.human = make([]bool, len(b.keys))
	b.groups = map[string][]settle.Group{"": b.groupsOf(p, "", nil)}
	for i, o := range b.agents {
		b.groups[p.agents[i]] = b.groupsOf(p, p.agents[i], o.Spec().(*schemas.AgentSpec))
	}
	for i := range b.human {
		if a := b.agent(p, p.spec.Nodes[i].Agent); a != nil {
			b.human[i] = a.Runner.AsCommand() == nil
		}
	}
}

// agent returns the spec of an agent that a node names; nil for no agent.
func (b *binding) agent(p *plan, name string) *schemas.AgentSpec {
	if name == "" {
		return nil
	}
	i, ok := slices.BinarySearch(p.agents, name)
	if !ok {
		return nil
	}
	return schemas.SpecAs[*schemas.AgentSpec](b.agents[i])
}

// base is the effect of node i at its first attempt, without what earlier nodes add to it, and without a task.
func (b *binding) base(p *plan, i int32) settle.Effect {
	n := &p.spec.Nodes[i]
	return settle.Effect{Owner: schemas.Ref{Kind: schemas.DAGKind.Name, Name: p.name}, Session: p.spec.Session, Node: n.Name,
		NodeKey: b.keys[i], Agent: n.Agent, Groups: b.groups[n.Agent], Rank: rankOf(n, b.sessionSpec())}
}

// task is what node i does at its first attempt.
func (b *binding) task(p *plan, i int32) settle.Command {
	if t := b.tasks[i].Load(); t != nil {
		return *t
	}
	n := &p.spec.Nodes[i]
	t := b.newTask(p, n, b.sessionSpec(), b.agent(p, n.Agent))
	b.tasks[i].Store(&t)
	return t
}

// sessionSpec returns the usable spec of a session's entry, or nil.
func (b *binding) sessionSpec() *schemas.SessionSpec {
	if s := schemas.SpecAs[*schemas.SessionSpec](b.session); s != nil {
		return s
	}
	s := new(schemas.SessionSpec)
	s.Default()
	return s
}

// rankOf is the rank of the node's priority, else of the session's: 0 for critical to 4 for background.
func rankOf(n *schemas.Node, s *schemas.SessionSpec) int {
	if n.Priority != "" {
		return n.Priority.Rank()
	}
	return s.Priority.Rank()
}

// groupsOf lists the limits that a node of the DAG counts against.
func (b *binding) groupsOf(p *plan, name string, agent *schemas.AgentSpec) []settle.Group {
	session := b.sessionSpec()
	gs := []settle.Group{{Name: settle.TasksGroup, Limit: b.settings.Limits.ConcurrentTasks},
		{Name: "session/" + p.spec.Session, Limit: session.MaxConcurrentTasks}}
	if most := p.spec.Policy.MaxConcurrency; most > 0 {
		gs = append(gs, settle.Group{Name: "dag/" + p.name, Limit: most})
	}
	if agent == nil {
		return gs
	}
	gs = append(gs, settle.Group{Name: settle.AgentGroup + name, Limit: agent.Concurrency})
	if agent.Role == agents.EngineerRole {
		gs = append(gs, settle.Group{Name: "engineers", Limit: b.settings.Limits.Engineers},
			settle.Group{Name: "session/" + p.spec.Session + "/engineers", Limit: session.MaxEngineers})
	}
	return gs
}

// newTask is the part of a task that is the same for all attempts. A node's process sees, in addition to the variables of the runner: the
// session's, the agent's and the node's environment, the later winning, and
//
//	RECONCILE_SESSION, RECONCILE_DAG, RECONCILE_NODE   where it belongs
//	RECONCILE_ISSUE                                    the issue's number, if there is one
//	RECONCILE_ATTEMPT                                  1 for the first attempt
//	RECONCILE_AGENT, RECONCILE_MODEL                   for agents
//	RECONCILE_NEEDS                                    a file with the results of its needs (set by the runner)
func (b *binding) newTask(p *plan, n *schemas.Node, s *schemas.SessionSpec, a *schemas.AgentSpec) settle.Command {
	t, agentEnv := settle.Command{Argv: n.Run}, map[string]string(nil)
	if a != nil {
		t, agentEnv = agents.Command(b.settings, a)
	}
	t.Dir, t.OutputFiles, t.OutputJSON, t.OutputSchema = n.WorkingDir, n.Outputs.Files, n.Outputs.JSON, n.Outputs.Schema
	if n.Script != "" {
		t.Argv = []string{"sh", "-c", n.Script}
	}
	env := maps.Clone(s.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, agentEnv)
	if n.Timeout != nil {
		t.Timeout = n.Timeout.Std()
	}
	maps.Copy(env, n.Env)
	b.own(env, p, n, s, a)
	t.Env = settle.Environ(env)
	return t
}

const attemptVar = "RECONCILE_ATTEMPT="

func (b *binding) own(env map[string]string, p *plan, n *schemas.Node, s *schemas.SessionSpec, a *schemas.AgentSpec) {
	env["RECONCILE_SESSION"] = p.spec.Session
	env["RECONCILE_DAG"] = p.name
	env["RECONCILE_NODE"] = n.Name
	env["RECONCILE_ATTEMPT"] = "1"
	if issue := p.issue(s); issue > 0 {
		env["RECONCILE_ISSUE"] = strconv.Itoa(issue)
	}
	if a != nil {
		env["RECONCILE_AGENT"] = n.Agent
		if a.Model != "" {
			env["RECONCILE_MODEL"] = a.Model
		}
	}
}

// issue is the number of the issue that the DAG serves; 0 means none.
func (p *plan) issue(s *schemas.SessionSpec) int {
	if p.spec.Issue > 0 {
		return p.spec.Issue
	}
	return s.Issue
}
