// Package metrics sums up, from the statuses and records of a tree, how work waits for places, how long it runs and what it uses.
package metrics

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Metrics are the figures of a tree, by lane, from the highest to the lowest, and by session, by name. Only lanes and sessions with
// work are listed, and agents, by name, that work or have worked.
type Metrics struct {
	Lanes    []Figures `json:"lanes"`
	Sessions []Figures `json:"sessions"`
	Agents   []Figures `json:"agents"`
}

// Figures are about the nodes of a lane, a session or an agent. Records that were pruned do not count.
type Figures struct {
	Name string `json:"name"`
	// Queued is how many nodes wait for a place now, and OldestSeconds how long the first of them has. Running is how many run.
	Queued        int     `json:"queued"`
	OldestSeconds float64 `json:"oldestSeconds,omitempty"`
	Running       int     `json:"running"`
	// Waited is how long runs waited for their places, by their records; Worked is how long they took.
	Waited Quantiles `json:"waited"`
	Worked Quantiles `json:"worked"`
	Runs   int       `json:"runs"`
	// Outcomes counts the runs by outcome.
	Outcomes map[string]int `json:"outcomes,omitempty"`
	// Failures counts the runs of agents that failed by the class of the failure.
	Failures map[string]int `json:"failures,omitempty"`
	// Breaker is that of an agent, at the time of the metrics.
	Breaker string `json:"breaker,omitempty"`
	// Tokens and CostUSD are what agents used, where records say it. Used says also how much is estimated or not known.
	Tokens  int64       `json:"tokens,omitempty"`
	CostUSD float64     `json:"costUSD,omitempty"`
	Used    turns.Total `json:"used,omitzero"`
}

// Failed counts the runs that failed or ran out of time.
func (f *Figures) Failed() int {
	return f.Outcomes[schemas.OutcomeFailed] + f.Outcomes[schemas.OutcomeTimedOut]
}

// Quantiles describe Count durations, in seconds, by nearest rank.
type Quantiles struct {
	Count int     `json:"count"`
	Sum   float64 `json:"sumSeconds"`
	P50   float64 `json:"p50Seconds"`
	P95   float64 `json:"p95Seconds"`
	P99   float64 `json:"p99Seconds"`
}

// Of returns the metrics of a tree at a time. A run counts in the lane of the node's present priority, a waiting node in the lane to which
// it has aged.
func Of(t *state.Tree, now time.Time) Metrics {
	s := &sums{tree: t, now: now, lanes: map[int]*sum{}, sessions: map[string]*sum{}, agents: map[string]*sum{}}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		s.add(e)
	}
	m := Metrics{Lanes: []Figures{}, Sessions: []Figures{}, Agents: []Figures{}}
	for _, lane := range slices.Sorted(maps.Keys(s.lanes)) {
		m.Lanes = append(m.Lanes, s.lanes[lane].figures(string(schemas.Priorities()[lane])))
	}
	for _, session := range slices.Sorted(maps.Keys(s.sessions)) {
		m.Sessions = append(m.Sessions, s.sessions[session].figures(session))
	}
	breakers := breaker.BreakersOf(new(settle.Values), t, now)
	for _, agent := range slices.Sorted(maps.Keys(s.agents)) {
		f := s.agents[agent].figures(agent)
		f.Breaker = string(breakers.At(agent).State)
		m.Agents = append(m.Agents, f)
	}
	return m
}

type sums struct {
	tree     *state.Tree
	now      time.Time
	lanes    map[int]*sum
	sessions map[string]*sum
	agents   map[string]*sum
}

// sum are the figures before the durations are sorted.
type sum struct {
	Figures
	waited, worked []float64
}

// figures are the times that nodes waited and worked, summed up.
func (s *sum) figures(name string) Figures {
	f := s.Figures
	f.Name, f.Waited, f.Worked = name, quantiles(s.waited), quantiles(s.worked)
	return f
}

func (s *sums) add(e *state.Entry) {
	spec := state.SpecOf[*schemas.DAGSpec](e)
	if spec == nil {
		return
	}
	session := state.SpecOf[*schemas.SessionSpec](s.tree.Entry(schemas.SessionKind.Ref(spec.Session)))
	if session == nil {
		session = new(schemas.SessionSpec)
		session.Default()
	}
	ranks := make(map[string]int, len(spec.Nodes))
	nodes := schemas.NodesIn(e.Status())
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		ranks[n.Name] = cmp.Or(n.Priority, session.Priority).Rank()
		switch at := nodes.Of(n.Name); {
		case at.State == schemas.NodeRunning:
			s.each(spec.Session, ranks[n.Name], workerOf(e, n), func(f *sum) { f.Running++ })
		case at.State == schemas.NodeQueued && !at.QueuedAt.IsZero():
			waits := settle.Effect{Rank: ranks[n.Name], QueuedAt: at.QueuedAt, Ageing: s.tree.Settings().Limits.Ageing.Std()}
			s.each(spec.Session, admission.Lane(&waits, s.now), n.Agent, func(f *sum) {
				f.Queued++
				f.OldestSeconds = max(f.OldestSeconds, s.now.Sub(at.QueuedAt.Time).Seconds())
			})
		}
	}
	for _, r := range e.Runs() {
		if rank, ok := ranks[r.Node]; ok && r.Done() && r.IsWork() {
			s.each(spec.Session, rank, r.Agent, func(f *sum) { f.run(r) })
		}
	}
}

// workerOf is the agent that works on a node that runs; "" for a command.
func workerOf(e *state.Entry, n *schemas.Node) string {
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Node == n.Name && !c.StartedAt.IsZero() {
			return c.Agent
		}
	}
	return n.Agent
}

// each applies add to the sums of a session and of a lane, and of an agent if there is one.
func (s *sums) each(session string, lane int, agent string, add func(*sum)) {
	if s.lanes[lane] == nil {
		s.lanes[lane] = new(sum)
	}
	if s.sessions[session] == nil {
		s.sessions[session] = new(sum)
	}
	if agent != "" {
		if s.agents[agent] == nil {
			s.agents[agent] = new(sum)
		}
		add(s.agents[agent])
	}
	add(s.lanes[lane])
	add(s.sessions[session])
}

// run adds a run that has ended.
func (s *sum) run(r *schemas.Run) {
	if s.Outcomes == nil {
		s.Outcomes = map[string]int{}
	}
	s.Runs++
	s.Outcomes[r.Outcome]++
	if !r.StartedAt.IsZero() {
		s.worked = append(s.worked, max(0, r.FinishedAt.Sub(r.StartedAt.Time).Seconds()))
		switch {
		case !r.QueuedAt.IsZero():
			s.waited = append(s.waited, max(0, r.StartedAt.Sub(r.QueuedAt.Time).Seconds()))
		case r.VirtualStart > 0:
			s.waited = append(s.waited, 0)
		}
	}
	if t := r.Turn; t != nil {
		if t.Failure != nil {
			if s.Failures == nil {
				s.Failures = map[string]int{}
			}
			s.Failures[t.Failure.Class]++
		}
		s.Used.Add(t)
		s.Tokens, s.CostUSD = s.Used.InputTokens+s.Used.OutputTokens, s.Used.CostUSD
	}
}

func quantiles(durations []float64) Quantiles {
	slices.Sort(durations)
	q := Quantiles{Count: len(durations)}
	if q.Count == 0 {
		return q
	}
	for _, d := range durations {
		q.Sum += d
	}
	at := func(share float64) float64 { return durations[int(math.Ceil(share*float64(q.Count)))-1] }
	q.P50, q.P95, q.P99 = at(0.50), at(0.95), at(0.99)
	return q
}
