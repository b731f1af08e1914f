package controllers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomHistories drives random trees through random events: edits, actions, results, crashes, time. After every
// step the sim checks that deciding what is affected equals deciding everything, that the outcome is a fixed point,
// that statuses are well formed and survive a file, and that only allowed transitions occur; the checks here are about
// what runs.
func TestRandomHistories(t *testing.T) {
	const steps = 60
	for seed := range uint64(mutants.Size(5, 14, 300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &chaos{sim: newSim(t), r: rand.New(rand.NewPCG(seed, 1)), succeeded: map[string]string{}}
			h.setUp()
			for i := 0; i < steps && !t.Failed(); i++ {
				h.step()
				h.settle()
				h.invariants()
			}
			h.calmDown()
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		})
	}
}

// chaos does random things to a sim.
type chaos struct {
	*sim
	r         *rand.Rand
	log       []string
	actions   int
	succeeded map[string]string // dag/node/key → effect that succeeded
	// nodeFields and dagFields are further fields of nodes and DAGs; nil: there are none.
	nodeFields func(k int, needs []string) string
	dagFields  func(i int) string
	// sessionFields are further fields of sessions.
	sessionFields func() string
	// reserve reports whether an effect may be claimed, and reserves what it may use; use says what a run used.
	reserve func(*settle.Effect) bool
	untimed bool // no DAG has a time limit
	fresh   bool // what starts was decided of the tree as it is then
	use     func(*schemas.Run)
}

// turn settles until no specs follow any more.
func (c *chaos) turn() {
	c.t.Helper()
	for range 10 {
		c.settle()
		specs := c.derive()
		for _, spec := range specs {
			c.note("derived %s", spec.Ref)
			c.write(spec)
		}
		if len(specs) == 0 {
			return
		}
	}
	c.t.Error("the turn comes to no end")
}

func (c *chaos) note(format string, args ...any) { c.log = append(c.log, fmt.Sprintf(format, args...)) }

func (c *chaos) setUp() {
	c.put("reconcile.yaml", fmt.Sprintf(
		"apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {limits: {sessions: %d}}\n",
		1+c.r.IntN(3)))
	c.put("specs/agents/engineer.yaml", head("Agent", "engineer")+"spec: {runner: {command: {argv: [engineer]}}}\n")
	c.put("specs/agents/boss.yaml", head("Agent", "boss")+"spec: {runner: {human: {}}}\n")
	for i := range 3 {
		c.session(i)
	}
	for i := range 3 {
		c.dagSpec(i)
	}
}

// finalNode is a node at the end of a DAG.
const finalNode = "n5"

