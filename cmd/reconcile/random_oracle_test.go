package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// oracle says how a random DAG has to end: each node by how those that it needs have ended. It shares no code with the controllers.
type oracle struct {
	dag     *randomDAG
	flat    []*flatNode
	by      map[string]*flatNode
	is      map[string]schemas.NodeStatus
	results map[string]string
	failed  bool // a node has failed that fails the DAG
	wrong   []string
}

// The ends of a node.
const (
	endSucceeded = "Succeeded"
	endFailed    = "Failed"
	endWhen      = "Skipped, its condition being false"
	endLeftOut   = "Skipped, since a need did not succeed"
	endCancelled = "Cancelled"
)

// endOf is how a node has ended.
func endOf(n schemas.NodeStatus) string {
	switch {
	case n.State == "Skipped" && n.Reason == "WhenFalse":
		return endWhen
	case n.State == "Skipped" && (n.Reason == "NeedFailed" || n.Reason == "NeedCancelled"):
		return endLeftOut
	}
	return n.State
}

// newOracle judges the nodes of an ended DAG.
func newOracle(d *randomDAG, templates []*randomDAG, st *schemas.DAGStatus) *oracle {
	o := &oracle{dag: d, by: map[string]*flatNode{}, is: map[string]schemas.NodeStatus{}, results: map[string]string{}}
	for name, n := range st.Nodes.All() {
		is := *n
		var b bytes.Buffer
		if json.Compact(&b, n.Result) == nil {
			is.Result = b.Bytes()
		}
		o.is[name] = is
	}
	o.flat = d.flatten(templates, func(list string) bool { return o.is[list].State == endSucceeded })
	for _, f := range o.flat {
		o.by[f.name] = f
	}
	if want, got := fmt.Sprint(names(o.by)), fmt.Sprint(names(o.is)); want != got {
		o.fault("the nodes are %s, want %s", got, want)
		return o
	}
	for _, f := range o.flat {
		if n := o.is[f.name]; n.State == endFailed && !o.spared(f) {
			o.failed = true
		}
	}
	for _, f := range o.flat {
		o.judge(f)
	}
	if want := map[bool]string{true: "Failed", false: "Succeeded"}[o.failed]; st.Phase != want {
		o.fault("the phase is %s, want %s", st.Phase, want)
	}
	return o
}

func (o *oracle) fault(format string, args ...any) {
	o.wrong = append(o.wrong, o.dag.name+": "+fmt.Sprintf(format, args...))
}

// spared reports whether a failure of the node does not fail the DAG.
func (o *oracle) spared(f *flatNode) bool {
	if f.optional {
		return true
	}
	for _, other := range o.flat {
		for _, part := range other.parts {
			if part == f.name && other.optional {
				return true
			}
		}
	}
	return false
}

// met reports whether a need lets its dependents go on.
func (o *oracle) met(need string) bool {
	end := endOf(o.is[need])
	return end == endSucceeded || end == endWhen || end == endFailed && o.by[need] != nil && o.by[need].optional
}

// judge compares a node with what its needs make of it.
func (o *oracle) judge(f *flatNode) {
	want, got := o.wants(f), endOf(o.is[f.name])
	cancelled := got == endCancelled && o.dag.failFast && o.failed && !f.final && f.when.form != "state"
	if got != want && !cancelled {
		o.fault("%s is %s (%s: %s), want %s", f.name, got, o.is[f.name].Reason, o.is[f.name].Message, want)
	}
	if got != endSucceeded {
		return
	}
	if result := string(o.is[f.name].Result); result != o.result(f) {
		o.fault("%s has the result %q, want %q", f.name, result, o.result(f))
	}
}

// wants is how the node has to end.
func (o *oracle) wants(f *flatNode) string {
	if f.join {
		return o.joins(f)
	}
	unmet := slices.ContainsFunc(f.needs, func(need string) bool { return !o.met(need) })
	switch {
	case f.final:
	case f.when.form == "state":
		if !o.holds(f) {
			return map[bool]string{true: endLeftOut, false: endWhen}[unmet]
		}
	case unmet:
		return endLeftOut
	case !o.holds(f):
		return endWhen
	}
	return map[bool]string{true: endFailed, false: endSucceeded}[f.mode == "fail" || f.mode == "slow"]
}

// joins is how a node ends that stands for others.
func (o *oracle) joins(f *flatNode) string {
	var ends []string
	for _, part := range f.parts {
		ends = append(ends, endOf(o.is[part]))
	}
	unmet := slices.ContainsFunc(f.needs, func(need string) bool { return !o.met(need) })
	if len(f.parts) == 0 {
		switch list := endOf(o.is[f.calls]); {
		case unmet:
			return endLeftOut
		case list == endSucceeded: // it is empty
			return endSucceeded
		}
		return endWhen
	}
	fails, left := false, false
	for _, part := range f.parts {
		switch end := endOf(o.is[part]); {
		case end == endFailed && (f.kind != "call" || !o.by[part].optional):
			fails = true
		case end == endLeftOut, end == endCancelled:
			left = true
		}
	}
	switch {
	case fails:
		return endFailed
	case left:
		return endLeftOut
	case !slices.ContainsFunc(ends, func(end string) bool { return end != endWhen }):
		return endWhen
	}
	return endSucceeded
}

// holds reports whether the condition of a node is true.
func (o *oracle) holds(f *flatNode) bool {
	need := f.prefix + f.when.need
	switch f.when.form {
	case "param":
		return f.param > f.when.above
	case "state":
		return slices.Contains(f.when.states, o.is[need].State)
	case "result":
		var result struct{ N int }
		_ = json.Unmarshal(o.is[need].Result, &result)
		return result.N > f.when.above
	}
	return true
}

// result is what a node that succeeded leaves.
func (o *oracle) result(f *flatNode) string {
	switch {
	case f.join:
		results := map[string]json.RawMessage{}
		for short, part := range f.parts {
			if r := o.is[part].Result; len(r) > 0 {
				results[short] = r
			}
		}
		if len(results) == 0 {
			return ""
		}
		text, _ := json.Marshal(results)
		return string(text)
	case f.kind == "list":
		text, _ := json.Marshal(f.values)
		return string(text)
	}
	return fmt.Sprintf(`{"n":%d}`, f.n)
}

// seen is what the program of a node has to have been told.
func (o *oracle) seen(f *flatNode) string {
	var b strings.Builder
	for _, need := range f.told {
		b.WriteString(string(o.is[need].Result) + "|")
	}
	return b.String()
}
