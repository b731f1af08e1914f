package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomControlHistories is TestRandomExpandedHistories with edits of single fields, actions of all verbs, modes and targets that arrive
// late or early, DAGs that vanish and return, records that are pruned, and long waits.
func TestRandomControlHistories(t *testing.T) {
	const steps = 70
	for n := range uint64(mutants.Size(3, 8, 24)) {
		seed := 23 - n // the last ones found faults
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &controlChaos{expandedChaos: newExpanded(t, seed, 61)}
			for i := 0; i < steps && !t.Failed(); i++ {
				h.control()
				h.step()
				h.turn()
				h.invariants()
				h.alone()
			}
			if !t.Failed() {
				h.calmDown()
			}
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		})
	}
}

type controlChaos struct {
	*expandedChaos
	keeps bool // the records of the present keys of nodes are never pruned, as in a tree
}

// control does one of the things that a step does not.
func (c *controlChaos) control() {
	i := c.r.IntN(3)
	dag := fmt.Sprintf("specs/dags/d%d.yaml", i)
	switch c.r.IntN(22) {
	case 0, 1, 2, 3:
		c.editField(i)
	case 4, 5, 6:
		c.actOtherwise(i)
	case 7: // and comes back as it was, perhaps a turn later
		if text := c.textOf(i); text != "" {
			c.note("rm and put %s", dag)
			if c.put(dag, ""); c.r.IntN(2) == 0 {
				c.turn()
			}
			if c.entries[schemas.DAGKind.Ref(fmt.Sprintf("d%d", i))] == nil {
				c.forget(i)
			}
			c.put(dag, text)
		}
	case 8:
		c.callee(c.r.IntN(3))
	case 9:
		c.prune(i)
	case 10:
		c.now = c.now.Add(time.Duration(c.r.IntN(90)) * time.Second)
		c.note("now %s", c.now.Format(time.RFC3339Nano))
		c.wake()
	case 11:
		c.lose(pick(c.r, schemas.DAGKind.Ref(fmt.Sprintf("d%d", i)), schemas.DAGKind.Ref("callee"), schemas.SessionKind.Ref(fmt.Sprintf("s%d", i))))
	}
}

// lose has an object lose its status: its file is removed, or it cannot be read.
func (c *chaos) lose(ref schemas.Ref) {
	if e := c.entries[ref]; e != nil && e.HasStatus() {
		c.note("the status of %s is lost", ref)
		c.entry(ref).SetStatus(nil)
		c.lost = true
	}
}

// wake marks what is to be decided again by now.
func (c *chaos) wake() {
	for ref, out := range c.last.Outs {
		if !out.Again.IsZero() && !out.Again.After(c.now) {
			c.entry(ref)
		}
	}
}

// forget drops what is known of the successes of a DAG.
func (c *chaos) forget(i int) {
	for key := range c.succeeded {
		if strings.HasPrefix(key, fmt.Sprintf("d%d/", i)) {
			delete(c.succeeded, key)
		}
	}
}

// prune removes records of a DAG whose status knows what became of them.
func (c *controlChaos) prune(i int) {
	e := c.entries[schemas.DAGKind.Ref(fmt.Sprintf("d%d", i))]
	if e == nil || !e.HasStatus() || len(e.Claims) > 0 {
		return
	}
	if st := e.Status().(*schemas.DAGStatus); isOver(st) {
		c.note("records of d%d are pruned", i)
		c.entry(e.Ref).SetRuns(slices.DeleteFunc(slices.Clone(e.Runs()), func(r *schemas.Run) bool {
			return !c.keeps || st.Nodes.Of(r.Node).Key != r.NodeKey
		}))
		c.forget(i) // an edit may have it run again
	}
}

// textOf is the file of a DAG as it was written last; "" for none, or one that is broken or gone.
func (c *controlChaos) textOf(i int) string {
	path := fmt.Sprintf("specs/dags/d%d.yaml", i)
	if d, ok := c.specs[path]; !ok || d.Object == nil {
		return ""
	}
	for k := len(c.log) - 1; k >= 0; k-- {
		if text, ok := strings.CutPrefix(c.log[k], "dag "); ok && strings.Contains(text, fmt.Sprintf("{name: d%d}", i)) {
			return text
		}
	}
	return ""
}

// editField changes one field of a DAG, if it has it.
func (c *controlChaos) editField(i int) {
	text := c.textOf(i)
	if text == "" {
		return
	}
	edit := pick(c.r, [][]string{
		{"failFast: true", "continueOnFailure: true"}, {"limit: 0", "limit: 1", "limit: 2"}, {"backoff: 1s", "backoff: 3s"},
		{", onChange: mergePending", ", onChange: abort", ", onChange: replace"}, {", timeout: 20s", ", timeout: 5s", ", timeout: 2m"},
		{"cancelInProgress: true", "cancelInProgress: false"}, {"missed: skip", "missed: one", "missed: all"},
		{"[tool, \"0\"]", "[tool, \"1\"]", "[tool, \"2\"]"}, {"a: [0, 2]", "a: [0]", "a: [0, 2, 3]", "a: [2]", "a: [1, 3]"},
		{"max: 1", "max: 2", "max: 3"}, {"session: s0", "session: s1", "session: s2"}, {"with: {n: 0}", "with: {n: 1}", "with: {n: 2}"},
		{"      approve: {}\n", "      optional: true\n"}, {"\"* * * * *\"", "\"*/2 * * * *\""}, {"default: \"0\"", "default: \"1\""},
	}...)
	for k, from := range edit {
		if strings.Contains(text, from) {
			to := edit[(k+1+c.r.IntN(len(edit)-1))%len(edit)]
			text = strings.Replace(text, from, to, 1)
			c.note("dag %s", text)
			c.put(fmt.Sprintf("specs/dags/d%d.yaml", i), text)
			return
		}
	}
}

// actOtherwise writes an action with any verb, mode and target, which comes late, or from a clock that is ahead.
func (c *controlChaos) actOtherwise(i int) {
	c.actions++
	at := c.now.Add(pick(c.r, 0, -time.Second, -20*time.Second, -2*time.Minute, 3*time.Second))
	spec := fmt.Sprintf("target: dag/d%d, verb: %s", i, pick(c.r, "cancel, mode: immediate", "cancel, mode: wait", "cancel", "retry, all: true", "retry",
		"pause", "resume", "skip", "hold", "approve"))
	switch c.r.IntN(5) {
	case 0:
		spec = "target: all, verb: " + pick(c.r, "pause", "resume", "cancel", "retry", "cancel, mode: wait")
	case 1:
		spec = fmt.Sprintf("target: session/s%d, verb: %s", i, pick(c.r, "pause", "resume", "cancel, mode: immediate", "retry", "cancel, mode: wait"))
	default:
		if !strings.Contains(spec, "all: true") && (c.r.IntN(2) == 0 || strings.Contains(spec, "skip")) {
			spec += fmt.Sprintf(", node: n%d", c.r.IntN(5))
		}
	}
	if c.r.IntN(4) > 0 {
		spec += fmt.Sprintf(", at: %q", at.Format(time.RFC3339Nano))
	}
	name := fmt.Sprintf("a%d", c.actions)
	c.note("action %s: %s", name, spec)
	c.put("specs/actions/"+name+".yaml", head("Action", name)+"spec: {"+spec+"}\n")
}