func head(kind, name string) string {
	return fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\n", kind, name)
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (c *chaos) session(i int) {
	name := fmt.Sprintf("s%d", i)
	more := ""
	if c.sessionFields != nil {
		more = c.sessionFields()
	}
	text := head("Session", name) + fmt.Sprintf("spec: {phase: %s, priority: %s, owner: %q%s}\n",
		pick(c.r, "Active", "Active", "Active", "Paused", "Suspended", "Completed"), pick(c.r, "high", "normal", "low"),
		pick(c.r, "", "", "x"), more)
	c.note("session %s", text)
	c.put("specs/sessions/"+name+".yaml", text)
}

// dagSpec writes a DAG of up to five nodes; small numbers make collisions likely.
func (c *chaos) dagSpec(i int) {
	name := fmt.Sprintf("d%d", i)
	var b strings.Builder
	session, fails, retries, timeout := c.r.IntN(3), pick(c.r, "failFast: true", "continueOnFailure: true"), c.r.IntN(2), pick(c.r, "", "", ", timeout: 20s")
	if c.untimed {
		timeout = ""
	}
	fmt.Fprintf(&b, "%sspec:\n  session: s%d\n  policy: {%s, retry: {limit: %d, backoff: 1s}%s%s}\n", head("DAG", name),
		session, fails, retries, timeout, pick(c.r, "", ", onChange: mergePending", ", onChange: abort"))
	if c.dagFields != nil {
		b.WriteString(c.dagFields(i))
	}
	b.WriteString("  nodes:\n")
	n := 1 + c.r.IntN(5)
	for k := range n {
		var needs []string
		for j := range k {
			if c.r.IntN(3) == 0 {
				needs = append(needs, fmt.Sprintf("n%d", j))
			}
		}
		fmt.Fprintf(&b, "    - name: n%d\n", k)
		if more := c.more(k, needs); more != "" {
			b.WriteString(more)
		} else {
			switch c.r.IntN(6) {
			case 0:
				b.WriteString("      agent: engineer\n      prompt: work\n")
			case 1:
				b.WriteString("      agent: boss\n      prompt: look\n")
			default:
				fmt.Fprintf(&b, "      run: [tool, %q]\n", fmt.Sprint(c.r.IntN(3)))
			}
			if c.r.IntN(4) == 0 {
				b.WriteString("      inputs: [\"*.go\"]\n")
			}
		}
		if len(needs) > 0 {
			fmt.Fprintf(&b, "      needs: [%s]\n", strings.Join(needs, ", "))
			if c.r.IntN(4) == 0 {
				fmt.Fprintf(&b, "      when: needs.%s.exitCode == 0 && needs.%s.state == \"Succeeded\"\n", needs[0], needs[0])
			}
		}
	}
	c.note("dag %s", b.String())
	c.put("specs/dags/"+name+".yaml", b.String())
}

func (c *chaos) more(k int, needs []string) string {
	if c.nodeFields == nil {
		return ""
	}
	return c.nodeFields(k, needs)
}

func (c *chaos) step() {
	for range 1 + c.r.IntN(3) {
		switch k := c.r.IntN(40); {
		case k < 12:
			c.startSome()
		case k < 24:
			c.finishSome()
		case k < 28:
			c.cancelUnwanted()
		case k < 31:
			c.pass()
		case k < 35:
			c.act()
		default:
			c.upset(k)
		}
	}
}

func (c *chaos) upset(k int) {
	i := c.r.IntN(3)
	switch k {
	case 35:
		c.session(i)
	case 36:
		c.dagSpec(i)
	case 37:
		e := c.entry(schemas.DAGKind.Ref(fmt.Sprintf("d%d", i)))
		e.Inputs = map[string]string{fmt.Sprintf("n%d", c.r.IntN(5)): fmt.Sprint("sha256:", c.r.IntN(3))}
		c.note("inputs of d%d: %v", i, e.Inputs)
	case 38:
		c.note("crash")
		for ref, e := range maps.Clone(c.entries) {
			if len(e.Claims) > 0 {
				c.entry(ref).Claims = nil
			}
		}
	case 39:
		c.breakOrRemove(i)
	}
}

func (c *chaos) breakOrRemove(i int) {
	path := fmt.Sprintf(pick(c.r, "specs/dags/d%d.yaml", "specs/sessions/s%d.yaml"), i)
	if c.r.IntN(2) == 0 {
		c.note("rm %s", path)
		c.put(path, "")
		return
	}
	c.note("break %s", path)
	kind := map[bool]string{true: "DAG", false: "Session"}[strings.Contains(path, "dags")]
	name := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".yaml")
	c.put(path, head(kind, name)+fmt.Sprintf("spec: {nonsense: 1%s}\n", pick(c.r, "", fmt.Sprintf(", session: s%d", c.r.IntN(3)))))
}

func (c *chaos) pass() {
	c.now = c.now.Add(time.Duration(1+c.r.IntN(4000)) * time.Millisecond)
	c.note("now %s", c.now.Format(time.RFC3339Nano))
	for ref, out := range c.last.Outs {
		if !out.Again.IsZero() && !out.Again.After(c.now) {
			c.entry(ref)
		}
	}
}

