package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomNode is a node of a random DAG, and what its program does.
type randomNode struct {
	name, kind string // kind: work, matrix, list, from, call, person
	needs      []string
	mode       string // ok, fail, flaky, slow
	n          int    // its result is {"n": n}, with the value of its element or parameter added
	values     []int  // of a matrix, or of the list that it leaves
	bad        int    // the element that fails
	calls      string // the template that it calls, or the node that leaves the list
	retry      int
	when       randomWhen
	optional   bool
	gate       bool
	lane       string
	touches    string
}

// randomWhen is a condition, which the oracle evaluates by itself.
type randomWhen struct {
	form, need string // form: result, param, state
	states     []string
	above      int
}

func (w *randomWhen) text() string {
	switch w.form {
	case "result":
		return fmt.Sprintf(`(needs[%q].result?.n ?? 0) > %d`, w.need, w.above)
	case "param":
		return fmt.Sprintf("params.v > %d", w.above)
	case "state":
		list, _ := json.Marshal(w.states)
		return fmt.Sprintf(`needs[%q].state in %s`, w.need, list)
	}
	return ""
}

// randomDAG is a DAG of random nodes.
type randomDAG struct {
	name, session string
	template      bool
	failFast      bool
	most          int
	group         string
	onChange      string
	param         int
	nodes         []*randomNode
	finally       bool
}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// newRandomDAG makes a DAG with up to most nodes, which calls the templates.
func newRandomDAG(r *rand.Rand, name, session string, most int, templates []*randomDAG) *randomDAG {
	d := &randomDAG{name: name, session: session, template: session == "", failFast: r.IntN(4) == 0, param: r.IntN(4),
		onChange: one(r, "replace", "replace", "mergePending", "abort"), finally: session != "" && r.IntN(3) == 0}
	if r.IntN(3) == 0 {
		d.most = 1 + r.IntN(2)
	}
	if r.IntN(4) == 0 {
		d.group = "deploy"
	}
	for range 2 + r.IntN(most-1) {
		d.add(r, templates)
	}
	return d
}

// add adds a random node.
func (d *randomDAG) add(r *rand.Rand, templates []*randomDAG) {
	n := &randomNode{name: fmt.Sprintf("n%d", len(d.nodes)), kind: "work", mode: one(r, "ok", "ok", "ok", "ok", "ok", "fail", "flaky", "slow"), n: 1 + r.IntN(3)}
	for len(d.nodes) > 0 && d.node(n.name) != nil {
		n.name += "x"
	}
	for _, other := range d.nodes {
		if r.IntN(3) == 0 {
			n.needs = append(n.needs, other.name)
		}
	}
	n.retry, n.optional, n.lane = r.IntN(3), r.IntN(6) == 0, one(r, "", "", "high", "low", "background", "critical")
	if !d.template {
		n.gate = r.IntN(8) == 0
		n.touches = one(r, "", "", "", "shared/**", "shared/a/*")
		d.vary(r, n, templates)
	}
	d.condition(r, n)
	d.nodes = append(d.nodes, n)
}

// vary makes a node of another kind.
func (d *randomDAG) vary(r *rand.Rand, n *randomNode, templates []*randomDAG) {
	var lists []string
	for _, other := range d.nodes {
		if other.kind == "list" {
			lists = append(lists, other.name)
		}
	}
	switch k := r.IntN(12); {
	case k == 0:
		n.kind, n.values, n.bad = "matrix", []int{1, 2, 3}[:1+r.IntN(3)], r.IntN(6)
	case k == 1:
		n.kind, n.values = "list", []int{4, 5, 6}[:r.IntN(4)]
	case k < 6 && len(lists) > 0:
		n.kind, n.calls, n.bad = "from", one(r, lists...), 4+r.IntN(6)
	case k == 7 && len(templates) > 0:
		n.kind, n.calls, n.retry, n.lane, n.gate, n.touches = "call", one(r, templates...).name, 0, "", false, ""
	case k == 8:
		n.kind, n.mode, n.retry, n.touches = "person", "ok", 0, ""
	}
}

