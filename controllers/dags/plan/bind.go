package plan

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Bind puts the plan of a DAG into its surroundings. All agents must be usable. inputs are the digests of the declared inputs, tools
// the versions of the declared tools, which the caller must not change. rounds are those of the nodes in loops; nil where the DAG has none.
func Bind(in settle.In, p *Plan, gens []int, inputs []string, tools []map[string]string, rounds []int) *Binding {
	b := &Binding{settings: in.Tree.Settings()}
	if e := in.Tree.Entry(schemas.SessionKind.Ref(p.Spec.Session)); e != nil {
		b.session = e.Object
	}
	for _, name := range p.Agents {
		b.agents = append(b.agents, in.Tree.Entry(schemas.AgentKind.Ref(name)).Object)
	}
	b.spares = sparesOf(in, p, b.SessionSpec(), b.agents)
	last := p.last.Load()
	if last != nil && last.fits(b, gens, inputs, tools, rounds) {
		return last
	}
	b.gens, b.Inputs, b.tools, b.rounds = slices.Clone(gens), slices.Clone(inputs), slices.Clone(tools), slices.Clone(rounds)
	b.before = make([]atomic.Pointer[[]string], len(p.Loops))
	b.bindKeys(p)
	b.bindEffects(p)
	p.last.Store(b)
	return b
}

// Holds reports whether b, which names no agents, is still the binding of a plan whose nodes are as they were, and all its nodes are
// on record under the keys that it makes.
func (b *Binding) Holds(in settle.In, p *Plan) bool {
	var session *schemas.Object
	if e := in.Tree.Entry(schemas.SessionKind.Ref(p.Spec.Session)); e != nil {
		session = e.Object
	}
	return b.session == session && b.settings == in.Tree.Settings() && slices.Equal(b.Keys, b.primary)
}

// fits reports whether b depends on the same values.
func (b *Binding) fits(want *Binding, gens []int, inputs []string, tools []map[string]string, rounds []int) bool {
	return b.session == want.session && b.settings == want.settings && slices.Equal(b.agents, want.agents) &&
		slices.Equal(b.spares, want.spares) && slices.Equal(b.gens, gens) && slices.Equal(b.Inputs, inputs) &&
		slices.EqualFunc(b.tools, tools, maps.Equal) && slices.Equal(b.rounds, rounds)
}

func (b *Binding) bindEffects(p *Plan) {
	if len(b.primary) >= FewNodes {
		b.commands = make([]atomic.Pointer[settle.Command], len(b.primary))
	}
	b.Human = make([]bool, len(b.primary))
	b.about = sessionContext(b.SessionSpec())
	b.groups = map[string][]settle.Group{"": b.groupsOf(p, "", nil)}
	for i, o := range b.agents {
		b.groups[p.Agents[i]] = b.groupsOf(p, p.Agents[i], o.Spec().(*schemas.AgentSpec))
	}
	for _, o := range b.spares {
		b.groups[o.Name] = b.groupsOf(p, o.Name, o.Spec().(*schemas.AgentSpec))
	}
	for i := range b.Human {
		if a := b.Agent(p, p.Spec.Nodes[i].Agent); a != nil {
			b.Human[i] = a.Runner.AsCommand() == nil
		}
	}
}

// Agent returns the spec of an agent that a node names, or that may do its work; nil for no agent.
func (b *Binding) Agent(p *Plan, name string) *schemas.AgentSpec {
	if name == "" {
		return nil
	}
	return schemas.SpecAs[*schemas.AgentSpec](b.object(p, name))
}

// Effect is the effect of node i at its first attempt, done by an agent, without what earlier nodes add to it, and without a task.
func (b *Binding) Effect(p *Plan, i int32, agent string) settle.Effect {
	n := &p.Spec.Nodes[i]
	session := b.SessionSpec()
	return settle.Effect{Owner: schemas.Ref{Kind: schemas.DAGKind.Name, Name: p.Name}, Session: p.Spec.Session, Node: n.Name,
		NodeKey: b.Keys[i], Tools: b.tools[i], Agent: agent, Groups: withCalls(b.groups[agent], p, n.Name), Touches: TouchedPaths(n.Touches),
		Rank: rankOf(n, session), Ageing: b.settings.Limits.Ageing.Std(), Weight: session.Weight}
}