func (c *chaos) act() {
	c.actions++
	target := fmt.Sprintf("dag/d%d", c.r.IntN(3))
	verb := pick(c.r, "cancel", "retry", "retry", "pause", "resume", "hold", "approve", "approve", "skip")
	node := ""
	switch {
	case c.r.IntN(4) == 0:
		target, verb = fmt.Sprintf("session/s%d", c.r.IntN(3)), pick(c.r, "pause", "resume", "cancel", "retry")
	case verb == "skip" || verb != "pause" && verb != "resume" && c.r.IntN(2) == 0:
		node = fmt.Sprintf("n%d", c.r.IntN(5))
	}
	name := fmt.Sprintf("a%d", c.actions)
	c.note("action %s: %s %s %s", name, verb, target, node)
	text := head("Action", name) +
		fmt.Sprintf("spec: {target: %s, verb: %s, at: %q", target, verb, c.now.Format(time.RFC3339Nano))
	if node != "" {
		text += ", node: " + node
	}
	c.put("specs/actions/"+name+".yaml", text+"}\n")
	if c.r.IntN(4) == 0 && c.actions > 2 {
		c.note("rm action a%d", c.actions-2)
		c.put(fmt.Sprintf("specs/actions/a%d.yaml", c.actions-2), "")
	}
}

func (c *chaos) startSome() {
	if c.fresh {
		c.settle()
	}
	for _, e := range c.effects() {
		entry := c.entries[e.Owner]
		finished := func(r *schemas.Run) bool { return r.Key == e.Key } // since it was wanted
		if entry == nil || c.r.IntN(2) == 0 || slices.ContainsFunc(entry.Runs(), finished) {
			continue
		}
		if c.reserve != nil && settle.ClaimOf(entry, e.Key) == nil && !c.reserve(&e) {
			continue
		}
		c.claim(e, "p1")
		if c.r.IntN(3) > 0 {
			c.note("start %s", e.Key)
			c.start(e)
		} else {
			c.note("claim %s", e.Key)
		}
	}
	c.startLate()
}

// startLate has runs known to go on that were claimed before, whether they are still wanted or not.
func (c *chaos) startLate() {
	for _, ref := range slices.SortedFunc(maps.Keys(c.entries), schemas.Ref.Compare) {
		for i, cl := range c.entries[ref].Claims {
			if cl.StartedAt.IsZero() && c.r.IntN(4) == 0 {
				c.note("start late %s", cl.Key)
				c.entry(ref).Claims[i].StartedAt = schemas.NewTime(c.now)
			}
		}
	}
}

func (c *chaos) finishSome() {
	for _, ref := range slices.SortedFunc(maps.Keys(c.entries), schemas.Ref.Compare) {
		for _, cl := range slices.Clone(c.entries[ref].Claims) {
			if cl.StartedAt.IsZero() || c.r.IntN(2) == 0 {
				continue
			}
			outcome := pick(c.r, schemas.OutcomeSucceeded, schemas.OutcomeSucceeded, schemas.OutcomeSucceeded,
				schemas.OutcomeFailed, schemas.OutcomeTimedOut, schemas.OutcomeCancelled, "")
			c.note("end %s %s", cl.Key, outcome)
			code := map[bool]int{true: 0, false: 1}[outcome == schemas.OutcomeSucceeded]
			c.end(ref, cl.Key, func(r *schemas.Run) {
				if r.Outcome, r.ExitCode = outcome, &code; outcome == schemas.OutcomeSucceeded && c.nodeFields != nil {
					r.Result = c.result()
				}
				if c.use != nil {
					c.use(r)
				}
			})
			if outcome == schemas.OutcomeSucceeded && c.succeeded != nil {
				c.succeeded[ref.Name+"/"+cl.Node+"/"+cl.NodeKey] = cl.Key
			}
		}
	}
}

// invariants checks what is wanted against what is on record.
func (c *chaos) invariants() {
	c.eachWanted(func(e settle.Effect, at string, claimed bool) {
		if won, ok := c.succeeded[at+"/"+e.NodeKey]; ok && !claimed {
			c.t.Errorf("%s is wanted although %s succeeded under that key", e.Key, won)
		}
		if !claimed {
			c.startable(e)
		}
	})
	for key := range c.succeeded { // a DAG that was removed may run again from nothing
		if name, _, _ := strings.Cut(key, "/"); c.entries[schemas.DAGKind.Ref(name)] == nil {
			delete(c.succeeded, key)
		}
	}
}

