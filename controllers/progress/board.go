package progress

import (
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/topology"
	"reconcile.dev/reconcile/state"
)

// View is the state of a run at one moment. It counts the nodes of the DAGs that have work, or had some since Reset.
type View struct {
	Done, Total                      int
	Running, Queued, Waiting, Failed int
	// Left is how long the rest may take, by what its nodes took before; 0: not known. Least says that some of the rest is
	// of unknown length.
	Left  time.Duration
	Least bool
	// Nodes are the running ones, first those whose agents ask a person, then the longest, then those that are retried soon, then
	// those that wait for a person, each with its message. There are Hidden more.
	Nodes  []Node
	Hidden int
}

// Idle reports whether the view has no running and no queued nodes: nothing can run without an action of a person.
func (v *View) Idle() bool { return v.Running == 0 && v.Queued == 0 }

// board is what View knows of the tree that it has seen last. Looking at the next one costs as much as what differs.
type board struct {
	seen  *state.Tree
	play  map[string]*dag // by name: those that have work, or had some
	order []*dag          // sorted by name; nil: to be made
}

// dag is one DAG in play.
type dag struct {
	entry  *state.Entry
	object *schemas.Object // the source of plan
	plan   []plannedNode
	tasks  []int32 // each node after its dependencies
	nodes  []Node  // by position, as in the status
	states []string
	tally
	rest rest
}

// plannedNode is the data of a node from a spec and earlier records.
type plannedNode struct {
	needs    []int32
	attempts int
	usual    time.Duration
}

// tally counts nodes by state.
type tally struct{ done, total, running, queued, waiting, failed int }

func (v *View) add(c tally) {
	v.Done += c.done
	v.Total += c.total
	v.Running += c.running
	v.Queued += c.queued
	v.Waiting += c.waiting
	v.Failed += c.failed
}

// rank orders nodes: running and waiting for a person, running, to be retried, waiting.
func rank(n Node) int {
	switch {
	case n.Asks != "":
		return -1
	case n.State == schemas.NodeRunning:
		return 0
	case !n.Due.IsZero():
		return 1
	}
	return 2
}

// count is the tally of one node in a state.
func count(state string) tally {
	c := tally{total: 1}
	switch state {
	case schemas.NodeSucceeded, schemas.NodeSkipped:
		c.done++
	case schemas.NodeRunning:
		c.running++
	case schemas.NodeQueued:
		c.queued++
	case schemas.NodeBlocked:
		c.waiting++
	case schemas.NodeFailed:
		c.failed++
	}
	return c
}

func (b *board) drop(name string) {
	if b.play[name] != nil {
		delete(b.play, name)
		b.order = nil
	}
}

func (b *board) sorted() []*dag {
	if b.order == nil {
		for _, name := range slices.Sorted(maps.Keys(b.play)) {
			b.order = append(b.order, b.play[name])
		}
	}
	return b.order
}

// update applies the change of one DAG.
func (b *board) update(e *state.Entry) {
	d := b.play[e.Name]
	st, _ := e.Status().(*schemas.DAGStatus)
	if d != nil && st != nil && d.entry.Status() == e.Status() && d.object == e.Object {
		d.entry = e
		return
	}
	if st == nil || e.Object == nil || d == nil && !hasWork(st) {
		b.drop(e.Name)
		return
	}
	if d == nil {
		d = &dag{}
		b.play[e.Name], b.order = d, nil
	}
	d.take(e, st)
}

// hasWork reports whether a node runs, or could.
func hasWork(st *schemas.DAGStatus) bool {
	for _, n := range st.Nodes.All() {
		if n.State == schemas.NodeRunning || n.State == schemas.NodeQueued {
			return true
		}
	}
	return false
}