// condition gives a node a condition, or none.
func (d *randomDAG) condition(r *rand.Rand, n *randomNode) {
	if n.kind == "call" || n.kind == "from" {
		return
	}
	switch k := r.IntN(8); {
	case k == 0:
		n.when = randomWhen{form: "param", above: r.IntN(3)}
	case k == 1 && len(n.needs) > 0:
		n.when = randomWhen{form: "state", need: one(r, n.needs...), states: one(r, []string{"Failed"}, []string{"Failed", "Skipped"}, []string{"Succeeded"})}
	case k == 2:
		for _, need := range n.needs {
			if other := d.node(need); other.kind == "work" || other.kind == "person" {
				n.when = randomWhen{form: "result", need: need, above: r.IntN(3)}
			}
		}
	}
}

func (d *randomDAG) node(name string) *randomNode {
	for _, n := range d.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// object is the DAG's spec.
func (d *randomDAG) object() string {
	spec := map[string]any{"policy": map[string]any{"failFast": d.failFast, "onChange": d.onChange, "retry": map[string]any{"backoff": "20ms"}}}
	if d.most > 0 {
		spec["policy"].(map[string]any)["maxConcurrency"] = d.most
	}
	if d.template {
		spec["template"] = true
		spec["params"] = map[string]any{"id": map[string]any{}, "v": map[string]any{"type": "integer"}}
	} else {
		spec["session"] = d.session
		spec["params"] = map[string]any{"v": map[string]any{"type": "integer", "default": d.param}}
		if d.group != "" {
			spec["concurrency"] = map[string]any{"group": d.group}
		}
	}
	var nodes []any
	for _, n := range d.nodes {
		nodes = append(nodes, d.nodeObject(n))
	}
	spec["nodes"] = nodes
	if d.finally {
		spec["finally"] = []any{map[string]any{"name": "last", "outputs": map[string]any{"json": "out/" + d.name + "-last.json"},
			"script": ". ./head.sh; work out/" + d.name + "-last.json ok 7 0 x"}}
	}
	text, _ := json.Marshal(map[string]any{"apiVersion": "reconcile.dev/v1alpha1", "kind": "DAG", "metadata": map[string]any{"name": d.name}, "spec": spec})
	return string(text)
}

// nodeObject is a node as the spec has it.
func (d *randomDAG) nodeObject(n *randomNode) map[string]any {
	o := map[string]any{"name": n.name, "needs": append([]string{}, n.needs...)}
	if n.when.form != "" {
		o["when"] = n.when.text()
	}
	if n.optional {
		o["optional"] = true
	}
	if n.gate && n.kind != "person" {
		o["approve"] = map[string]any{}
	}
	if n.lane != "" {
		o["priority"] = n.lane
	}
	if n.touches != "" {
		o["touches"] = []string{n.touches}
	}
	switch n.kind {
	case "call":
		o["dag"], o["with"] = n.calls, map[string]any{"id": d.name + "-" + n.name, "v": n.n}
		return o
	case "person":
		o["agent"], o["prompt"] = "boss", "Say how many: "+fmt.Sprint(n.n)
		return o
	}
	out, value, mode := fmt.Sprintf("out/%s-%s.json", d.name, n.name), fmt.Sprint(n.n), n.mode
	variable := ""
	switch {
	case d.template:
		out, value = "out/{{ params.id }}-"+n.name+".json", fmt.Sprintf("$(($RECONCILE_PARAM_V + %d))", n.n)
	case n.kind == "matrix":
		o["matrix"] = map[string]any{"values": map[string]any{"v": n.values}}
		out, variable = fmt.Sprintf("out/%s-%s-{{ matrix.v }}.json", d.name, n.name), "$RECONCILE_MATRIX_V"
	case n.kind == "from":
		o["matrix"] = map[string]any{"from": "needs." + n.calls + ".result"}
		out, variable = fmt.Sprintf("out/%s-%s-{{ matrix.value }}.json", d.name, n.name), "$RECONCILE_MATRIX_VALUE"
	case n.kind == "list":
		list, _ := json.Marshal(n.values)
		value = "'" + string(list) + "'"
	}
	if variable != "" {
		value, mode = fmt.Sprintf("$((%s + %d))", variable, n.n), fmt.Sprintf("$(test %s = %d && echo fail || echo %s)", variable, n.bad, n.mode)
	}
	o["outputs"] = map[string]any{"json": out}
	file := strings.NewReplacer("{{ params.id }}", "$RECONCILE_PARAM_ID", "{{ matrix.v }}", "$RECONCILE_MATRIX_V", "{{ matrix.value }}", "$RECONCILE_MATRIX_VALUE").Replace(out)
	o["script"] = fmt.Sprintf(". ./head.sh; %swork \"%s\" %s %s %d \"%s\"", map[bool]string{true: "list=1; "}[n.kind == "list"], file, mode, value, n.retry, d.told(n))
	o["retry"] = map[string]any{"limit": n.retry, "backoff": "20ms"}
	if n.mode == "slow" {
		o["timeout"] = "300ms"
	}
	return o
}

// told is the text in which a program reads the results of its node's needs.
func (d *randomDAG) told(n *randomNode) string {
	var b strings.Builder
	for _, need := range slices.Sorted(slices.Values(n.needs)) {
		fmt.Fprintf(&b, "$RECONCILE_NEED_%s_RESULT|", strings.ToUpper(need))
	}
	return b.String()
}

// flatNode is a node of an expanded DAG: what the oracle judges.
type flatNode struct {
	*randomNode
	name, mode string
	needs      []string
	told       []string // the nodes whose results it is told, in order
	prefix     string   // of the names of the nodes in its call
	n, param   int
	join       bool
	parts      map[string]string // of a join: nodes by their short names
	final      bool
}

// flatten expands the DAG in the order of its nodes; lists tells which of the nodes that leave lists have succeeded.
func (d *randomDAG) flatten(templates []*randomDAG, succeeded func(string) bool) (out []*flatNode) {
	for _, n := range d.nodes {
		f := flatNode{randomNode: n, name: n.name, mode: n.mode, needs: n.needs, told: slices.Sorted(slices.Values(n.needs)), n: n.n, param: d.param}
		join := flatNode{randomNode: n, name: n.name, join: true, parts: map[string]string{}, needs: n.needs}
		switch n.kind {
		default:
			out = append(out, &f)
			continue
		case "matrix", "from":
			values := n.values
			if n.kind == "from" {
				values, f.needs = nil, append(slices.Clone(n.needs), n.calls)
				join.needs = f.needs
				if succeeded(n.calls) {
					values = d.node(n.calls).values
				}
			}
			for _, v := range values {
				e := f
				if e.name, e.n = fmt.Sprintf("%s_%d", n.name, v), n.n+v; v == n.bad {
					e.mode = "fail"
				}
				join.parts[fmt.Sprint(v)] = e.name
				out = append(out, &e)
			}
		case "call":
			inner := templates[slices.IndexFunc(templates, func(t *randomDAG) bool { return t.name == n.calls })]
			for _, m := range inner.nodes {
				e := flatNode{randomNode: m, name: n.name + "_" + m.name, mode: m.mode, n: m.n + n.n, param: n.n, prefix: n.name + "_"}
				for _, need := range slices.Sorted(slices.Values(m.needs)) {
					e.needs = append(e.needs, n.name+"_"+need)
				}
				e.told = e.needs
				if len(m.needs) == 0 {
					e.needs = n.needs
				}
				join.parts[m.name] = e.name
				out = append(out, &e)
			}
		}
		out = append(out, &join)
	}
	if d.finally {
		f := &flatNode{randomNode: &randomNode{kind: "work"}, name: "last", mode: "ok", n: 7, final: true}
		for _, other := range out {
			f.needs = append(f.needs, other.name)
		}
		out = append(out, f)
	}
	return out
}

// names are the names of the nodes of an expanded DAG, sorted.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