// eachWanted checks that what is wanted is not on record, of an object that is there, and wanted once for each node; check checks the rest.
func (c *chaos) eachWanted(check func(e settle.Effect, at string, claimed bool)) {
	seen := map[string]bool{}
	for _, e := range c.effects() {
		entry := c.entries[e.Owner]
		if entry == nil {
			c.t.Fatalf("%s is wanted and its owner is gone", e.Key)
		}
		at := e.Owner.Name + "/" + e.Node
		if seen[at] {
			c.t.Errorf("two effects for node %s are wanted", at)
		}
		seen[at] = true
		for _, r := range entry.Runs() {
			if r.Key == e.Key {
				c.t.Errorf("%s is wanted and on record", e.Key)
			}
		}
		check(e, at, settle.ClaimOf(entry, e.Key) != nil)
	}
}

// startable checks that a new effect may start: its session works, and all its needs are met.
func (c *chaos) startable(e settle.Effect) {
	st, spec := c.dag(e.Owner.Name), state.SpecOf[*schemas.DAGSpec](c.last.Tree.Entry(e.Owner))
	n := spec.Node(e.Node)
	if n == nil {
		return // a notification
	}
	if s := c.entries[schemas.SessionKind.Ref(e.Session)]; s == nil || !s.HasStatus() ||
		s.Status().Base().Phase != schemas.SessionActive && s.Status().Base().Phase != schemas.SessionFailed {
		c.t.Errorf("%s may start, and its session is not active", e.Key)
	}
	if st.Hold != "" || !slices.Contains([]string{"", schemas.VerbApprove, "cleanup"}, st.Nodes.Of(e.Node).Verb) {
		c.t.Errorf("%s may start, and an action is against it", e.Key)
	}
	if len(e.Command().Argv) == 0 {
		c.t.Errorf("%s has nothing to run", e.Key)
	}
	if e.Node == finalNode {
		return // whatever became of the others
	}
	if when, err := condition.CompileIn(n.When, condition.Scope{Needs: n.Needs}); n.When != "" && err == nil && when.ReadsState {
		return // whatever became of its needs
	}
	for need, result := range e.Command().Needs {
		of := spec.Node(need)
		if of == nil || of == n || of.FailsAlone() || of.Repeat != nil && !slices.Contains(n.Needs, need) {
			continue // of a called DAG, by its name there; the round before; or whatever became of it
		}
		if n := st.Nodes.Of(need); !readiness.NodeMet(&n) || result.State != n.State {
			c.t.Errorf("%s may start, and its need %s is %s (told: %s)", e.Key, need, n.State, result.State)
		}
	}
}

// calmDown lets everything run to its end: nothing may stay Running or Queued for ever.
func (c *chaos) calmDown() {
	c.toEnd(200, time.Second, func(*schemas.Run) {}, func() { c.settle() })
}

// toEnd lets all that is wanted succeed for some rounds, a pause after the other. left says what a run leaves, decide decides.
func (c *chaos) toEnd(rounds int, pause time.Duration, left func(*schemas.Run), decide func()) {
	for range rounds {
		c.cancelUnwanted()
		for _, e := range c.effects() {
			c.start(e)
			c.end(e.Owner, e.Key, func(r *schemas.Run) {
				r.Outcome = schemas.OutcomeSucceeded
				left(r)
			})
		}
		c.now = c.now.Add(pause)
		for ref, out := range c.last.Outs {
			if !out.Again.IsZero() && !out.Again.After(c.now) {
				c.entry(ref)
			}
		}
		if len(c.dirty) == 0 && !c.waits() {
			break
		}
		decide()
	}
	for ref, e := range c.entries {
		dag, ok := e.Status().(*schemas.DAGStatus)
		if ok && !e.Broken() && (dag.Running > 0 || dag.Phase == schemas.DAGRunning) {
			c.t.Errorf("%s is %s for ever:\n%s", ref, dag.Phase, c.states(ref.Name))
		}
	}
}

func (c *chaos) waits() bool {
	for _, out := range c.last.Outs {
		if !out.Again.IsZero() || len(out.Effects) > 0 {
			return true
		}
	}
	return false
}