// take reads a status.
func (d *dag) take(e *state.Entry, st *schemas.DAGStatus) {
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if d.entry = e; d.object != e.Object {
		d.object = e.Object
		d.prepare(spec)
	}
	d.tally, d.rest.known = tally{}, false
	for i := range spec.Nodes {
		s := st.Nodes.Of(spec.Nodes[i].Name)
		c := count(s.State)
		d.done, d.total, d.failed = d.done+c.done, d.total+1, d.failed+c.failed
		d.running, d.queued, d.waiting = d.running+c.running, d.queued+c.queued, d.waiting+c.waiting
		n := &d.nodes[i]
		*n = Node{Owner: n.Owner, Name: n.Name, State: s.State, Message: s.Message, Attempt: s.Attempts,
			Attempts: d.plan[i].attempts, Usual: d.plan[i].usual}
		d.states[i] = s.State
		switch s.State {
		case schemas.NodeRunning:
			n.Since, n.Asks = s.StartedAt.Time, asks(&s)
			if n.Step = verifying[s.Reason]; n.Step != "" {
				n.Usual = 0 // that is the time of its work
			}
		case schemas.NodeQueued:
			n.Attempt++
			n.Due = s.RetryAt.Time
		}
	}
}

// held says which work node i waits for that touches the same files; "" for none.
func (d *dag) held(i int, touching func() *dags.Touching) string {
	spec := schemas.SpecAs[*schemas.DAGSpec](d.entry.Object)
	if d.states[i] != schemas.NodeQueued || len(spec.Nodes[i].Touches) == 0 {
		return ""
	}
	st, _ := d.entry.Status().(*schemas.DAGStatus)
	return touching().Why(&spec.Nodes[i], st.Nodes.Of(spec.Nodes[i].Name))
}

// verifying are the steps that follow the work of a node, by the reason of its state.
var verifying = map[string]string{
	settle.ReasonInspecting: schemas.StepInspect, settle.ReasonTesting: schemas.StepTest, settle.ReasonLanding: schemas.StepLand,
}

// prepare reads the spec and the records of a DAG.
func (d *dag) prepare(spec *schemas.DAGSpec) {
	n := len(spec.Nodes)
	d.plan, d.nodes, d.states = make([]plannedNode, n), make([]Node, n), make([]string, n)
	index := make(map[string]int32, n)
	for i := range spec.Nodes {
		index[spec.Nodes[i].Name] = int32(i)
	}
	needs := make([][]int32, n)
	usual := usualTimes(d.entry)
	for i := range spec.Nodes {
		node := &spec.Nodes[i]
		d.nodes[i] = Node{Owner: d.entry.Ref.String(), Name: node.Name}
		for _, name := range node.Needs {
			if to, ok := index[name]; ok {
				needs[i] = append(needs[i], to)
			}
		}
		d.plan[i] = plannedNode{needs: needs[i], attempts: attempts(spec, i), usual: usual[node.Name]}
	}
	order, _ := topology.Sort(needs) // without an order nothing of it runs
	d.tasks = order.Tasks
}

// usualTimes is what the latest success of each node took.
func usualTimes(e *state.Entry) map[string]time.Duration {
	latest := map[string]*schemas.Run{}
	for _, r := range e.Runs() {
		if was := latest[r.Node]; r.Outcome == schemas.OutcomeSucceeded && r.IsWork() && (was == nil || was.FinishedAt.Before(r.FinishedAt.Time)) {
			latest[r.Node] = r
		}
	}
	out := make(map[string]time.Duration, len(latest))
	for name, r := range latest {
		out[name] = ran(r)
	}
	return out
}

// attempts is how many attempts node i of a DAG may have.
func attempts(spec *schemas.DAGSpec, i int) int { return spec.Nodes[i].RetryOr(spec.Policy).Limit + 1 }

// ran is how long a run took. Records count milliseconds, so what took less counts as one.
func ran(r *schemas.Run) time.Duration {
	if r.StartedAt.IsZero() {
		return 0
	}
	return max(r.FinishedAt.Sub(r.StartedAt.Time), time.Millisecond)
}

// nodeOf reads a key: "dags/checks/build-0123456789abcdef-1" is build of dag/checks.
func nodeOf(key string) Node {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) != 3 {
		return Node{Owner: key}
	}
	n := Node{Owner: parts[0] + "/" + parts[1], Name: parts[2]}
	if k, ok := controllers.Schemas().Find(parts[0]); ok {
		n.Owner = k.Singular() + "/" + parts[1]
	}
	for range 2 {
		n.Name = n.Name[:max(strings.LastIndexByte(n.Name, '-'), 0)]
	}
	return n
}
