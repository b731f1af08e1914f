package controllers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomExpandedHistories is TestRandomHistories for DAGs that expand and wait for each other: matrices of values and of results,
// loops, calls, final nodes, gates, concurrency groups and schedules.
func TestRandomExpandedHistories(t *testing.T) {
	const steps = 60
	for seed := range uint64(mutants.Size(3, 8, 200)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newExpanded(t, seed, 23)
			for i := 0; i < steps && !t.Failed(); i++ {
				h.step()
				h.turn()
				h.invariants()
				h.alone()
			}
			h.calmDown()
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		})
	}
}

type expandedChaos struct{ *chaos }

// newExpanded has three DAGs that expand and wait for each other, and one that they call.
func newExpanded(t *testing.T, seed, stream uint64) *expandedChaos {
	h := &expandedChaos{&chaos{sim: newSim(t), r: rand.New(rand.NewPCG(seed, stream)), succeeded: map[string]string{}}}
	h.nodeFields, h.dagFields = h.expandedNode, h.waitingDAG
	h.setUp()
	h.callee(1)
	return h
}

// callee writes the DAG that others call.
func (c *expandedChaos) callee(n int) {
	c.note("callee %d", n)
	c.put("specs/dags/callee.yaml", head("DAG", "callee")+fmt.Sprintf("spec: {template: true, params: {n: {type: integer, default: %d}}, "+
		"nodes: [{name: in, run: [tool, '{{ params.n }}']}, {name: out, needs: [in], run: [tool], outputs: {json: out.json}}]}\n", n))
}

// waitingDAG are fields of a DAG that have it wait. d0 and d1 are of one group.
func (c *expandedChaos) waitingDAG(i int) string {
	var b strings.Builder
	if i < 2 {
		fmt.Fprintf(&b, "  concurrency: {group: g, cancelInProgress: %v}\n", i == 0 && c.r.IntN(2) == 0)
	}
	if c.r.IntN(3) == 0 {
		fmt.Fprintf(&b, "  schedule: {cron: \"* * * * *\", timeZone: %s, missed: %s}\n", pick(c.r, "UTC", "Asia/Kolkata"), pick(c.r, "skip", "one", "all"))
	}
	if c.r.IntN(2) == 0 {
		fmt.Fprintf(&b, "  onFailure: {command: [tell, %q]}\n", fmt.Sprint(c.r.IntN(2)))
	}
	if c.r.IntN(2) == 0 {
		fmt.Fprintf(&b, "  finally: [{name: %s, run: [tool, '{{ needs.n0.state }}']}]\n  params: {p: {default: %q}}\n", finalNode, fmt.Sprint(c.r.IntN(2)))
	}
	return b.String()
}

// expandedNode is a node that expands, or repeats, or waits for an approval; "" for another one.
func (c *expandedChaos) expandedNode(k int, needs []string) string {
	text := ""
	switch c.r.IntN(7) {
	case 0:
		text = fmt.Sprintf("      run: [tool, '{{ matrix.a }}']\n      matrix: {values: {a: [%d, %d]}}\n", c.r.IntN(2), 2+c.r.IntN(2))
	case 1:
		if k > 0 {
			text = fmt.Sprintf("      run: [tool, '{{ matrix.value }}']\n      matrix: {from: needs.%s.result}\n", fmt.Sprintf("n%d", c.r.IntN(k)))
		}
	case 2:
		text = fmt.Sprintf("      dag: callee\n      with: {n: %d}\n", c.r.IntN(3))
	case 3:
		text = "      run: [tool]\n      outputs: {json: r.json}\n"
		if len(needs) > 0 {
			text += fmt.Sprintf("      repeat: {until: 'len(result) > 1', from: %s, max: %d}\n", needs[0], 1+c.r.IntN(3))
		} else {
			text += fmt.Sprintf("      repeat: {until: 'len(result) > 1', max: %d}\n", 1+c.r.IntN(3))
		}
	case 4:
		text = "      run: [tool]\n      outputs: {json: r.json}\n      optional: true\n"
	case 5:
		text = "      run: [tool]\n      approve: {}\n"
	}
	return text
}

// result is what a node leaves: a list, as a matrix needs it.
func (c *chaos) result() json.RawMessage {
	return json.RawMessage(pick(c.r, "[]", "[1]", "[1, 2]", "[2, 3, 4]", `{"ok": true}`, `"text"`))
}

// alone checks that the DAGs of a group do not work at the same time, and that no node has two runs.
func (c *expandedChaos) alone() {
	for _, e := range c.effects() {
		entry := c.entries[e.Owner]
		if settle.ClaimOf(entry, e.Key) != nil {
			continue
		}
		for i := range entry.Claims {
			if entry.Claims[i].Node == e.Node {
				c.t.Errorf("%s is wanted while %s is claimed", e.Key, entry.Claims[i].Key)
			}
		}
		other := map[string]string{"d0": "d1", "d1": "d0"}[e.Owner.Name]
		o := c.entries[schemas.DAGKind.Ref(other)]
		if o == nil || state.SpecOf[*schemas.DAGSpec](o) == nil || tells(e.Node) {
			continue
		}
		for i := range o.Claims {
			if !tells(o.Claims[i].Node) {
				c.t.Errorf("%s is wanted while %s of its group is claimed", e.Key, o.Claims[i].Key)
			}
		}
	}
}

// tells reports whether a run tells of the end of its DAG, for which it needs no place in the group.
func tells(node string) bool { return node == schemas.OnFailure || node == schemas.OnSuccess }