// Allowances are the budgets that the turns of an agent for node i run against; nil for none.
func (b *Binding) Allowances(in settle.In, p *Plan, i int32, agent string) []settle.Allowance {
	if agent == "" {
		return nil
	}
	return budgets.Node(in, p.Spec, &p.Spec.Nodes[i], b.session, b.object(p, agent))
}

// Command is what node i does at its first attempt, done by an agent.
func (b *Binding) Command(p *Plan, i int32, agent string) settle.Command {
	n := &p.Spec.Nodes[i]
	if agent != n.Agent || b.commands == nil {
		return b.newTask(p, n, agent, b.SessionSpec(), b.Agent(p, agent))
	}
	if t := b.commands[i].Load(); t != nil {
		return *t
	}
	t := b.newTask(p, n, agent, b.SessionSpec(), b.Agent(p, agent))
	b.commands[i].Store(&t)
	return t
}

// SessionSpec returns the usable spec of a session's entry, or nil.
func (b *Binding) SessionSpec() *schemas.SessionSpec {
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
func (b *Binding) groupsOf(p *Plan, name string, agent *schemas.AgentSpec) []settle.Group {
	session := b.SessionSpec()
	gs := []settle.Group{{Name: settle.TasksGroup, Limit: b.settings.Limits.ConcurrentTasks, Load: b.settings.Limits.Load},
		{Name: settle.SessionGroup + p.Spec.Session, Limit: session.MaxConcurrentTasks}}
	if most := p.Spec.Policy.MaxConcurrency; most > 0 {
		gs = append(gs, settle.Group{Name: settle.DAGGroup + p.Name, Limit: most})
	}
	if agent == nil {
		return gs
	}
	gs = append(gs, settle.Group{Name: settle.AgentGroup + name, Limit: agent.Concurrency})
	if most := b.settings.Limits.Roles[agent.Role]; most > 0 {
		gs = append(gs, settle.Group{Name: settle.RoleGroup + agent.Role, Limit: most})
	}
	if agent.Role == schemas.RoleEngineer {
		gs = append(gs, settle.Group{Name: settle.EngineersGroup, Limit: b.settings.Limits.Engineers},
			settle.Group{Name: settle.SessionGroup + p.Spec.Session + "/" + settle.EngineersGroup, Limit: session.MaxEngineers})
	}
	return gs
}

// withCalls adds the limits of the calls that a node is part of.
func withCalls(gs []settle.Group, p *Plan, node string) []settle.Group {
	for _, c := range p.Spec.CallsOf(node) {
		if c.MaxConcurrency > 0 {
			gs = append(slices.Clip(gs), settle.Group{Name: settle.DAGGroup + p.Name + "/" + c.Node, Limit: c.MaxConcurrency})
		}
	}
	return gs
}

// newTask is the part of a task that is the same for all attempts. A node's process sees, in addition to the variables of the runner: the
// session's, the agent's and the node's environment, the later winning, and
//
//	RECONCILE_SESSION, RECONCILE_DAG, RECONCILE_NODE   where it belongs
//	RECONCILE_SESSION_CONTEXT                          what the session is about, as JSON (set by the runner)
//	RECONCILE_ISSUE                                    the issue's number, if there is one
//	RECONCILE_ATTEMPT                                  1 for the first attempt
//	RECONCILE_AGENT, RECONCILE_MODEL                   for agents
//	RECONCILE_NEEDS                                    a file with the results of its needs (set by the runner)
func (b *Binding) newTask(p *Plan, n *schemas.Node, agent string, s *schemas.SessionSpec, a *schemas.AgentSpec) settle.Command {
	t, agentEnv := settle.Command{Argv: n.Run}, schemas.Env(nil)
	if a != nil {
		t, agentEnv = agents.Command(b.settings, agent, a)
	}
	t.Limits, t.Session = n.Limits, b.about
	t.Dir, t.OutputFiles, t.OutputJSON, t.OutputSchema = n.WorkingDir, n.Outputs.Files, n.Outputs.JSON, n.Outputs.Schema
	if n.Script != "" {
		t.Argv = []string{"sh", "-c", n.Script}
	}
	env := maps.Clone(s.Env)
	if env == nil {
		env = schemas.Env{}
	}
	maps.Copy(env, agentEnv)
	if n.Timeout != nil {
		t.Timeout = n.Timeout.Std()
	}
	maps.Copy(env, n.Env)
	addValues(env, n)
	b.own(env, p, n, agent, s, a)
	t.Env, t.EnvFrom = settle.Variables(env)
	return t
}

// longestDescription is how many bytes of a session's description its nodes find in their environment.
const longestDescription = 16 << 10

// sessionContext is what a session is about, as JSON for the environment of its nodes; "" if it says nothing.
func sessionContext(s *schemas.SessionSpec) string {
	about := struct {
		Title       string         `json:"title,omitempty"`
		Description string         `json:"description,omitempty"`
		Issue       int            `json:"issue,omitempty"`
		Branch      string         `json:"branch,omitempty"`
		Owner       string         `json:"owner,omitempty"`
		Metadata    map[string]any `json:"metadata,omitempty"`
	}{s.Title, s.Description, s.Issue, s.Branch, s.Owner, s.Metadata}
	if len(about.Description) > longestDescription {
		about.Description = shorten.Bytes(about.Description, longestDescription) + "…"
	}
	data, err := json.Marshal(about)
	const most = 96 << 10 // of a variable, with its name, Linux takes 128 KiB
	if err != nil || len(data) > most || string(data) == "{}" {
		return ""
	}
	return string(data)
}

// AttemptVar begins the variable that counts attempts.
const AttemptVar = "RECONCILE_ATTEMPT="

func (b *Binding) own(env schemas.Env, p *Plan, n *schemas.Node, agent string, s *schemas.SessionSpec, a *schemas.AgentSpec) {
	env["RECONCILE_SESSION"] = schemas.EnvValue{Text: p.Spec.Session}
	env["RECONCILE_DAG"] = schemas.EnvValue{Text: p.Name}
	env["RECONCILE_NODE"] = schemas.EnvValue{Text: n.Name}
	env["RECONCILE_ATTEMPT"] = schemas.EnvValue{Text: "1"}
	if issue := p.Issue(s); issue > 0 {
		env["RECONCILE_ISSUE"] = schemas.EnvValue{Text: strconv.Itoa(issue)}
	}
	if a != nil {
		env["RECONCILE_AGENT"] = schemas.EnvValue{Text: agent}
		if a.Model != "" {
			env["RECONCILE_MODEL"] = schemas.EnvValue{Text: a.Model}
		}
	}
}

// TouchedPaths are the folders and files that globs may match: of each glob the part before its first wildcard, as far as
// it is whole names. "" is the root.
func TouchedPaths(globs []string) []string {
	var out []string
	for _, g := range globs {
		if at := strings.IndexAny(g, `*?[{\`); at >= 0 {
			g = g[:strings.LastIndexByte(g[:at], '/')+1]
		}
		out = append(out, strings.Trim(g, "/"))
	}
	return out
}

// Keeping returns the binding with the keys under which the nodes are on record: by their statuses, was, else by the records that
// runs returns. A key that was made from another definition is not kept. same says that the statuses are about the present spec.
func (b *Binding) Keeping(p *Plan, was []*schemas.NodeStatus, same bool, runs func() []*schemas.Run) *Binding {
	next := b
	for _, i := range p.Order {
		if b.tasks[i] == b.withAgents[i] && b.former == nil && was[i].Task == "" {
			continue // there is no other one
		}
		on := was[i].Key
		if !same || !next.unchanged(p, i, was) {
			on = b.onRecord(p, i, was[i], runs)
		}
		if on == b.primary[i] {
			continue
		}
		if next == b {
			next = new(Binding)
			*next = *b
			next.Keys = slices.Clone(b.primary)
		}
		next.Keys[i] = on
	}
	return next
}
